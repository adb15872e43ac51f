"use strict";
// Sort a table by a column when its heading is pressed, filter the rows of a long table, save the shown rows as CSV,
// mark boxes that scroll, and open folded parts that a link leads to, or all of them for print.
for (const table of document.querySelectorAll("table.sortable")) {
  if (table.matches(".filtered")) table.closest(".scroll").before(tools(table));
  const body = table.tBodies[0];
  const original = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const sort = () => {
      const next = { none: "descending", descending: "ascending", ascending: "none" }[head.ariaSort || "none"];
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      if (next !== "none") head.setAttribute("aria-sort", next);
      const text = (row) => row.cells[column].textContent.trim();
      const sign = next === "descending" ? -1 : 1;
      body.append(...(next === "none" ? original : original.toSorted((a, b) => order(text(a), text(b), sign))));
    };
    head.replaceChildren(make("button", { onclick: sort }, head.textContent));
  });
}

// A search field that keeps the rows with all of its phrases, which commas separate, and a button that saves these rows
// as CSV.
function tools(table) {
  const body = table.tBodies[0];
  const shown = () => [...body.rows].filter((row) => !row.hidden);
  const filter = () => {
    const phrases = field.value.toLowerCase().split(",").map((phrase) => phrase.trim());
    for (const row of body.rows) {
      const text = Array.from(row.cells, (c) => c.textContent).join(" ").toLowerCase();
      row.hidden = !phrases.every((phrase) => text.includes(phrase));
    }
    count.textContent = `${shown().length} of ${body.rows.length} rows`;
  };
  const save = () => {
    const quoted = (cell) => `"${cell.textContent.trim().replaceAll('"', '""')}"`;
    const lines = [table.tHead.rows[0], ...shown()].map((row) => Array.from(row.cells, quoted).join(",") + "\n");
    saveFile(`${table.dataset.name || "table"}.csv`, new Blob(lines, { type: "text/csv" }));
  };
  const field = make("input", { type: "search", spellcheck: false, placeholder: "text, more text", oninput: filter });
  const count = make("output", {}, `${body.rows.length} rows`);
  const button = make("button", { onclick: save }, "Save shown rows as CSV");
  return make("div", { className: "tools" }, make("label", {}, "Filter rows ", field), button, count);
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
  const folds = document.querySelectorAll("details:has(:target), :target > details.fold");
  for (const fold of folds) fold.open = true;
  if (folds.length) document.querySelector(":target").scrollIntoView();
}
addEventListener("hashchange", unfold);
addEventListener("load", unfold);

addEventListener("beforeprint", () => document.querySelectorAll("details:not(#lab-tour)").forEach((d) => (d.open = true)));
