"use strict";
// The lab: shows a run of a model on the reader's text, beside the run of the intact model.
(() => {
  if (!MODERN) return;
  const $ = byId("lab");
  const lab = document.getElementById("lab");
  const { texts, text_of, deepest, stages } = JSON.parse($("data").textContent);
  for (const text of texts) text.tokenizer = new Tokenizer(text.tokenizer);
  const textOf = (name) => texts[text_of[name]]; // that a model was trained on
  const models = labModels;
  const BLOCK = 24; // random tokens, twice
  const MODES = Object.fromEntries([...$("mode").options].slice(1).map(({ value, text }) => [value, text]));
  const SIDES = { Q: "queries", K: "keys", V: "values" };
  const FRESH = { head: "", token: 0, key: null, target: null, off: [] }; // off: heads with modes, and edges, as in Run
  let state = { ...FRESH, model: deepest, text: null, seed: 1, kept: null }; // kept: a model and changes, to compare with
  let model, intact, run, other; // run: with the interventions of the state; other: what it is compared with
  let { tokenizer, passages } = textOf(deepest);

  // The run without interventions. The latest one is kept: the presets read it before it is drawn.
  function runIntact(model, tokens) {
    if (intact?.model !== model || String(intact.tokens) !== String(tokens)) intact = new Run(model, tokens);
    return intact;
  }

  // ---- state ----

  async function change(changes) {
    state = { ...state, ...changes };
    const wanted = state;
    const loaded = await models.get(state.model)();
    if (wanted !== state) return; // changed again meanwhile
    model = loaded;
    ({ tokenizer, passages } = textOf(model.name));
    const { kept } = state;
    const keptModel = kept && text_of[kept.model] === text_of[model.name] && (await models.get(kept.model)());
    if (wanted !== state) return;
    if (!keptModel) state.kept = null; // of another text
    const random = state.text === null;
    const read = random ? tokenizer.randomTwice(state.seed, blockOf(model)) : [0, ...tokenizer.encode(state.text)];
    const tokens = read.slice(0, model.n_ctx);
    repair(tokens);
    runIntact(model, tokens);
    run = state.off.length ? new Run(model, tokens, state.off) : intact;
    const same = !keptModel || (kept.model === model.name && String(kept.off) === String(state.off));
    other = same ? (keptModel ? run : intact) : new Run(keptModel, tokens, kept.off);
    draw(read.length);
  }

  // Forgets what the model or the text does not have.
  function repair(tokens) {
    const names = model.heads.map((head) => head.name);
    const modes = names.flatMap((name) => Object.keys(MODES).map((mode) => `${name}.${mode}`));
    const edges = pairs().flatMap((pair) => Object.keys(SIDES).map((side) => `${pair}-${side}`));
    state.off = state.off.filter((off) => modes.includes(off) || edges.includes(off));
    if (!names.includes(state.head)) state.head = model.induction ?? names.at(-1) ?? "";
    state.token = Math.min(state.token, tokens.length - 1);
    if (state.key > state.token) state.key = null;
    if (state.target >= model.d_vocab) state.target = null;
  }

  const pairs = () =>
    model.heads.flatMap((late) =>
      model.heads.filter((early) => early.layer < late.layer).map((early) => `${early.name}-${late.name}`),
    );
  const modeOf = (head) => Object.keys(MODES).find((mode) => state.off.includes(`${head}.${mode}`));

  function say(off) {
    const [early, late, side] = spelled(off).split("-");
    if (side) return `${early}→${late} ${SIDES[side]} cut`;
    const [head, mode] = off.split(".");
    return `${spelled(head)} ${MODES[mode]}`;
  }

  const blockOf = ({ n_ctx }) => Math.min(BLOCK, Math.floor((n_ctx - 1) / 2));

  // The presets, on the text that is there: the induction head, with its key edges intact or cut. On random tokens, at
  // the token of the second copy whose next token is predicted best.
  async function example(cut) {
    const now = await models.get(state.model)();
    const shown = now.induction ? now : await models.get(deepest)();
    const { text, seed, token } = state;
    const at = text === null ? bestCopied(shown, seed) : { head: shown.induction ?? "", token };
    await change({ ...FRESH, model: shown.name, text, seed, ...at, off: cut ? keyEdges(shown) : [] });
  }

  function bestCopied(shown, seed) {
    const block = blockOf(shown);
    const second = runIntact(shown, textOf(shown.name).tokenizer.randomTwice(seed, block)).losses.slice(block);
    return { head: shown.induction ?? "", token: block + second.indexOf(Math.min(...second)) };
  }

  // ---- the tour ----

  let steps; // a promise
  let stepNow = 0;
  let before; // the address of the state that the tour replaced
  let ofStep; // the address of the step

  // Closing the tour brings that state back, unless the reader has changed the state of the step.
  async function turnTour() {
    if ($("tour").open) {
      before = address();
      await goToStep(stepNow);
      return;
    }
    ring();
    if (address() === ofStep) {
      history.replaceState(null, "", before);
      restore();
    }
  }

  async function readTour() {
    const all = await Promise.all([...models.values()].map((load) => load()));
    const byDepth = range(3).map((n) => all.find((shown) => shown.n_layers === n));
    return tourSteps(byDepth, FRESH, (shown) => bestCopied(shown, 1));
  }

  async function goToStep(to) {
    const all = await (steps ??= readTour());
    if (!$("tour").open) return; // closed meanwhile
    if (!all.length) return ($("step").textContent = "These models have no induction head to show.");
    stepNow = to;
    $("step").textContent = `${to + 1} of ${all.length}. ${all[to][1]}`; // first, so that it is read out first
    $("back").disabled = to === 0;
    $("next").disabled = to === all.length - 1;
    await act({ kept: null, ...all[to][0] });
    ofStep = address();
    if ($("tour").open) ring(all[to][2]);
  }

  // Rings the subject of a step, and brings it below the step.
  function ring(subject) {
    lab.querySelector(".ringed")?.classList.remove("ringed");
    if (!subject) return;
    $(subject).classList.add("ringed");
    lab.style.setProperty("--pinned", `${$("tour").offsetHeight}px`);
    $(subject).scrollIntoView({ block: $(subject).offsetHeight > innerHeight / 2 ? "start" : "nearest" });
  }

  // ---- the address ----

  function address() {
    const said = { model: state.model, head: state.head, token: state.token };
    if (state.text === null) said.random = state.seed;
    else if (passages.includes(state.text)) said.passage = passages.indexOf(state.text);
    else said.text = state.text;
    for (const name of ["key", "target"]) if (state[name] !== null) said[name] = state[name];
    if (state.off.length) said.off = state.off.join(" ");
    if (state.kept) said.kept = [state.kept.model, ...state.kept.off].join("|");
    return `#lab?${new URLSearchParams(said)}`;
  }

  function restore() {
    if (!location.hash.startsWith("#lab?")) return false;
    const said = new URLSearchParams(location.hash.slice(5));
    const number = (name) => (/^\d{1,9}$/.test(said.get(name)) ? Number(said.get(name)) : null);
    const [keptModel, ...off] = said.get("kept")?.split("|") ?? [];
    const named = models.has(said.get("model")) ? said.get("model") : deepest;
    change({
      model: named,
      text: said.has("random") ? null : (textOf(named).passages[number("passage") ?? -1] ?? said.get("text") ?? ""),
      ...{ seed: number("random") ?? 1, head: said.get("head") ?? "", token: number("token") ?? 0 },
      ...{ key: number("key"), target: number("target"), off: said.get("off")?.split(" ") ?? [] },
      kept: models.has(keptModel) ? { model: keptModel, off } : null,
    });
    lab.closest("section").scrollIntoView();
    return true;
  }

  // What the reader does is written into the address.
  async function act(changes) {
    await change(changes);
    history.replaceState(null, "", address());
  }

  // ---- drawing ----

  const place = (i) => [code(tokenizer.words[run.tokens[i]]), ` (${i})`];
  const nats = (value) => signed(value, 2);
  const difference = (value) => (value < 0 ? nats(value) : `+${nats(value)}`);
  const mean = (values) => sumOf(values) / values.length;
  const sayPath = (path) => spelled(path.join("→")) || "direct path";
  const sayRoles = (path, { roles }) => {
    const known = path.map((name) => roles[name]).filter((role) => role && role !== "no label");
    return known.length ? ` (${known.join(" → ")})` : "";
  };
  const SHOWN = 6; // paths; the others are one row
  const beside = (value) => (run === other ? [] : [value]); // a column of what is compared with
  const titled = (name) => [...$("model").options].find((option) => option.value === name).text;
  const sayOther = () => (state.kept ? [titled(state.kept.model), ...state.kept.off.map(say)].join(", ") : "intact model");
  const weight = (query, key) => run.heads[state.head]?.pattern[query * run.tokens.length + key] ?? 0;

  function draw(length) {
    $("model").value = state.model;
    const at = passages.indexOf(state.text);
    $("passage").value = state.text === null ? "random" : at < 0 ? "own" : at;
    // Random tokens leave the reader's text where it is.
    if (state.text !== null && $("text").value !== state.text) $("text").value = state.text;
    $("attention").hidden = $("score").hidden = !state.head;
    drawSummary(length);
    drawTokens();
    if (state.head) {
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
      const [now, before] = [run, other].map((r) => mean(r.losses.slice(from, to)));
      const compared = run === other ? "" : ` (${sayOther()}: ${nats(before)}, ${difference(now - before)})`;
      return `${what} ${nats(now)} nats${compared}`;
    });
    const words = tokenizer.words.length;
    const guess = `a uniform guess among all ${words.toLocaleString("en")} tokens: ${nats(Math.log(words))}`;
    const cut = length > model.n_ctx ? ` Only the first ${model.n_ctx - 1} tokens are read.` : "";
    const none = "No text: the model sees the beginning of a sequence alone.";
    const why = state.text === null ? " Random tokens cost more than guessing: the model expects text." : "";
    const { name } = textOf(model.name);
    const trained = name && `${titled(model.name)} was trained on ${name}. `;
    $("summary").textContent = n ? `${trained}Mean loss per token: ${said.join("; ")} (${guess}).${why}${cut}` : none;
  }

  function drawTokens() {
    const words = run.tokens.map((t) => tokenizer.words[t]);
    const buttons = words.map((word, i) => {
      const ariaPressed = i === state.token;
      const onclick = () => act({ token: i, key: null, target: null });
      const button = make("button", { className: "token", ariaPressed, onclick }, word);
      if (i) {
        const more = run.losses[i - 1] - other.losses[i - 1];
        const differs = Math.abs(more) >= 0.005;
        vary(button, { loss: Math.min(1, run.losses[i - 1] / 10).toFixed(2) });
        button.append(make("small", {}, nats(run.losses[i - 1])));
        const className = more > 0 ? "more" : "fewer";
        button.append(differs ? make("small", { className }, difference(more)) : make("small"));
      }
      return button;
    });
    const [box, chosen] = [$("tokens"), buttons[state.token]];
    fillPassage(box, words, buttons, state.text === null ? run.losses.length / 2 : NaN);
    const top = chosen.offsetTop - box.offsetTop;
    const seen = top >= box.scrollTop && top + chosen.offsetHeight <= box.scrollTop + box.clientHeight;
    if (!seen) box.scrollTop = top - box.clientHeight / 2;
  }

  // Shows where token i attends, and which tokens attend to it, by the chosen head.
  function look(i) {
    shade($("tokens"), i, weight);
    if (!state.head) return $("said").replaceChildren(...place(i), ": without layers there is no attention.");
    const ranked = range(i + 1).sort((a, b) => weight(i, b) - weight(i, a));
    const said = ranked.slice(0, 3).flatMap((j, at) => [at ? ", " : " to ", ...place(j), ` ${percent(weight(i, j))}`]);
    $("said").replaceChildren(...place(i), ` attends, by head ${spelled(state.head)},`, ...said, ".");
  }

  function paint(canvas, { pattern }, most) {
    const n = run.tokens.length;
    paintMatrix(canvas, n, (query, key) => pattern[query * n + key], most);
  }

  function drawHeads() {
    const groups = Map.groupBy(model.heads, (head) => model.roles[head.name]);
    const ranked = [...groups].sort(([a], [b]) => (a === "no label") - (b === "no label"));
    const boxes = ranked.map(([role, heads]) => {
      const buttons = heads.map((head) => thumbnail(run.heads[head.name], role));
      return make("fieldset", { className: "role" }, make("legend", {}, role), ...buttons);
    });
    refill($("heads"), ...boxes);
  }

  function thumbnail(head, role) {
    const touched = state.off.some((off) => off.startsWith(`${head.name}.`) || off.includes(`-${head.name}-`));
    const canvas = make("canvas");
    paint(canvas, head, 64);
    const properties = {
      className: touched ? "thumb changed" : "thumb",
      ariaLabel: `${spelled(head.name)}, ${role}${touched ? ", changed" : ""}`,
      ariaPressed: head.name === state.head,
      onclick: () => act({ head: head.name, key: null }),
    };
    return make("button", properties, canvas, spelled(head.name), touched ? " changed" : "");
  }

  // The key of the score that is shown: the chosen one, or the one most attended to.
  function shownKey() {
    const row = range(state.token + 1).map((key) => weight(state.token, key));
    return state.key ?? row.indexOf(Math.max(...row));
  }

  function drawMatrix() {
    const name = spelled(state.head);
    const [query, key] = [state.token, shownKey()];
    const when = model.of ? " after training" : "";
    $("head").textContent = `Head ${name}: ${model.roles[state.head]}${when} (rows: queries; columns: keys)`;
    paint($("matrix"), run.heads[state.head], 256);
    const compared = run !== other && other.heads[state.head];
    $("beside").hidden = !compared;
    if (compared) {
      paint($("beside-matrix"), compared, 256);
      $("beside-said").textContent = `Head ${name}: ${sayOther()}`;
    }
    $("matrix").ariaLabel =
      `Attention of head ${name}: a row for each query, a column for each key. Arrow keys choose a pair.`;
    vary($("matrix").parentElement, { query, key, n: run.tokens.length });
    sayCell(query, key);
  }

  function sayCell(query, key) {
    const said = `: ${percent(weight(query, key))} of the query's attention.`;
    $("cell").replaceChildren("Query ", ...place(query), ", key ", ...place(key), said);
  }

  function drawSwitches() {
    $("mode").value = modeOf(state.head) ?? "";
    const box = (edge) =>
      make("input", {
        ...{ type: "checkbox", checked: state.off.includes(edge), ariaLabel: say(edge) },
        ...{ data: { edge }, onchange: () => toggle(edge) },
      });
    const mine = pairs().filter((pair) => pair.split("-").includes(state.head));
    const boxes = (pair) => Object.keys(SIDES).map((side) => box(`${pair}-${side}`));
    const rows = mine.map((pair) => [spelled(pair).replace("-", "→"), ...boxes(pair)]);
    const caption = "Cut an edge: the later head's queries, keys or values no longer read the earlier head's output.";
    refill($("edges"), rows.length ? table(caption, ["edge", ...Object.values(SIDES)], rows, "Edges") : "");
  }

  function toggle(...changed) {
    const off = state.off.filter((other) => !changed.includes(other));
    act({ off: [...off, ...changed.filter((other) => !state.off.includes(other))] });
  }

  function drawChanges() {
    const undo = (off) => make("button", { ariaLabel: `Undo: ${say(off)}`, onclick: () => toggle(off) }, `${say(off)} ✕`);
    refill($("changes"), ...state.off.map(undo));
    $("undo").disabled = !state.off.length;
    $("keep").textContent = state.kept ? "Compare with the intact model" : "Keep, to compare with";
    const stage = stages.indexOf(state.model);
    $("training").hidden = stage < 0 || stages.length < 2;
    $("stage").value = stage;
    $("stage").ariaValueText = $("at").textContent = stage < 0 ? "" : (titled(state.model).split(" at ")[1] ?? "the end");
  }

  function drawPredictions() {
    const next = run.tokens[state.token + 1];
    const [now, before] = [run, other].map((r) => r.logProbs(state.token).map(Math.exp));
    const ranked = range(model.d_vocab).sort((a, b) => now[b] - now[a]);
    const target = state.target ?? next ?? ranked[0];
    const listed = [...new Set([...ranked.slice(0, 8), ...(next === undefined ? [] : [next]), target])];
    const rows = listed.map((t) => {
      const properties = { className: "token", ariaCurrent: t === target || null, onclick: () => act({ target: t }) };
      const button = make("button", properties, tokenizer.words[t]);
      return [button, t === next ? "next token" : "", percent(now[t]), ...beside(percent(before[t]))];
    });
    const columns = ["token", "text", "probability", ...beside(sayOther())];
    const caption = "The likeliest next tokens; choose one to split its logit.";
    const heading = make("h3", {}, "After ", ...place(state.token));
    refill($("predictions"), heading, table(caption, columns, rows, "Predictions"));
    drawPaths(target);
    const strands = drawFlow($("flow"), run, state.token, target, words, openStrand);
    $("flow-of").replaceChildren("How the logit of ", code(tokenizer.words[target]), " is made after ", ...place(state.token));
    const key = ({ path, source }) => path && String([...path, source]);
    const again = opened && strands.find((strand) => key(strand) === key(opened));
    again ? openStrand(again) : $("arithmetic").replaceChildren();
  }

  const logit = (value, kind, vars = {}) => make("span", { className: `number ${kind}`, vars }, signed(value, 3));

  function drawPaths(target) {
    const roles = new Map();
    const split = (r) =>
      new Map(
        logitPaths(r, state.token, target).map(({ path, value }) => {
          roles.set(sayPath(path), sayRoles(path, r.model));
          return [sayPath(path), value];
        }),
      );
    const [before, now] = [split(other), split(run)]; // the names of the run's own roles come last
    const size = (name) => Math.abs(now.get(name) ?? 0);
    const names = [...new Set([...now.keys(), ...before.keys()])]; // those that an intervention removes, too
    names.sort((a, b) => size(b) - size(a));
    const row = (said, value, old, large) => {
      const className = value < 0 ? "bar less" : "bar";
      const bar = make("span", { className, vars: { size: Math.min(1, Math.abs(value) / (large || 1)) } });
      return [said, bar, logit(value, "part"), ...beside(logit(old, "before"))];
    };
    const [value, old] = [now, before].map((parts) => (name) => parts.get(name) ?? 0);
    const rows = names
      .slice(0, SHOWN)
      .map((name) => row([name, make("small", { className: "roles" }, roles.get(name))], value(name), old(name), size(names[0])));
    const rest = names.slice(SHOWN);
    if (rest.length)
      rows.push(row(`${rest.length} other paths`, sumOf(rest.map(value)), sumOf(rest.map(old)), size(names[0])));
    const [total, whole] = [now, before].map((parts) => sumOf([...parts.values()]));
    rows.unshift(["all paths: the model's logit", "", logit(total, "total"), ...beside(logit(whole, ""))]);
    const columns = ["path", "part", "logit", ...beside(sayOther())];
    const caption = "Logits above the mean over all tokens, largest part first.";
    const heading = make("h3", {}, "Logit of ", code(tokenizer.words[target]), ", path by path");
    $("paths").replaceChildren(heading, table(caption, columns, rows, "Paths"));
  }

  // ---- the arithmetic of a strand ----

  let opened; // the strand
  const words = {
    source: (from) => (from in run.tokens ? `${tokenizer.words[run.tokens[from]]} (${from})` : from === "mean" ? "mean over text" : from),
    strand: (strand) => {
      const from = strand.path ? words.source(beginning(run, strand)) : `${strand.some.length} smaller parts`;
      const heads = (strand.path ?? []).filter((name) => run.heads[name]).map(spelled);
      return `${[from, ...heads, "logit"].join(" → ")}: ${difference(strand.value)}`;
    },
  };

  // One product for each way through the positions, or the parts of a ribbon of several strands.
  function openStrand(strand) {
    opened = strand;
    const ways = strand.path && strand.source !== null ? strandRoutes(run, state.token, strand) : [];
    const value = (way) => way.attention * way.scale * strand.entry;
    ways.sort((a, b) => Math.abs(value(b)) - Math.abs(value(a)));
    const rows = ways.slice(0, SHOWN).map((way) => {
      const factors = [way.attention, way.scale, strand.entry].map((factor) => String(Number(factor.toPrecision(3))).replace("-", "−"));
      return [way.places.join(" → "), ...factors.flatMap((factor, i) => (i ? ["×", factor] : [factor])), "=", logit(value(way), "part")];
    });
    const others = ways.slice(SHOWN);
    const left = strand.value - sumOf(ways.slice(0, SHOWN).map(value)); // with those too small to be listed
    const blank = Array(6).fill("");
    if (others.length) rows.push([`${others.length} other ways`, ...blank, logit(left, "part")]);
    for (const part of (strand.some ?? []).slice(0, SHOWN)) rows.push([words.strand(part).split(":")[0], ...blank, logit(part.value, "part")]);
    rows.push(["sum", ...blank, logit(strand.value, "total")]);
    const columns = ["positions", "attention", "×", "norm scales", "×", "entry", "=", "logit"];
    const caption = "Entry: what the table of this path, W_U W_OV ⋯ W_E, holds for the two tokens, above the mean over next tokens.";
    $("arithmetic").replaceChildren(make("h3", {}, words.strand(strand)), table(caption, columns, rows, "Arithmetic"));
  }

  function drawScore() {
    const [query, key] = [state.token, shownKey()];
    const { queries, keys, values, position } = scorePaths(run, state.head, query, key);
    const longest = Math.max(...values.flat().map(Math.abs)) || 1;
    const pair = (value) => logit(value, value < 0 ? "pair less" : "pair", { size: Math.abs(value) / longest });
    const rows = values.map((row, q) => [sayPath(queries[q]), ...row.map(pair)]);
    const title = `Why head ${spelled(state.head)} looks here: query `;
    const heading = make("h3", {}, title, ...place(query), ", key ", ...place(key));
    const [score, distance] = [sumOf(values.flat()) + position, position].map((value) => signed(value, 3));
    const total = `The score, ${score} nats, is the sum over all pairs of paths, plus ${distance} for the position.`;
    const caption = "A row for each path to the query, a column for each path to the key.";
    const columns = ["query path", ...keys.map(sayPath)];
    $("score").replaceChildren(heading, make("p", {}, total), table(caption, columns, rows, "Pairs of paths"));
  }

  // ---- pictures ----

  function enlarged(canvas) {
    const large = make("canvas", { width: 1024, height: 1024 });
    const drawing = large.getContext("2d");
    drawing.imageSmoothingEnabled = false;
    drawing.fillStyle = getComputedStyle(document.body).backgroundColor;
    drawing.fillRect(0, 0, 1024, 1024);
    drawing.drawImage(canvas, 0, 0, 1024, 1024);
    return large;
  }

  // A picture that needs no style sheet.
  function drawnSvg(shown) {
    const copy = shown.cloneNode(true);
    copy.setAttribute("xmlns", shown.namespaceURI);
    const [from, to] = [shown, copy].map((root) => root.querySelectorAll("path, text"));
    from.forEach((element, i) => {
      const style = getComputedStyle(element);
      for (const name of ["fill", "stroke", "opacity", "font"]) to[i].style[name] = style[name];
    });
    return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
  }

  // ---- start ----

  $("model").onchange = () => act({ model: $("model").value, head: "" });
  $("passage").onchange = ({ target: { value } }) =>
    act({ text: { own: $("text").value, random: null, ...passages }[value], target: null, key: null });
  const read = () => act({ text: $("text").value, target: null, key: null, token: Infinity });
  let typed; // many events of one frame, as of dictation, are read once
  $("text").oninput = () => {
    cancelAnimationFrame(typed);
    typed = requestAnimationFrame(read);
  };
  const anySeed = () => 1 + Math.floor(Math.random() * 1e6);
  $("random").onclick = () => act({ text: null, seed: anySeed(), target: null, key: null });
  for (const name of ["show", "cut"])
    $(name).onclick = () => example(name === "cut").then(() => act({}));
  $("numbers").onchange = () => $("tokens").classList.toggle("numbered", $("numbers").checked);
  $("tour").ontoggle = turnTour;
  $("back").onclick = () => goToStep(stepNow - 1);
  $("next").onclick = () => goToStep(stepNow + 1);
  $("undo").onclick = () => act({ off: [] });
  $("keep").onclick = () => act({ kept: state.kept ? null : { model: state.model, off: state.off } });
  $("stage").max = stages.length - 1;
  $("stage").oninput = () => act({ model: stages[$("stage").value] });
  $("save-flow").onclick = () => saveFile("flow.svg", drawnSvg($("flow").firstChild));
  $("save-matrix").onclick = () => enlarged($("matrix")).toBlob((blob) => saveFile(`head ${spelled(state.head)}.png`, blob));
  $("mode").onchange = () =>
    toggle(...[modeOf(state.head), $("mode").value].filter(Boolean).map((mode) => `${state.head}.${mode}`));
  listenToPassage($("tokens"), look);
  $("tokens").onpointerleave = () => look(state.token);
  const now = () => [run.tokens.length, state.token, shownKey()];
  listenToMatrix($("matrix"), now, sayCell, (token, key) => act({ token, key, target: null }));
  $("matrix").onpointerleave = () => state.head && sayCell(state.token, shownKey());
  matchMedia("(prefers-color-scheme: dark)").onchange = () => change({});
  addEventListener("hashchange", restore);
  models.get(deepest)().then((shown) => ($("cut").disabled = !keyEdges(shown).length));
  if (!restore()) example(false);
})();
