"use strict";
// Fetches the inside of the dashboard again and again, and puts it in place where it has changed.

const EVERY = 2000;
const parts = document.getElementById("parts"), live = document.getElementById("live");
const tip = document.querySelector(".tip"), said = document.getElementById("said");
let shown = "";

function show(state, text) { live.className = `live ${state}`; live.textContent = text; }

async function refresh() {
  try {
    const text = await (await askSignedIn("/api/dashboard")).text();
    if (text !== shown) {
      const open = document.activeElement?.closest(".scroll")?.getAttribute("aria-label");
      parts.innerHTML = text; // made by the service, where every name is escaped
      shown = text;
      const title = parts.querySelector("[data-title]")?.dataset.title;
      if (title) document.getElementById("title").textContent = title;
      if (open) parts.querySelector(`.scroll[aria-label="${CSS.escape(open)}"]`)?.focus();
    }
    show("on", "live");
  } catch (error) {
    show("off", error.status ? error.message : "no connection to the service; trying again");
  }
}

async function watch() {
  for (;;) {
    if (!document.hidden) await refresh();
    await new Promise((resolve) => setTimeout(resolve, EVERY));
  }
}

// Values under the mouse, as in the report.
parts.addEventListener("pointermove", (event) => {
  const mark = event.target.closest?.("[data-tip]");
  tip.hidden = !mark;
  if (!mark) return;
  tip.textContent = mark.dataset.tip;
  const box = tip.getBoundingClientRect();
  tip.style.setProperty("left", `${Math.min(event.clientX + 12, innerWidth - box.width - 8)}px`);
  tip.style.setProperty("top", `${Math.max(event.clientY - box.height - 10, 4)}px`);
});
parts.addEventListener("pointerleave", () => { tip.hidden = true; });

const FORMATS = {
  consensus: ["csv", "tsv", "json", "jsonl", "parquet", "label-studio", "argilla"],
  labels: ["csv", "tsv", "json", "jsonl", "parquet", "wide", "nested", "snorkel"],
};
const what = document.getElementById("what"), format = document.getElementById("format");
function listFormats() { format.replaceChildren(...FORMATS[what.value].map((name) => new Option(name))); }
what.addEventListener("change", listFormats);
listFormats();

async function save(path, button) {
  button.disabled = true;
  said.textContent = "";
  try {
    const answer = await askSignedIn(path), link = document.createElement("a");
    const name = answer.headers.get("content-disposition")?.match(/filename="([^"]+)"/)?.[1];
    link.href = URL.createObjectURL(await answer.blob());
    link.download = name ?? "export";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    said.textContent = answer.headers.get("x-crowdwise-note") ?? `${link.download} saved.`;
  } catch (error) {
    said.textContent = error.message;
  }
  button.disabled = false;
}
document.getElementById("save").addEventListener("click", (event) =>
  save(`/api/export/${what.value}?kind=${format.value}`, event.target));
document.getElementById("report").addEventListener("click", (event) => save("/api/report", event.target));

watch();
