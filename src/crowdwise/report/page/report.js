"use strict";
(() => {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const PAGE = 25, DASH = "–", SVG = "http://www.w3.org/2000/svg";
  const said = document.getElementById("said");

  // -- small things ---------------------------------------------------------------------

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);  // text is added as text, never as markup
    return made;
  }

  function shape(name, attributes = {}, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  const known = (value) => value !== null && value !== undefined;
  const whole = (value) => Number(value).toLocaleString("en");
  const percent = (value) => known(value) ? `${(100 * value).toFixed(value > 0.995 && value < 1 ? 1 : 0)}%` : DASH;
  const isolated = (text) => element("bdi", {}, text);

  function named(text) {
    if (text.length <= 40) return isolated(text);
    const short = isolated(`${text.slice(0, 27)}…${text.slice(-12)}`);
    short.setAttribute("title", text);
    return short;
  }

  const className = (number) => number >= 0 ? facts.classes[number] : DASH;

  function duration(seconds) {
    if (!known(seconds)) return DASH;
    for (const [size, word] of [[86400, "d"], [3600, "h"], [60, "min"]])
      if (seconds >= 2 * size) return `${(seconds / size).toFixed(1)} ${word}`;
    return `${seconds.toFixed(1)} s`;
  }

  function save(text, type, name) {
    const link = element("a", { download: name });
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    said.textContent = `${name} saved`;
  }

  const FORMULA = /(?:^|(?<=[;\t\r\n]))(?='*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20].)/gs;
  const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/;

  function csv(rows) {
    const cell = (value) => {
      let text = known(value) ? String(value) : "";
      // Spreadsheets take text that begins like this for a formula; see crowdwise/io/values.py.
      if (typeof value === "string" && !NUMBER.test(text)) text = text.replace(FORMULA, "'");
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
  }

  // -- tables ---------------------------------------------------------------------------

  function bar(value) {
    const width = 46 * Math.max(0, Math.min(1, value));
    return shape("svg", { class: "bar", viewBox: "0 0 46 8", "aria-hidden": "true" },
      shape("rect", { class: "back", width: 46, height: 8, rx: 2 }),
      shape("rect", { class: "s0", width, height: 8, rx: 2 }));
  }

  function range(value, low, high) {
    const at = (share) => 3 + 84 * Math.max(0, Math.min(1, share));
    return shape("svg", { class: "range", viewBox: "0 0 90 10", "aria-hidden": "true" },
      shape("line", { class: "grid", x1: 3, x2: 87, y1: 5, y2: 5 }),
      shape("line", { class: "whisker k0", x1: at(low), x2: at(high), y1: 5, y2: 5 }),
      shape("circle", { class: "s0", cx: at(value), cy: 5, r: 3.5 }));
  }

  const shown = {
    name: (value) => [named(value)],
    text: (value) => [value],
    class: (value) => [isolated(className(value))],
    count: (value) => [whole(value)],
    number: (value) => [known(value) ? value.toFixed(2).replace("-", "−") : DASH],
    time: (value) => [duration(value)],
    share: (value) => known(value) ? [percent(value), bar(value)] : [DASH],
    interval: (value, column, row) => known(value)
      ? [`${percent(value)} `, element("small", {}, `${percent(column.low[row])} to ${percent(column.high[row])}`),
         range(value, column.low[row], column.high[row])]
      : [DASH],
    votes: (value) => value.slice().sort((a, b) => b[1] - a[1]).flatMap(([number, times], place) =>
      [`${place ? ", " : ""}${times}\u00a0×\u00a0`, isolated(className(number))]),
  };
  const RIGHT = new Set(["count", "number", "time", "share", "interval"]);

  function plainCell(column, row) {
    const value = column.values[row];
    if (column.kind === "class") return value >= 0 ? facts.classes[value] : null;
    if (column.kind === "votes") return value.map(([number, times]) => `${times} x ${className(number)}`).join("; ");
    return value;
  }

  const collator = new Intl.Collator("en", { numeric: true });

  function order(column) {
    const values = column.values;
    if (column.kind === "class") return (a, b) => collator.compare(className(values[a]), className(values[b]));
    if (column.kind === "votes") return (a, b) => values[a].length - values[b].length;
    if (!RIGHT.has(column.kind)) return (a, b) => collator.compare(values[a], values[b]);
    return (a, b) => values[a] - values[b];
  }

  function setUp(box) {
    const table = facts.tables[box.dataset.table], columns = table.columns;
    const heads = [...box.querySelectorAll("thead th")], body = box.querySelector("tbody");
    const search = box.querySelector("[data-search]"), choose = box.querySelector("[data-choose]");
    const pager = box.querySelector(".pager"), counted = box.querySelector(".count");
    const n = columns[0].values.length;
    const texts = columns[0].values.map((value) => value.toLowerCase());
    const picked = columns.find((column) => column.title === table.choose);
    let [by, up] = table.order, page = 0, rows = [];

    function cell(column, row, place) {
      const kind = RIGHT.has(column.kind) ? "right" : "";
      const content = shown[column.kind](column.values[row], column, row);
      if (place === 0 && table.details) {
        const button = element("button", { type: "button" }, ...content);
        button.addEventListener("click", () => describe(box, columns, row));
        return element("td", { class: kind }, button);
      }
      return element("td", { class: kind }, ...content);
    }

    function draw() {
      const start = page * PAGE, cut = rows.slice(start, start + PAGE);
      body.replaceChildren(...cut.map((row) => element("tr", {}, ...columns.map((column, place) => cell(column, row, place)))));
      counted.textContent = rows.length === n ? `${whole(n)} rows` : `${whole(rows.length)} of ${whole(n)} rows`;
      const step = (text, to, off) => {
        const button = element("button", { type: "button" }, text);
        button.disabled = off;
        button.addEventListener("click", () => {
          page = to;
          draw();
          const same = [...pager.querySelectorAll("button")].find((other) => other.textContent === text && !other.disabled);
          (same || pager.querySelector("button:not(:disabled)") || box).focus();
        });
        return button;
      };
      const last = Math.max(Math.ceil(rows.length / PAGE) - 1, 0);
      pager.hidden = last === 0;
      pager.replaceChildren(step("Previous", page - 1, page === 0),
        element("span", {}, rows.length ? `${whole(start + 1)} to ${whole(start + cut.length)} of ${whole(rows.length)}` : "nothing found"),
        step("Next", page + 1, page >= last));
      heads.forEach((head, place) => head.setAttribute("aria-sort", place === by ? (up ? "ascending" : "descending") : "none"));
    }

    function update() {
      const wanted = search ? search.value.trim().toLowerCase() : "";
      const choice = choose ? choose.value : "";
      rows = [];
      for (let row = 0; row < n; row++) {
        if (wanted && !texts[row].includes(wanted)) continue;
        if (choice && String(picked.values[row]) !== choice.slice(1)) continue;
        rows.push(row);
      }
      const column = columns[by], compare = order(column), sign = up ? 1 : -1;
      const missing = (row) => !known(column.values[row]);
      rows.sort((a, b) => missing(a) - missing(b) || (missing(a) ? 0 : sign * compare(a, b)) || a - b);
      page = 0;
      draw();
    }

    heads.forEach((head, place) => head.querySelector("button").addEventListener("click", () => {
      up = place === by ? !up : !RIGHT.has(columns[place].kind);
      by = place;
      update();
      said.textContent = `sorted by ${columns[by].title}, ${up ? "ascending" : "descending"}`;
    }));
    if (search) search.addEventListener("input", update);
    if (choose) {
      const found = [...new Set(picked.values)].filter((value) => value !== "" && value !== -1);
      if (picked.kind === "class") found.sort((a, b) => a - b); else found.sort();
      choose.append(element("option", { value: "" }, "all"), ...found.map((value) =>
        element("option", { value: `=${value}` }, picked.kind === "class" ? className(value) : value)));
      choose.addEventListener("change", update);
    }
    box.querySelector("[data-save-table]").addEventListener("click", () => {
      const head = columns.flatMap((column) => column.low ? [column.title, "low", "high"] : [column.title]);
      const line = (row) => columns.flatMap((column) => column.low
        ? [column.values[row], column.low[row], column.high[row]] : [plainCell(column, row)]);
      save(csv([head, ...rows.map(line)]), "text/csv", `${box.dataset.table}.csv`);
    });
    update();
  }

  // -- one worker's mistakes ------------------------------------------------------------

  function describe(box, columns, row) {
    const room = box.querySelector(".details"), counts = facts.confusion[row];
    const title = element("h3", {}, "Confusion matrix of ", isolated(columns[0].values[row]));
    if (!counts) {
      room.replaceChildren(title, element("p", { class: "note" }, "The file holds the matrices of the busiest workers only."));
      return;
    }
    const used = facts.classes.map((_, k) => k).filter((k) => counts[k].some((x) => x > 0.05) || counts.some((line) => line[k] > 0.05));
    const head = element("tr", {}, element("th", { scope: "col" }, "inferred \\ given"),
      ...used.map((k) => element("th", { scope: "col", class: "right" }, isolated(className(k)))));
    const lines = used.map((k) => {
      const total = counts[k].reduce((a, b) => a + b, 0);
      return element("tr", {}, element("th", { scope: "row" }, isolated(className(k))), ...used.map((l) => {
        const share = total > 0.05 ? counts[k][l] / total : null;
        const made = element("td", {}, known(share) ? `${percent(share)} ` : DASH);
        if (counts[k][l] > 0.05) made.append(element("small", {}, `(${counts[k][l].toFixed(1).replace(/\.0$/, "")})`));
        if (share) made.style.backgroundColor = `color-mix(in srgb, var(${k === l ? "--s0" : "--s1"}) ${Math.round(40 * share)}%, transparent)`;
        return made;
      }));
    });
    const table = element("table", {}, element("caption", {}, "Share of each inferred class that gets each label (expected number of labels)"),
      element("thead", {}, head), element("tbody", {}, ...lines));
    room.replaceChildren(title, element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Confusion matrix" }, table));
    room.scrollIntoView({ block: "nearest" });
  }

  // -- charts: words on marks, numbers, files -------------------------------------------

  const tip = document.querySelector(".tip");

  function showTip(mark, x, y) {
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(6, Math.min(x + 12, innerWidth - box.width - 6))}px`;
    tip.style.top = `${y - box.height - 12 < 6 ? y + 16 : y - box.height - 12}px`;
  }

  function hideTip() {
    tip.hidden = true;
  }

  function leave() {
    hideTip();
    document.querySelectorAll(".mark.here").forEach((mark) => mark.classList.remove("here"));
  }

  const markAt = (event) => event.target.closest ? event.target.closest("[data-tip]") : null;
  for (const kind of ["pointermove", "pointerdown"])
    document.addEventListener(kind, (event) => {
      const mark = markAt(event);
      if (mark && mark.dataset.tip) showTip(mark, event.clientX, event.clientY);
      else if (!tip.hidden) hideTip();
    });
  document.addEventListener("scroll", hideTip, { passive: true });

  function walk(picture, event) {
    const marks = [...picture.querySelectorAll("[data-tip]")];
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    if (event.key === "Escape") return leave();
    if (!(event.key in steps) || !marks.length) return undefined;
    event.preventDefault();
    const now = marks.findIndex((mark) => mark.classList.contains("here"));
    const next = now < 0 ? (steps[event.key] > 0 ? 0 : marks.length - 1) : (now + steps[event.key] + marks.length) % marks.length;
    leave();
    marks[next].classList.add("here");
    const box = marks[next].getBoundingClientRect();
    showTip(marks[next], box.right, box.top);
    said.textContent = marks[next].dataset.tip;
    return undefined;
  }

  const KEPT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap", "opacity", "font-size", "font-family", "text-anchor"];

  function standalone(picture) {
    const copy = picture.cloneNode(true), [, , width, height] = picture.getAttribute("viewBox").split(" ");
    const from = [picture, ...picture.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
    to.forEach((node, place) => {
      const style = getComputedStyle(from[place]);
      for (const key of KEPT) node.setAttribute(key, style.getPropertyValue(key));
      for (const key of ["class", "tabindex", "data-tip"]) node.removeAttribute(key);
      if (from[place].dataset.tip) node.append(shape("title", {}, from[place].dataset.tip));
    });
    const paper = getComputedStyle(document.body).backgroundColor;
    copy.prepend(shape("rect", { width, height, fill: paper }));
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    return new XMLSerializer().serializeToString(copy);
  }

  function fill(details) {
    if (!details.open || details.querySelector("table")) return;
    const { columns, rows } = facts.charts[details.dataset.numbers];
    const cut = rows.slice(0, 200);
    const cell = (value) => known(value) ? (typeof value === "string" ? isolated(value) : String(value)) : DASH;
    const table = element("table", {}, element("caption", {}, rows.length > cut.length ? `The first ${cut.length} of ${whole(rows.length)} rows; save CSV for all` : "Numbers of the chart"),
      element("thead", {}, element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, isolated(name))))),
      element("tbody", {}, ...cut.map((row) => element("tr", {}, ...row.map((value) => element("td", {}, cell(value)))))));
    details.append(element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers of the chart" }, table));
  }

  document.querySelectorAll("[data-table]").forEach(setUp);
  document.querySelectorAll(".canvas svg").forEach((picture) => {
    picture.addEventListener("keydown", (event) => walk(picture, event));
    picture.addEventListener("blur", leave);
  });
  document.querySelectorAll("[data-numbers]").forEach((details) => details.addEventListener("toggle", () => fill(details)));
  document.querySelectorAll("[data-save]").forEach((button) => button.addEventListener("click", () => {
    const name = button.dataset.of, { columns, rows } = facts.charts[name];
    if (button.dataset.save === "csv") save(csv([columns, ...rows]), "text/csv", `${name}.csv`);
    else save(standalone(document.querySelector(`#chart-${name} .canvas svg`)), "image/svg+xml", `${name}.svg`);
  }));
})();
