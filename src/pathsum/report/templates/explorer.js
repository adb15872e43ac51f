"use strict";
// The attention explorer and the circuit explorer. The page holds one data block per model, which is unpacked on first
// use. Tokens come from a corpus and may contain markup, so they are inserted through textContent only.
(() => {
  const $ = (name) => document.getElementById(`x-${name}`);
  const blocks = new Map([...document.querySelectorAll("script[data-cell]")].map((b) => [b.dataset.cell, b]));
  const loaded = new Map();
  const state = { cell: null, tables: null, token: null, pinned: null };
  const MATCHES = 30;

  // ---- records ----

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(plain).arrayBuffer());
  }

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
    cell.lengths = cell.passages.map((p) => p.tokens.length - 1); // the last token is a target only
    cell.patterns = await unpack(cell.patterns);
    cell.splits = await integers(cell.splits);
    if (cell.tables) {
      cell.tables.found = await integers(cell.tables.found);
      cell.tables.values = await integers(cell.tables.values);
    }
    return cell;
  }

  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  const triangle = (n) => (n * (n + 1)) / 2;

  // Return the attention (0..1) of query i to key j, averaged over the chosen heads, for the chosen passage and
  // checkpoint.
  function attention(i, j) {
    const { cell } = state;
    const passage = Number($("passage").value);
    const sizes = cell.lengths.map(triangle);
    const frame = $("weighted").value === "1" ? cell.checkpoints.length : Number($("at").value);
    const start = cell.heads.length * (frame * sum(sizes) + sum(sizes.slice(0, passage)));
    const heads = $("head").value.split(" ").map(Number);
    return sum(heads.map((h) => cell.patterns[start + h * sizes[passage] + triangle(i) + j])) / heads.length / 100;
  }

  const millions = (n) => (n >= 1e5 ? `${(n / 1e6).toFixed(1)} M` : String(n));

  // ---- attention explorer ----

  async function chooseCell() {
    const name = $("cell").value;
    const cell = await load(name);
    if (name !== $("cell").value) return; // another model has been chosen since
    state.cell = cell;
    const layers = [...new Set(cell.heads.map((h) => h.split("H")[0]))];
    const of = (layer) => cell.heads.flatMap((h, i) => (h.split("H")[0] === layer ? [i] : []));
    const heads = cell.heads.map((h, i) => [String(i), h]);
    const averages = layers.map((l) => [of(l).join(" "), `${l}, mean over heads`]);
    const options = [...heads, ...averages.filter(([value]) => value.includes(" "))];
    fill($("head"), options.length ? options : [["", "no heads"]], String(cell.look));
    fill($("passage"), cell.passages.map((p, i) => [String(i), p.kind]), $("passage").value || "1");
    $("at").max = String(Math.max(0, cell.checkpoints.length - 1));
    $("at").value = $("at").max;
    for (const control of ["head", "weighted"]) $(control).disabled = !options.length;
    choosePassage();
  }

  function choosePassage() {
    const tokens = state.cell.passages[Number($("passage").value)].tokens.slice(0, -1);
    const buttons = tokens.map((t, i) => {
      const button = make("button", state.cell.words[t], "token");
      button.type = "button";
      button.tabIndex = -1;
      button.addEventListener("mouseenter", () => look(i));
      button.addEventListener("focus", () => look(i));
      button.addEventListener("click", () => split(i));
      return button;
    });
    // break the line after each token that contains a newline
    $("tokens").replaceChildren(...buttons.flatMap((b) => (b.textContent.includes("↵") ? [b, make("br")] : [b])));
    state.pinned = null;
    $("split").replaceChildren();
    look(state.token === null ? striking(tokens.length) : Math.min(state.token, tokens.length - 1));
  }

  // Return the query with the largest attention to a key other than itself and position 0. It is chosen at the start.
  function striking(length) {
    let best = [0, 0];
    for (let i = state.cell.heads.length ? 2 : length; i < length; i++) {
      for (let j = 1; j < i; j++) if (attention(i, j) > best[0]) best = [attention(i, j), i];
    }
    return best[1];
  }

  function look(i) {
    const { cell } = state;
    const buttons = $("tokens").querySelectorAll("button");
    const finished = $("weighted").value === "1" || cell.checkpoints.length < 2 || !cell.heads.length;
    $("at").disabled = finished;
    if (finished) $("at").value = $("at").max;
    $("at-said").textContent = `${millions(cell.checkpoints[Number($("at").value)] ?? 0)} tokens seen`;
    state.token = i;
    const from = [];
    const to = [];
    buttons.forEach((button, j) => {
      const out = cell.heads.length && j <= i ? attention(i, j) : 0;
      const into = cell.heads.length && j >= i ? attention(j, i) : 0;
      button.style.setProperty("--out", out.toFixed(3));
      button.style.setProperty("--in", into.toFixed(3));
      button.tabIndex = j === i ? 0 : -1;
      button.classList.toggle("here", j === i);
      button.setAttribute("aria-pressed", String(j === state.pinned));
      from.push([out, button.textContent, j]);
      to.push([into, button.textContent, j]);
    });
    const here = [make("code", buttons[i].textContent), ` (${i})`];
    const seen = [" attends to ", ...say(from), ". Tokens that attend to it: ", ...say(to), "."];
    $("said").replaceChildren(...here, ...(cell.heads.length ? seen : [": a model without layers has no attention."]));
  }

  // Format the three largest entries of a list of [attention, token, position], among those of at least 2 %.
  function say(list) {
    const best = list.filter(([x]) => x >= 0.02).sort((a, b) => b[0] - a[0]).slice(0, 3);
    if (!best.length) return ["no token with 2 % or more"];
    return best.flatMap(([x, text, j], n) => [n ? ", " : "", make("code", text), ` (${j}) ${percent(x)}`]);
  }

  function move(event) {
    const last = $("tokens").querySelectorAll("button").length - 1;
    const i = state.token;
    const goals = { ArrowRight: i + 1, ArrowDown: i + 1, ArrowLeft: i - 1, ArrowUp: i - 1, Home: 0, End: last };
    if (!(event.key in goals)) return;
    event.preventDefault();
    $("tokens").querySelectorAll("button")[Math.max(0, Math.min(last, goals[event.key]))].focus();
  }

  // Show the prediction at position i as a sum over paths. Values are integers, in thousandths of a logit, so that the
  // printed parts add up exactly.
  function split(i) {
    const { cell } = state;
    const passage = Number($("passage").value);
    state.pinned = i;
    look(i);
    if (!cell.paths.length) {
      $("split").replaceChildren(make("p", "This model has too many paths to show its predictions by path."));
      return;
    }
    const width = 3 + cell.paths.length;
    const place = 2 * (sum(cell.lengths.slice(0, passage)) + i);
    const [next, guess] = [0, 1].map((t) => cell.splits.subarray((place + t) * width, (place + t + 1) * width));
    const longest = Math.max(...[...next.subarray(3), ...guess.subarray(3)].map(Math.abs), 1);
    const same = next[0] === guess[0];
    $("split").replaceChildren(
      bars(cell, next, longest, same ? "Actual next token, also the model's top guess" : "Actual next token"),
      ...(same ? [] : [bars(cell, guess, longest, "Top guess of the model")]),
    );
  }

  function bars(cell, [token, logProb, logit, ...parts], longest, title) {
    const order = parts.map((value, at) => [value, at]).sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]));
    const rows = order.map(([value, at]) => {
      const name = cell.paths[at] === "direct" ? "direct path" : cell.paths[at];
      return [name, bar(Math.abs(value) / longest, value < 0), thousandths(value)];
    });
    rows.unshift(
      ["logit of the model", "", thousandths(logit, "logit")],
      ["sum of all paths", "", thousandths(sum(parts), "total")],
    );
    const box = make("div", "", "half");
    const heading = make("h4", `${title}: `);
    heading.append(make("code", cell.words[token]), ` (probability ${percent(Math.exp(logProb / 1000))})`);
    const caption = "Logit of each path, above the mean over the vocabulary; largest first.";
    box.append(heading, table(caption, ["path", "size", "logit"], rows, `${title}, by path`));
    return box;
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
    show(at < 0 ? Math.min(1, cell.tables.tokens.length - 1) : at);
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
    const more = found.length > MATCHES ? `; the first ${MATCHES} are shown` : "";
    $("found").textContent = `${found.length} of ${tables.tokens.length} tokens match${more}.`;
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
    const heads = state.tables.heads.map((h) => [h, logits("OV", h), logits("QK", h)]);
    const heading = make("h4");
    heading.append("Token ", make("code", word));
    const columns = ["head", "output tokens that it raises (OV, logits)", "destinations that attend to it (QK, nats)"];
    $("circuit").dataset.word = word;
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

  $("cell").addEventListener("change", chooseCell);
  $("passage").addEventListener("change", choosePassage);
  for (const control of ["head", "weighted", "at"]) $(control).addEventListener("input", () => look(state.token));
  $("tokens").addEventListener("keydown", move);
  const names = [...blocks.keys()].map((n) => [n, n]);
  const explorers = $("explorers");
  fill($("cell"), names, explorers.dataset.first);
  explorers.hidden = false;
  if (!("DecompressionStream" in window)) {
    explorers.textContent = "The explorers need a browser from 2023 or later. This browser cannot unpack their data.";
    return;
  }
  chooseCell();
  if ($("tables")) {
    $("tables").addEventListener("change", chooseTables);
    $("search").addEventListener("input", search);
    $("search").addEventListener("keydown", (e) => e.key === "Enter" && $("matches").querySelector("button")?.click());
    fill($("tables"), names.filter(([n]) => "tables" in blocks.get(n).dataset), explorers.dataset.first);
    chooseTables();
  }
})();
