// Sorts a table by the column whose head is pressed, and back; unfolds all tables for print. Reads and moves, adds no text.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
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

addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => (d.open = true)));
