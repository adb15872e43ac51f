"use strict";
// The lab: shows a run of a model on the reader's text, beside the run of the intact model.
(() => {
  const $ = (name) => document.getElementById(`lab-${name}`);
  const lab = document.getElementById("lab");
  const { tokenizer: packed, passages } = JSON.parse($("data").textContent);
  const tokenizer = new Tokenizer(packed);
  const blocks = new Map([...document.querySelectorAll("script[data-lab]")].map((b) => [b.dataset.lab, b]));
  const deepest = [...blocks.keys()].at(-1);
  const models = new Map(); // promises, by name
  const BLOCK = 24; // random tokens, twice
  const MODES = {
    "": "as trained",
    zero: "writes zero",
    mean: "writes its mean over held-out text",
    previous: "attends to the previous token alone",
  };
  const SIDES = { Q: "queries", K: "keys", V: "values" };
  const FRESH = { head: "", token: 0, key: null, target: null, modes: {}, cuts: [] };
  let state = { ...FRESH, model: deepest, text: null, seed: 1 };
  let model, intact, run; // run: with the interventions of the state
  let latest; // of the runs without

  // Each model is unpacked once, however many ask for it meanwhile.
  function load(name) {
    if (!models.has(name)) models.set(name, unpackModel(name));
    return models.get(name);
  }

  async function unpackModel(name) {
    const about = JSON.parse(blocks.get(name).textContent);
    return new Model(about, await readHalves(about.numbers));
  }

  // The run without interventions. The latest one is kept: the presets read it before it is drawn.
  function runIntact(model, tokens) {
    if (latest?.model !== model || String(latest.tokens) !== String(tokens)) latest = new Run(model, tokens);
    return latest;
  }

  // ---- state ----

  async function change(changes) {
    state = { ...state, ...changes };
    const wanted = state;
    const loaded = await load(state.model);
    if (wanted !== state) return; // changed again meanwhile
    model = loaded;
    const random = state.text === null;
    const read = random ? tokenizer.randomTwice(state.seed, blockOf(model)) : [0, ...tokenizer.encode(state.text)];
    const tokens = read.slice(0, model.n_ctx);
    repair(tokens);
    intact = runIntact(model, tokens);
    run = changed() ? new Run(model, tokens, state.modes, state.cuts) : intact;
    draw(read.length);
  }

  // Forgets what the model or the text does not have.
  function repair(tokens) {
    const names = model.heads.map((head) => head.name);
    const modes = Object.entries(state.modes).filter(([name, mode]) => names.includes(name) && mode);
    state.modes = Object.fromEntries(modes);
    state.cuts = state.cuts.filter((cut) => edges().includes(cut));
    if (!names.includes(state.head)) state.head = model.induction ?? names.at(-1) ?? "";
    state.token = Math.min(state.token, tokens.length - 1);
    if (state.key > state.token) state.key = null;
    if (state.target >= model.d_vocab) state.target = null;
  }

  const changed = () => Object.keys(state.modes).length + state.cuts.length > 0;
  const pairs = () =>
    model.heads.flatMap((late) =>
      model.heads.filter((early) => early.layer < late.layer).map((early) => `${early.name}-${late.name}`),
    );
  const edges = () => pairs().flatMap((pair) => Object.keys(SIDES).map((side) => `${pair}-${side}`));
  const sayEdge = (cut) =>
    spelled(cut.replace(/(.*)-(.*)-(.)/, (_, early, late, side) => `${early}→${late} ${SIDES[side]}`));

  const blockOf = ({ n_ctx }) => Math.min(BLOCK, Math.floor((n_ctx - 1) / 2));

  // The presets: the induction head, at the token of the second copy whose next token is predicted best, and the key
  // edge intact or cut.
  async function example(cut) {
    const shown = await load(deepest);
    const { induction, previous } = shown;
    const seed = state.text === null ? state.seed : 1;
    const cuts = cut && previous && induction ? [`${previous}-${induction}-K`] : [];
    await change({ ...FRESH, model: deepest, text: null, seed, ...bestCopied(shown, seed), cuts });
  }

  function bestCopied(shown, seed) {
    const block = blockOf(shown);
    const second = runIntact(shown, tokenizer.randomTwice(seed, block)).losses.slice(block);
    return { head: shown.induction ?? "", token: block + second.indexOf(Math.min(...second)) };
  }

  // ---- the tour ----

  let tour; // a promise of its steps
  let stepNow = 0;
  let before; // the address of the state that the tour replaced
  let ofStep; // the address of the step

  // Closing the tour brings that state back, unless the reader has changed the state of the step.
  async function turnTour() {
    if ($("tour").open) {
      before = address();
      await goToStep(stepNow);
    } else if (address() === ofStep) {
      history.replaceState(null, "", before);
      restore();
    }
  }

  async function readTour() {
    const all = await Promise.all([...blocks.keys()].map(load));
    const models = [0, 1, 2].map((n) => all.find((shown) => shown.n_layers === n));
    return tourSteps(models, FRESH, (shown) => bestCopied(shown, 1));
  }

  async function goToStep(to) {
    tour ??= readTour();
    const steps = await tour;
    stepNow = to;
    $("step").textContent = `${to + 1} of ${steps.length}. ${steps[to][1]}`; // first, so that it is read out first
    $("back").disabled = to === 0;
    $("next").disabled = to === steps.length - 1;
    await act(steps[to][0]);
    ofStep = address();
  }

  // ---- the address ----

  function address() {
    const off = [...Object.entries(state.modes).map((pair) => pair.join(".")), ...state.cuts];
    const said = { model: state.model, head: state.head, token: state.token };
    if (state.text === null) said.random = state.seed;
    else if (passages.includes(state.text)) said.passage = passages.indexOf(state.text);
    else said.text = state.text;
    for (const name of ["key", "target"]) if (state[name] !== null) said[name] = state[name];
    if (off.length) said.off = off.join(" ");
    return `#lab?${new URLSearchParams(said)}`;
  }

  function restore() {
    if (!location.hash.startsWith("#lab?")) return false;
    const said = new URLSearchParams(location.hash.slice(5));
    const number = (name) => (/^\d{1,9}$/.test(said.get(name) ?? "") ? Number(said.get(name)) : null);
    const off = (said.get("off") ?? "").split(" ");
    const text = said.has("random") ? null : (passages[number("passage") ?? -1] ?? said.get("text") ?? "");
    change({
      model: blocks.has(said.get("model")) ? said.get("model") : deepest,
      ...{ text, seed: number("random") ?? 1, head: said.get("head") ?? "" },
      ...{ token: number("token") ?? 0, key: number("key"), target: number("target") },
      modes: Object.fromEntries(off.map((o) => o.split(".")).filter(([, mode]) => Object.hasOwn(MODES, mode))),
      cuts: off.filter((o) => o.includes("-")),
    });
    document.getElementById(lab.dataset.section)?.scrollIntoView();
    return true;
  }

  // What the reader does is written into the address.
  async function act(changes) {
    await (typeof changes === "function" ? changes() : change(changes));
    history.replaceState(null, "", address());
  }

  // ---- drawing ----

  const word = (i) => make("code", tokenizer.words[run.tokens[i]]);
  const place = (i) => [word(i), ` (${i})`];
  const nats = (value) => signed(value, 2);
  const difference = (value) => (value < 0 ? nats(value) : `+${nats(value)}`);
  const mean = (values) => sumOf(values) / values.length;
  const sayPath = (path) => spelled(path.join("→")) || "direct path";

  function draw(length) {
    const hasHeads = model.heads.length > 0;
    fill($("model"), [...blocks.keys()].map((n) => [n, n]), state.model);
    const options = [["own", "your text"], ["random", "random tokens, twice"]];
    options.unshift(...passages.map((_, i) => [String(i), `held-out text ${i + 1}`]));
    const at = passages.indexOf(state.text);
    fill($("passage"), options, state.text === null ? "random" : at < 0 ? "own" : String(at));
    // Random tokens leave the reader's text where it is.
    if (state.text !== null && $("text").value !== state.text) $("text").value = state.text;
    $("attention").hidden = $("score").hidden = !hasHeads;
    drawSummary(length);
    drawTokens();
    if (hasHeads) {
      drawHeads();
      drawMatrix();
      drawSwitches();
      drawScore();
    }
    drawChanges();
    drawPredictions();
    look(state.token);
    $("link").href = address();
  }

  function drawSummary(length) {
    const n = run.losses.length;
    const copies = [["the first copy", 0, n / 2], ["the second copy", n / 2, n]];
    const parts = state.text === null ? copies : [["the text", 0, n]];
    const said = parts.map(([what, from, to]) => {
      const [now, before] = [run, intact].map((r) => mean(r.losses.slice(from, to)));
      const beside = run === intact ? "" : ` (intact model ${nats(before)}, ${difference(now - before)})`;
      return `${what} ${nats(now)} nats${beside}`;
    });
    const cut = length > model.n_ctx ? ` Only the first ${model.n_ctx - 1} tokens are read.` : "";
    const guess = nats(Math.log(tokenizer.words.length));
    const none = "No text: the model sees the beginning of a sequence alone.";
    $("summary").textContent = n ? `Mean loss per token: ${said.join("; ")} (a uniform guess among all ${tokenizer.words.length.toLocaleString("en")} tokens: ${guess}).${cut}` : none;
  }

  function drawTokens() {
    const buttons = run.tokens.map((t, i) => {
      const button = make("button", tokenizer.words[t], "token");
      button.type = "button";
      if (i) {
        const more = run.losses[i - 1] - intact.losses[i - 1];
        const differs = Math.abs(more) >= 0.005;
        button.append(make("small", nats(run.losses[i - 1])));
        button.append(make("small", differs ? difference(more) : "", differs ? (more > 0 ? "more" : "fewer") : ""));
      }
      button.addEventListener("mouseenter", () => look(i));
      button.addEventListener("focus", () => look(i));
      button.addEventListener("click", () => act({ token: i, key: null, target: null }));
      return button;
    });
    const focused = $("tokens").contains(document.activeElement);
    const copied = state.text === null ? run.losses.length / 2 : NaN; // the last token of the first copy
    const lineEnds = (i) => i === copied || (i === 0 && copied) || tokenizer.words[run.tokens[i]].includes("↵");
    $("tokens").replaceChildren(...buttons.flatMap((b, i) => (lineEnds(i) ? [b, make("br")] : [b])));
    alignCopies(buttons, copied);
    if (focused) buttons[state.token].focus();
    const [box, chosen] = [$("tokens"), buttons[state.token]];
    const top = chosen.offsetTop - box.offsetTop;
    const seen = top >= box.scrollTop && top + chosen.offsetHeight <= box.scrollTop + box.clientHeight;
    if (!seen) box.scrollTop = top - box.clientHeight / 2;
  }

  // Gives each token of the second copy the place of its counterpart in the first, `copied` buttons before.
  function alignCopies(buttons, copied) {
    const widths = buttons.map((button) => button.offsetWidth);
    for (let i = 1; i <= copied; i++)
      for (const j of [i, i + copied]) buttons[j].style.minWidth = `${Math.max(widths[i], widths[i + copied])}px`;
  }

  // Shows where token i attends, and which tokens attend to it, by the chosen head.
  function look(i) {
    const n = run.tokens.length;
    const pattern = run.heads[state.head]?.pattern;
    const weight = (query, key) => (pattern && key <= query ? pattern[query * n + key] : 0);
    $("tokens").querySelectorAll("button").forEach((button, j) => {
      button.style.setProperty("--out", weight(i, j).toFixed(3));
      button.style.setProperty("--in", weight(j, i).toFixed(3));
      button.tabIndex = j === i ? 0 : -1;
      button.classList.toggle("here", j === i);
      button.setAttribute("aria-pressed", String(j === state.token));
    });
    if (!pattern) return $("said").replaceChildren(...place(i), ": without layers there is no attention.");
    const ranked = range(i + 1).sort((a, b) => weight(i, b) - weight(i, a));
    const best = ranked.slice(0, 3).filter((j) => weight(i, j) >= 0.02);
    const said = best.flatMap((j, at) => [at ? ", " : " ", ...place(j), ` ${percent(weight(i, j))}`]);
    const spread = ` spreads its attention, by head ${spelled(state.head)}: no token gets 2 %.`;
    if (!best.length) return $("said").replaceChildren(...place(i), spread);
    $("said").replaceChildren(...place(i), ` attends, by head ${spelled(state.head)}, to`, ...said, ".");
  }

  // Draws a pattern on at most `most` pixels a side: one for each pair of tokens, or for a square of pairs its largest.
  function paint(canvas, pattern, most) {
    const n = run.tokens.length;
    const step = Math.ceil(n / most);
    const size = Math.ceil(n / step);
    const largest = new Float32Array(size * size);
    pattern.forEach((weight, at) => {
      const to = Math.floor(at / n / step) * size + Math.floor((at % n) / step);
      largest[to] = Math.max(largest[to], weight);
    });
    canvas.width = canvas.height = size;
    const image = new ImageData(size, size);
    const [red, green, blue] = getComputedStyle(lab).getPropertyValue("--cell-ink").trim().split(" ").map(Number);
    const pixels = new Uint32Array(image.data.buffer);
    const colour = (blue << 16) | (green << 8) | red;
    largest.forEach((weight, at) => (pixels[at] = (Math.round(255 * weight) << 24) | colour));
    canvas.getContext("2d").putImageData(image, 0, 0);
  }

  function drawHeads() {
    const focused = $("heads").contains(document.activeElement);
    const groups = Map.groupBy(model.heads, (head) => model.roles[head.name]);
    const ranked = [...groups].sort(([a], [b]) => (a === "no label") - (b === "no label"));
    const boxes = ranked.map(([role, heads]) => {
      const box = make("fieldset", "", "role");
      box.append(make("legend", role), ...heads.map((head) => thumbnail(run.heads[head.name], role)));
      return box;
    });
    const all = make("div", "", "roles");
    all.append(...boxes);
    $("heads").replaceChildren(all);
    if (focused) all.querySelector("[aria-pressed=true]").focus();
  }

  function thumbnail(head, role) {
    const touched = head.mode || state.cuts.some((cut) => cut.split("-")[1] === head.name);
    const button = Object.assign(make("button", "", touched ? "thumb changed" : "thumb"), { type: "button" });
    const canvas = make("canvas");
    paint(canvas, head.pattern, 64);
    button.append(canvas, spelled(head.name), touched ? " changed" : "");
    button.setAttribute("aria-label", `${spelled(head.name)}, ${role}${touched ? ", changed" : ""}`);
    button.setAttribute("aria-pressed", String(head.name === state.head));
    button.addEventListener("click", () => act({ head: head.name, key: null }));
    return button;
  }

  // The key of the score that is shown: the chosen one, or the one most attended to.
  function shownKey() {
    const n = run.tokens.length;
    const row = run.heads[state.head].pattern.subarray(state.token * n, state.token * n + state.token + 1);
    return state.key ?? row.indexOf(row.reduce((a, b) => Math.max(a, b)));
  }

  function drawMatrix() {
    const n = run.tokens.length;
    const head = run.heads[state.head];
    const [query, key] = [state.token, shownKey()];
    $("head").textContent = `Head ${spelled(head.name)}: ${model.roles[head.name]}`;
    paint($("matrix"), head.pattern, 256);
    const label = `Attention of head ${spelled(head.name)}: a row for each query, a column for each key. Arrow keys choose a pair.`;
    $("matrix").setAttribute("aria-label", label);
    for (const [line, at] of [["row", query], ["column", key]]) {
      const span = lab.querySelector(`.matrix .${line}`);
      span.style.setProperty("--at", at / n);
      span.style.setProperty("--size", 1 / n);
    }
    sayCell(query, key);
  }

  function sayCell(query, key) {
    const weight = run.heads[state.head].pattern[query * run.tokens.length + key];
    const said = `: ${percent(weight)} of the query's attention.`;
    $("cell").replaceChildren("Query ", ...place(query), ", key ", ...place(key), said);
  }

  function pointed(event) {
    const box = $("matrix").getBoundingClientRect();
    const n = run.tokens.length;
    const at = (from, size) => Math.max(0, Math.min(n - 1, Math.floor((from / size) * n)));
    const [token, key] = [at(event.clientY - box.top, box.height), at(event.clientX - box.left, box.width)];
    return { token, key: Math.min(token, key) };
  }

  function drawSwitches() {
    fill($("mode"), Object.entries(MODES), state.modes[state.head] ?? "");
    const mine = pairs().filter((pair) => pair.split("-").includes(state.head));
    const box = (pair, side) => {
      const input = Object.assign(make("input"), { type: "checkbox", checked: state.cuts.includes(`${pair}-${side}`) });
      input.setAttribute("aria-label", `cut ${sayEdge(`${pair}-${side}`)}`);
      input.addEventListener("change", () => toggle(`${pair}-${side}`));
      input.dataset.edge = `${pair}-${side}`;
      return input;
    };
    const rows = mine.map((pair) => [spelled(pair.replace("-", "→")), ...Object.keys(SIDES).map((side) => box(pair, side))]);
    const focused = document.activeElement.dataset.edge;
    const caption = "Cut an edge: the later head's queries, keys or values no longer read the earlier head's output.";
    const shown = table(caption, ["edge", ...Object.values(SIDES)], rows, "Edges");
    $("edges").replaceChildren(...(rows.length ? [shown] : []));
    if (focused) $("edges").querySelector(`[data-edge="${focused}"]`)?.focus();
  }

  function toggle(cut) {
    act({ cuts: state.cuts.includes(cut) ? state.cuts.filter((c) => c !== cut) : [...state.cuts, cut] });
  }

  function drawChanges() {
    const undo = (text, undone) => {
      const button = Object.assign(make("button", `${text} ✕`), { type: "button" });
      button.setAttribute("aria-label", `Undo: ${text}`);
      button.addEventListener("click", undone);
      return button;
    };
    const setBack = (name) => act({ modes: { ...state.modes, [name]: "" } });
    const touched = Object.entries(state.modes);
    const modes = touched.map(([name, mode]) => undo(`${spelled(name)} ${MODES[mode]}`, () => setBack(name)));
    $("changes").replaceChildren(...modes, ...state.cuts.map((cut) => undo(`${sayEdge(cut)} cut`, () => toggle(cut))));
    $("undo").disabled = !changed();
  }

  function drawPredictions() {
    const next = run.tokens[state.token + 1];
    const [now, before] = [run, intact].map((r) => r.logProbs(state.token).map(Math.exp));
    const ranked = range(model.d_vocab).sort((a, b) => now[b] - now[a]);
    const target = state.target ?? next ?? ranked[0];
    const listed = [...new Set([...ranked.slice(0, 8), ...(next === undefined ? [] : [next]), target])];
    const rows = listed.map((t) => {
      const button = Object.assign(make("button", tokenizer.words[t], "token"), { type: "button" });
      button.addEventListener("click", () => act({ target: t }));
      if (t === target) button.setAttribute("aria-current", "true");
      const change = run === intact ? [] : [percent(before[t])];
      return [button, t === next ? "next token" : "", percent(now[t]), ...change];
    });
    const heading = make("h3");
    heading.append("After ", ...place(state.token));
    const columns = ["token", "", "probability", ...(run === intact ? [] : ["intact model"])];
    const caption = "The likeliest next tokens; choose one to split its logit.";
    $("predictions").replaceChildren(heading, table(caption, columns, rows, "Predictions"));
    drawPaths(target);
  }

  function drawPaths(target) {
    const [now, before] = [run, intact].map((r) => {
      const parts = logitPaths(r, state.token, target);
      const whole = inWhole(parts.map((part) => part.value));
      return new Map(parts.map(({ path }, i) => [sayPath(path), whole[i]]));
    });
    const names = [...new Set([...now.keys(), ...before.keys()])]; // those that an intervention removes, too
    const size = (name) => Math.abs(now.get(name) ?? 0);
    const longest = Math.max(...names.map(size), 1);
    const extra = (value, kind) => (run === intact ? [] : [thousandths(value, kind)]);
    names.sort((a, b) => size(b) - size(a));
    const rows = names.map((name) => {
      const value = now.get(name) ?? 0;
      return [name, bar(size(name) / longest, value < 0), thousandths(value), ...extra(before.get(name) ?? 0, "before")];
    });
    const [total, whole] = [now, before].map((parts) => sumOf([...parts.values()]));
    rows.unshift(["all paths: the model's logit", "", thousandths(total, "total"), ...extra(whole, "")]);
    const heading = make("h3", "Logit of ");
    heading.append(make("code", tokenizer.words[target]), ", path by path");
    const columns = ["path", "part", "logit", ...(run === intact ? [] : ["intact model"])];
    const caption = "Logits above the mean over all tokens, largest part first.";
    $("paths").replaceChildren(heading, table(caption, columns, rows, "Paths"));
  }

  function drawScore() {
    const [query, key] = [state.token, shownKey()];
    const { queries, keys, values, position } = scorePaths(run, state.head, query, key);
    const whole = inWhole([...values.flat(), position]);
    const longest = Math.max(...whole.map(Math.abs), 1);
    const pair = (value) => {
      const box = thousandths(value, value < 0 ? "pair less" : "pair");
      box.style.setProperty("--size", (Math.abs(value) / longest).toFixed(3));
      return box;
    };
    const rows = queries.map((path, q) => [sayPath(path), ...keys.map((_, k) => pair(whole[q * keys.length + k]))]);
    const heading = make("h3", `Score of head ${spelled(state.head)}: query `);
    heading.append(...place(query), ", key ", ...place(key));
    const [score, distance] = [sumOf(whole), whole.at(-1)].map((value) => signed(value / 1000, 3));
    const total = `The score, ${score} nats, is the sum over all pairs of paths, plus ${distance} for the position.`;
    const caption = "A row for each path to the query, a column for each path to the key.";
    const columns = ["query path", ...keys.map(sayPath)];
    $("score").replaceChildren(heading, make("p", total), table(caption, columns, rows, "Pairs of paths"));
  }

  // ---- start ----

  function step(event, goals) {
    if (!(event.key in goals)) return null;
    event.preventDefault();
    return goals[event.key];
  }

  function moveToken(event) {
    const buttons = [...$("tokens").querySelectorAll("button")];
    const [i, last] = [buttons.indexOf(document.activeElement), buttons.length - 1];
    const [on, back] = [i + 1, i - 1];
    const goal = step(event, { ArrowRight: on, ArrowDown: on, ArrowLeft: back, ArrowUp: back, Home: 0, End: last });
    if (goal !== null) buttons[Math.max(0, Math.min(last, goal))].focus();
  }

  function moveCell(event) {
    const [token, key] = [state.token, shownKey()];
    const [right, left] = [[token, key + 1], [token, key - 1]];
    const [down, up] = [[token + 1, key], [token - 1, key]];
    const goal = step(event, { ArrowRight: right, ArrowLeft: left, ArrowDown: down, ArrowUp: up });
    if (goal === null) return;
    const to = Math.max(0, Math.min(run.tokens.length - 1, goal[0]));
    act({ token: to, key: Math.max(0, Math.min(to, goal[1])), target: null });
  }

  function pick(passage) {
    const texts = { own: $("text").value, random: null };
    return { text: passage in texts ? texts[passage] : passages[Number(passage)], target: null, key: null };
  }

  function listen() {
    $("model").addEventListener("change", () => act({ model: $("model").value, head: "" }));
    $("passage").addEventListener("change", () => act(pick($("passage").value)));
    let typed; // many events of one frame, as of dictation, are read once
    $("text").addEventListener("input", () => {
      cancelAnimationFrame(typed);
      const read = () => act({ text: $("text").value, target: null, key: null, token: Infinity });
      typed = requestAnimationFrame(read);
    });
    const anySeed = () => 1 + Math.floor(Math.random() * 1e6);
    $("random").addEventListener("click", () => act({ text: null, seed: anySeed(), target: null, key: null }));
    $("show").addEventListener("click", () => act(() => example(false)));
    $("cut").addEventListener("click", () => act(() => example(true)));
    $("tour").addEventListener("toggle", turnTour);
    $("back").addEventListener("click", () => goToStep(stepNow - 1));
    $("next").addEventListener("click", () => goToStep(stepNow + 1));
    $("undo").addEventListener("click", () => act({ modes: {}, cuts: [] }));
    $("mode").addEventListener("change", () => act({ modes: { ...state.modes, [state.head]: $("mode").value } }));
    $("tokens").addEventListener("keydown", moveToken);
    $("tokens").addEventListener("mouseleave", () => look(state.token));
    $("matrix").addEventListener("keydown", moveCell);
    $("matrix").addEventListener("pointermove", (event) => sayCell(pointed(event).token, pointed(event).key));
    $("matrix").addEventListener("pointerleave", () => sayCell(state.token, shownKey()));
    $("matrix").addEventListener("click", (event) => act({ ...pointed(event), target: null }));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => change({}));
    addEventListener("hashchange", restore);
  }

  lab.hidden = false;
  if (!("DecompressionStream" in window && Map.groupBy)) {
    lab.textContent = "The lab needs a browser of 2024 or later.";
    return;
  }
  listen();
  load(deepest).then(({ previous, induction }) => ($("cut").disabled = !previous || !induction));
  if (!restore()) example(false);
})();
