"use strict";
// Menu, light and dark, and search. Every page reads well without any of it.
(() => {
  const page = document.documentElement, root = page.dataset.root;
  const byId = (id) => document.getElementById(id);
  page.classList.add("js");

  const menu = byId("menu");
  menu.addEventListener("click", () => {
    const open = document.body.classList.toggle("menu-open");
    menu.setAttribute("aria-expanded", String(open));
  });

  // A page that was opened from disk may not be allowed to remember anything.
  const remember = (value) => { try { localStorage.setItem("look", value); } catch { /* no memory */ } };
  const remembered = () => { try { return localStorage.getItem("look"); } catch { return null; } };
  if (remembered()) page.dataset.look = remembered();
  byId("look").addEventListener("click", () => {
    const dark = page.dataset.look ? page.dataset.look === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    page.dataset.look = dark ? "light" : "dark";
    remember(page.dataset.look);
  });

  const field = byId("search"), list = byId("found");
  const score = (entry, words) => {
    let sum = 0;
    for (const word of words) {
      const place = [entry.page, entry.title, entry.text].map((text) => text.toLowerCase());
      const points = (place[0].includes(word) ? 8 : 0) + (place[1] === word ? 20 : 0)
        + (place[1].includes(word) ? 6 : 0) + (place[2].includes(word) ? 1 : 0);
      if (!points) return 0;
      sum += points;
    }
    return sum + (entry.url.includes("#") ? 0 : 2);
  };
  const search = (text) => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    return (window.SEARCH_INDEX || []).map((entry) => [score(entry, words), entry])
      .filter(([points]) => points > 0).sort((a, b) => b[0] - a[0]).slice(0, 12).map(([, entry]) => entry);
  };
  const item = (entry) => {
    const line = document.createElement("li"), link = document.createElement("a"), words = document.createElement("small");
    link.href = root + entry.url;
    link.textContent = entry.title === entry.page ? entry.title : `${entry.page} › ${entry.title}`;
    words.textContent = entry.text;
    link.append(words);
    line.append(link);
    return line;
  };
  const show = () => {
    const found = search(field.value);
    list.replaceChildren(...found.map(item));
    if (!found.length) {
      const none = document.createElement("li");
      none.className = "none";
      none.textContent = "Nothing found.";
      list.append(none);
    }
    list.hidden = !field.value.trim();
  };
  field.addEventListener("input", show);
  field.addEventListener("focus", show);
  byId("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    list.querySelector("a")?.click();
  });
  byId("search-form").addEventListener("keydown", (event) => {
    if (event.key === "Escape") { list.hidden = true; field.blur(); }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const links = [...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
    const next = at + (event.key === "ArrowDown" ? 1 : -1);
    (next < 0 ? field : links[Math.min(next, links.length - 1)])?.focus();
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/INPUT|TEXTAREA/.test(document.activeElement.tagName)) {
      event.preventDefault();
      field.focus();
    }
  });
  document.addEventListener("click", (event) => { if (!event.target.closest("form")) list.hidden = true; });
  const nav = byId("nav"), here = nav.querySelector("[aria-current]");
  if (here) nav.scrollTop = here.offsetTop - nav.clientHeight / 2;
})();
