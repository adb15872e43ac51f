"use strict";
// The circuit explorer. The page holds one data block per model, which is unpacked on first use. Tokens come from a
// corpus and may contain markup, so they are inserted through textContent only.
(() => {
  const $ = (name) => document.getElementById(`x-${name}`);
  const blocks = new Map([...document.querySelectorAll("script[data-cell]")].map((b) => [b.dataset.cell, b]));
  const loaded = new Map();
  const state = { tables: null };
  const MATCHES = 30;

  // ---- records ----

  // Numbers of 32 bits: all lowest bytes, then all second ones, …
  async function integers(text) {
    const bytes = await unpack(text);
    const n = bytes.length / 4;
    const place = (at, i) => bytes[at * n + i] << (8 * at);
    return Int32Array.from({ length: n }, (_, i) => place(0, i) | place(1, i) | place(2, i) | place(3, i));
  }

  function load(name) {
    if (!loaded.has(name)) loaded.set(name, read(name));
    return loaded.get(name);
  }

  async function read(name) {
    const cell = JSON.parse(blocks.get(name).textContent);
    cell.tables.found = await integers(cell.tables.found);
    cell.tables.values = await integers(cell.tables.values);
    return cell;
  }

  // ---- circuit explorer ----

  async function chooseTables() {
    const name = $("tables").value;
    const cell = await load(name);
    if (name !== $("tables").value) return;
    state.tables = cell;
    search();
    const shown = $("circuit").dataset.word;
    const at = cell.tables.tokens.findIndex((t) => cell.words[t] === shown);
    show(at < 0 ? aWord(cell) : at);
  }

  // Return the number of a token of four or more letters after a space, or of the first token if there is none.
  function aWord({ words, tables }) {
    return Math.max(0, tables.tokens.findIndex((t) => /^␣[a-z]{4,}$/.test(words[t])));
  }

  function search() {
    const { words, tables } = state.tables;
    const wanted = $("search").value.replaceAll(" ", "␣");
    const rank = (word) => (word === wanted ? 0 : word.startsWith(wanted) ? 1 : word.includes(wanted) ? 2 : 3);
    const found = tables.tokens.map((t, at) => [rank(words[t]), at]).filter(([r]) => r < 3);
    found.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const buttons = found.slice(0, MATCHES).map(([, at]) => {
      const item = make("li");
      const button = Object.assign(make("button", words[tables.tokens[at]], "token"), { type: "button" });
      button.addEventListener("click", () => show(at));
      item.append(button);
      return item;
    });
    $("matches").replaceChildren(...buttons);
    mark();
    const more = found.length > MATCHES ? `; the first ${MATCHES} are shown` : "";
    $("found").textContent = `${found.length} of ${tables.tokens.length} tokens match${more}.`;
  }

  // Mark the token that is shown among the matching ones.
  function mark() {
    const shown = $("circuit").dataset.word;
    for (const b of $("matches").querySelectorAll("button")) b.setAttribute("aria-pressed", String(b.textContent === shown));
  }

  // Return the k entries of table number `which` for token number `at`, each as a page element.
  function entries(at, which, scale, write) {
    const { words, tables } = state.tables;
    const start = (which * tables.tokens.length + at) * tables.k;
    return [...Array(tables.k).keys()].map((i) => {
      const line = make("span", "", "entry");
      line.append(make("code", words[tables.found[start + i]]), ` ${write(tables.values[start + i] / scale)}`);
      return line;
    });
  }

  function show(at) {
    const { words, tables } = state.tables;
    const word = words[tables.tokens[at]];
    const place = (name, head) => tables.list.findIndex(([table, of]) => table === name && of === head);
    const share = (name) => entries(at, place(name, ""), 1e4, percent);
    const logits = (name, head) => entries(at, place(name, head), 100, (x) => signed(x, 2));
    const heads = state.tables.heads.map((h) => [spelled(h), logits("OV", h), logits("QK", h)]);
    const heading = make("h4");
    heading.append("Token ", make("code", word));
    const columns = ["head", "output tokens that it raises (OV, logits)", "destinations that attend to it (QK, nats)"];
    $("circuit").dataset.word = word;
    mark();
    $("circuit").replaceChildren(
      heading,
      table(
        "Probability of the next token.",
        ["by the direct path", "in the corpus"],
        [[share("direct"), share("corpus")]],
      ),
      ...(heads.length
        ? [
            table(
              "The token as a source: output tokens that a head raises when it attends to the token (logits above the " +
                "mean over outputs), and destinations that attend to it (nats above the mean over their keys).",
              columns,
              heads,
            ),
          ]
        : []),
    );
  }

  // ---- start ----

  const names = [...blocks.keys()].map((n) => [n, n]);
  const explorers = $("explorers");
  explorers.hidden = false;
  if (!("DecompressionStream" in window)) {
    explorers.textContent = "The explorer needs a browser from 2023 or later. This browser cannot unpack its data.";
    return;
  }
  $("tables").addEventListener("change", chooseTables);
  $("search").addEventListener("input", () => {
    search();
    if ($("search").value) $("matches").querySelector("button")?.click();
  });
  $("search").addEventListener("keydown", (e) => e.key === "Enter" && $("matches").querySelector("button")?.click());
  fill($("tables"), names, explorers.dataset.first);
  chooseTables();
})();
