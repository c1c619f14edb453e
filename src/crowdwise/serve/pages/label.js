"use strict";
// One task after another: shown, labeled by a tap or a key, sent, and the next one fetched.

const NAME = "crowdwise-name", AGAIN = 5000;
const node = (id) => document.getElementById(id);
const choices = node("choices"), picture = node("picture"), image = picture.querySelector("img");
let project = null, current = null, last = null, busy = false, timer = 0, address = "";

const who = () => (project.open ? localStorage.getItem(NAME) ?? "me" : project.you);
const as = (body) => (project.open ? { ...body, worker: who() } : body);

async function start() {
  project = await (await askSignedIn("/api/project")).json();
  node("title").textContent = document.title = project.title;
  node("who").textContent = who();
  node("who").disabled = !project.open;
  if (project.instructions) {
    node("instructions").hidden = false;
    node("instructions").querySelector("p").textContent = project.instructions;
  }
  choices.replaceChildren(...project.classes.map((name, place) => {
    const button = document.createElement("button"), text = document.createElement("span");
    button.type = "button";
    text.textContent = name;
    text.dir = "auto";
    button.append(text);
    if (place < 9) {
      const key = document.createElement("kbd");
      key.textContent = place + 1;
      button.append(key);
      button.setAttribute("aria-keyshortcuts", place + 1);
    }
    button.addEventListener("click", () => choose(place));
    return button;
  }));
  await countOwn();
  await fetchNext();
}

async function countOwn() {
  const query = project.open ? `?worker=${encodeURIComponent(who())}` : "";
  const own = await (await askSignedIn(`/api/me${query}`)).json();
  node("count").textContent = own.n_labels === 1 ? "1 label" : `${own.n_labels.toLocaleString("en")} labels`;
  last = own.labels[0]?.task ?? null;
  node("undo").disabled = last === null;
}

async function fetchNext() {
  clearTimeout(timer);
  const found = await (await askSignedIn("/api/next", as({}))).json();
  await show(found.task === null ? null : found);
}

async function show(found) {
  current = found;
  node("task").hidden = node("choices").hidden = found === null;
  node("empty").hidden = found !== null;
  node("skip").disabled = found === null;
  if (found === null) {
    node("empty").textContent = "There is nothing to label now.\nThis page looks again every few seconds.";
    timer = setTimeout(() => attempt(fetchNext), AGAIN);
    return;
  }
  const { text, image: source } = found.content;
  node("text").hidden = Boolean(source) && !text;
  node("text").textContent = text ?? found.task;
  picture.hidden = !source;
  if (address) URL.revokeObjectURL(address);
  address = "";
  if (source?.startsWith("https://")) image.src = source;
  else if (source) {
    const query = new URLSearchParams(as({ task: found.task }));
    image.removeAttribute("src");
    try {
      address = URL.createObjectURL(await (await askSignedIn(`/api/image?${query}`)).blob());
      image.src = address;
    } catch (error) {
      node("problem").textContent = `The picture cannot be shown: ${error.message}`;
    }
  }
  for (const button of choices.children) button.classList.remove("chosen");
}

// Do one thing at a time, and say what went wrong. What comes meanwhile is dropped, since a label
// would go to a task that nobody has seen; only "undo" waits for its turn.
async function attempt(action, waits = false) {
  while (busy && waits) await new Promise((resolve) => setTimeout(resolve, 20));
  if (busy) return;
  busy = true;
  node("problem").textContent = "";
  try {
    await action();
  } catch (error) {
    node("problem").textContent = error.status ? error.message
      : "There is no connection to the service. Nothing is lost: try again.";
  }
  busy = false;
}

function choose(place) {
  if (!current || !project.classes[place]) return;
  attempt(async () => {
    choices.children[place].classList.add("chosen");
    try {
      await askSignedIn("/api/labels", as({ task: current.task, label: project.classes[place] }));
    } catch (error) {
      choices.children[place].classList.remove("chosen");
      throw error;
    }
    await countOwn();
    await fetchNext();
  });
}

node("skip").addEventListener("click", () => current && attempt(async () => {
  await askSignedIn("/api/skip", as({ task: current.task }));
  await fetchNext();
}));

node("undo").addEventListener("click", () => attempt(async () => {
  if (last === null) return;
  const found = await (await askSignedIn("/api/withdraw", as({ task: last }))).json();
  const task = last;
  await countOwn();
  await show({ task, content: found.content });
}, true));

node("who").addEventListener("click", () => {
  const name = prompt("Your name", who())?.trim();
  if (name) {
    localStorage.setItem(NAME, name);
    node("who").textContent = name;
    attempt(async () => { await countOwn(); await fetchNext(); });
  }
});

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, dialog[open]")) return;
  if (/^[1-9]$/.test(event.key)) choose(Number(event.key) - 1);
  else if (event.key.toLowerCase() === "s") node("skip").click();
  else if (event.key.toLowerCase() === "u") node("undo").click();
  else return;
  event.preventDefault();
});

// Start, and try again for as long as the service cannot be reached.
async function begin() {
  await attempt(start);
  if (!project) setTimeout(begin, AGAIN);
}
begin();
