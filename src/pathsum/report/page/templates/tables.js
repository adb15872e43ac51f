// Sort a table by a column when its heading is pressed, filter the rows of a long table, save the shown rows as CSV,
// mark boxes that scroll, and open folded parts that a link leads to, or all of them for print. The text of table fields
// is never changed.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  if (table.matches(".filtered")) table.closest(".scroll").before(tools(table));
  const body = table.tBodies[0];
  const original = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const next = { none: "descending", descending: "ascending", ascending: "none" }[head.ariaSort || "none"];
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      if (next !== "none") head.setAttribute("aria-sort", next);
      const text = (row) => row.cells[column].textContent.trim();
      const sign = next === "descending" ? -1 : 1;
      body.append(...(next === "none" ? original : [...original].sort((a, b) => order(text(a), text(b), sign))));
    });
  });
}

// Return a search field that keeps the rows with all of its phrases, which commas separate, and a button that saves
// these rows as CSV.
function tools(table) {
  const make = (tag, given) => Object.assign(document.createElement(tag), given);
  const rows = [...table.tBodies[0].rows];
  const label = make("label", { textContent: "Filter rows " });
  const field = make("input", { type: "search", autocomplete: "off", spellcheck: false, placeholder: "text, more text" });
  const count = make("output", { textContent: `${rows.length} rows` });
  const save = make("button", { type: "button", textContent: "Save shown rows as CSV" });
  field.addEventListener("input", () => {
    const phrases = field.value.toLowerCase().split(",").map((phrase) => phrase.trim());
    for (const row of rows) {
      const text = [...row.cells].map((c) => c.textContent).join(" ").toLowerCase();
      row.hidden = !phrases.every((phrase) => text.includes(phrase));
    }
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  });
  save.addEventListener("click", () => {
    const shown = [table.tHead.rows[0], ...[...table.tBodies[0].rows].filter((row) => !row.hidden)];
    const quoted = (cell) => `"${cell.textContent.trim().replaceAll('"', '""')}"`;
    const text = shown.map((row) => [...row.cells].map(quoted).join(",") + "\n").join("");
    const href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    make("a", { href, download: `${table.dataset.name || "table"}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  });
  label.append(field);
  const box = make("div", { className: "tools" });
  box.append(label, save, count);
  return box;
}

function order(a, b, sign) {
  const [x, y] = [value(a), value(b)];
  if (x === null || y === null) return (x === null) - (y === null) || sign * a.localeCompare(b, "en", { numeric: true });
  return sign * (x - y);
}

function value(text) {
  const found = /^[+−-]?\d[\d,]*(\.\d+)?(e[−-]?\d+)?( M)?/.exec(text);
  if (!found) return null;
  return Number(found[0].replace(/[,M ]/g, "").replaceAll("−", "-")) * (found[3] ? 1e6 : 1);
}

// Mark the boxes whose content is wider than they are: the style sheet says so.
const sizes = new ResizeObserver((boxes) => {
  for (const { target } of boxes) target.classList.toggle("wider", target.scrollWidth > target.clientWidth);
});
for (const box of document.querySelectorAll(".scroll")) sizes.observe(box);

// A link into a folded part opens it.
function unfold() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  const folds = [...target.querySelectorAll(":scope > details.fold")];
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) folds.push(fold);
  for (const fold of folds) fold.open = true;
  if (folds.length) target.scrollIntoView();
}
addEventListener("hashchange", unfold);
unfold();

addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => (d.open = true)));
