"use strict";
// Watch it learn: the attention pattern of a head on a passage, at every checkpoint of training.
(() => {
  const $ = (name) => document.getElementById(`w-${name}`);
  const watch = document.getElementById("watch");
  const blocks = new Map([...document.querySelectorAll("script[data-watch]")].map((b) => [b.dataset.watch, b]));
  const loaded = new Map();
  const PACE = 350; // milliseconds for which a checkpoint is shown
  const TICKS = 6;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const state = { head: 0, passage: 0, at: 0, query: 0, key: 0 };
  let model, playing;

  // ---- records ----

  async function read(name) {
    const found = JSON.parse(blocks.get(name).textContent);
    found.patterns = await unpack(found.patterns);
    return found;
  }

  const upTo = (n) => [...Array(n).keys()];
  const last = () => model.tokens_seen.length - 1;
  const tokens = () => model.passages[state.passage].tokens;

  function attention(head, query, key) {
    const frame = $("kind").value ? last() + 1 : state.at;
    return attentionOf(model, { passage: state.passage, head, frame }, query, key);
  }

  function strongest(query, from = 0) {
    const row = upTo(query + 1).map((key) => (key < from ? -1 : attention(state.head, query, key)));
    return row.indexOf(Math.max(...row));
  }

  const amount = (n) => (n >= 1e4 ? `${(n / 1e6).toFixed(2)} M` : n.toLocaleString("en"));
  const score = (value) => value.toFixed(2);

  // ---- drawing ----

  function paint(canvas, head) {
    paintMatrix(canvas, tokens().length, watch, (query, key) => attention(head, query, key));
  }

  // Everything that changes with the checkpoint.
  function drawFrame() {
    const { at, head } = state;
    const share = last() ? at / last() : 0;
    const [loss, matching, previous] = [model.loss[at], model.prefix_matching[head][at], model.previous_token[head][at]];
    paint($("matrix"), head);
    for (const button of $("heads").querySelectorAll("button")) paint(button.firstChild, Number(button.dataset.head));
    $("at").value = String(at);
    $("plots").style.setProperty("--at", share);
    $("loss").style.setProperty("--level", level(loss, model.loss));
    $("matching").style.setProperty("--level", level(matching, [0, 1]));
    $("seen").textContent = amount(model.tokens_seen[at]);
    const said = `loss ${score(loss)} nats, prefix matching ${score(matching)}, previous token ${score(previous)}`;
    $("scores").textContent = `Checkpoint ${at + 1} of ${last() + 1}: ${said}.`;
    $("at").setAttribute("aria-valuetext", `${amount(model.tokens_seen[at])} tokens seen, ${said}`);
    point();
  }

  const level = (value, all) => 1 - (value - Math.min(...all)) / (Math.max(...all) - Math.min(...all) || 1);

  // The curves of the model, with those of the chosen head on top.
  function drawCurves() {
    const line = (values, all, kind = "") => {
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      const x = (i) => (100 * i) / Math.max(1, values.length - 1);
      path.setAttribute("d", values.map((v, i) => `${i ? "L" : "M"}${x(i)} ${100 * level(v, all)}`).join(""));
      path.setAttribute("class", kind);
      return path;
    };
    const others = model.prefix_matching.map((values) => line(values, [0, 1]));
    const own = ["previous_token", "prefix_matching"].map((name, i) =>
      line(model[name][state.head], [0, 1], ["previous", "matching"][i]),
    );
    const ends = [Math.max(...model.loss), Math.min(...model.loss)].map((v) => v.toFixed(1));
    for (const [name, lines, labels] of [
      ["loss", [line(model.loss, model.loss, "loss")], ends],
      ["matching", [...others, ...own], ["1", "0"]],
    ]) {
      $(name).querySelector("svg").replaceChildren(...lines);
      $(name).querySelector(".axis").replaceChildren(...labels.map((label) => make("span", label)));
    }
  }

  function drawTime() {
    const { tokens_seen: seen, onset } = model;
    const places = [...new Set(upTo(TICKS).map((i) => Math.round((i * last()) / (TICKS - 1))))];
    const ticks = places.map((at) => {
      const tick = make("span", amount(seen[at]));
      tick.style.setProperty("--at", last() ? at / last() : 0);
      return tick;
    });
    $("ticks").replaceChildren(...ticks);
    $("at").max = String(last());
    const after = seen.findIndex((n) => n >= onset);
    const share = onset === null ? 1 : (after - (seen[after] - onset) / (seen[after] - seen[after - 1])) / last();
    $("onset").style.setProperty("--at", share);
    $("onset").classList.toggle("none", onset === null);
    $("onset").classList.toggle("late", share > 0.6);
    const said = onset === null ? "no onset" : `onset: ${amount(onset)}`;
    $("onset").firstElementChild.textContent = said;
  }

  function drawHeads() {
    const thumbnail = (name, h) => {
      const button = Object.assign(make("button", "", "thumb"), { type: "button" });
      const role = model.roles[h];
      button.dataset.head = h;
      button.append(make("canvas"), spelled(name), make("small", role === "no label" ? "" : role));
      button.setAttribute("aria-label", `${spelled(name)}: ${role}`);
      button.addEventListener("click", () => chooseHead(h));
      return button;
    };
    const buttons = model.heads.map(thumbnail);
    const layers = Object.entries(Object.groupBy(buttons, (_, h) => model.heads[h].split("H")[0].slice(1)));
    const boxes = layers.reverse().map(([layer, heads]) => {
      const box = make("fieldset", "", "role");
      box.append(make("legend", `Layer ${layer}`), ...heads);
      return box;
    });
    $("heads").replaceChildren(...boxes);
  }

  function drawTokens() {
    const buttons = tokens().map((text, i) => {
      const button = Object.assign(make("button", text, "token"), { type: "button", tabIndex: -1 });
      for (const event of ["mouseenter", "focus"]) button.addEventListener(event, () => choose(i, strongest(i), true));
      return button;
    });
    const copies = (i) => i <= tokens().length / 2 + 1 && tokens().slice(i).every((text, j) => text === tokens()[1 + j]);
    const second = tokens().findIndex((_, i) => i > 1 && copies(i)); // where the second copy of a passage begins
    const ends = (i) => i === second - 1 || tokens()[i].includes("↵");
    $("tokens").replaceChildren(...buttons.flatMap((b, i) => (ends(i) ? [b, make("br")] : [b])));
  }

  // ---- the pair of tokens ----

  function choose(query, key, pointing) {
    Object.assign(state, { query, key: Math.min(query, key) });
    watch.classList.toggle("pointing", pointing);
    point();
  }

  function point() {
    const { head, query, key } = state;
    const n = tokens().length;
    for (const [line, at, label] of [["row", query, "query"], ["column", key, "key"]]) {
      const span = watch.querySelector(`.matrix .${line}`);
      span.style.setProperty("--at", at / n);
      span.style.setProperty("--size", 1 / n);
      $(label).style.setProperty("--at", (at + 0.5) / n);
      $(label).textContent = tokens()[at];
    }
    $("tokens").querySelectorAll("button").forEach((button, j) => {
      button.style.setProperty("--out", j <= query ? attention(head, query, j).toFixed(3) : 0);
      button.style.setProperty("--in", j >= query ? attention(head, j, query).toFixed(3) : 0);
      button.tabIndex = j === query ? 0 : -1;
      button.classList.toggle("here", j === query);
    });
    const word = (i) => [make("code", tokens()[i]), ` (${i})`];
    const share = `: ${Math.round(100 * attention(head, query, key))} %`;
    const name = spelled(model.heads[head]);
    $("said").replaceChildren(`${name}: `, ...word(query), " attends to ", ...word(key), share, ".");
  }

  function pointed(event) {
    const box = $("matrix").getBoundingClientRect();
    const at = (from, size) => Math.max(0, Math.min(tokens().length - 1, Math.floor((from / size) * tokens().length)));
    choose(at(event.clientY - box.top, box.height), at(event.clientX - box.left, box.width), true);
  }

  // Chooses the query with the largest attention to a key other than itself and position 0.
  function chooseStriking() {
    const best = (query) => Math.max(...upTo(query).slice(1).map((key) => attention(state.head, query, key)), 0);
    const most = upTo(tokens().length).map(best);
    const query = most.indexOf(Math.max(...most));
    choose(query, strongest(query, 1), false);
  }

  // ---- choices ----

  async function chooseModel() {
    const name = $("model").value;
    if (!loaded.has(name)) loaded.set(name, read(name));
    const found = await loaded.get(name);
    if (name !== $("model").value) return; // another model has been chosen since
    model = found;
    state.at = last();
    fill($("passage"), model.passages.map((p, i) => [String(i), p.kind]), String(state.passage));
    drawHeads();
    drawTime();
    drawTokens();
    chooseHead(model.look);
    chooseStriking();
  }

  function chooseHead(h) {
    state.head = h;
    for (const button of $("heads").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.head) === h));
    }
    const title = spelled(`Head ${model.heads[h]} of ${model.name}: ${model.roles[h]}`);
    $("head").textContent = title;
    $("matrix").setAttribute("aria-label", `Attention of ${title}. A row for each query, a column for each key.`);
    drawCurves();
    drawFrame();
  }

  function go(at) {
    state.at = Math.max(0, Math.min(last(), at));
    if ($("kind").value) $("kind").value = "";
    drawFrame();
  }

  function play(on) {
    clearInterval(playing);
    if (on && still.matches) {
      go(state.at === last() ? 0 : state.at + 1); // no motion that was not asked for: one checkpoint a press
      on = false;
    } else if (on) {
      if (state.at === last()) go(0);
      playing = setInterval(() => (state.at < last() ? go(state.at + 1) : play(false)), PACE);
    }
    if (!on) playing = undefined;
    $("play").textContent = playing ? "❚❚ Pause" : still.matches ? "▶ Next" : "▶ Play";
  }

  // ---- start ----

  function moveTime(event) {
    const steps = { ArrowRight: 1, ArrowLeft: -1 };
    if (event.key === " " && event.target === $("at")) play(!playing);
    else if (event.target.matches("button:not(.token)") && event.key in steps) go(state.at + steps[event.key]);
    else return;
    event.preventDefault();
  }

  function moveToken(event) {
    const buttons = $("tokens").querySelectorAll("button");
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };
    if (!(event.key in steps)) return;
    event.preventDefault();
    buttons[Math.max(0, Math.min(buttons.length - 1, state.query + steps[event.key]))].focus();
  }

  function movePair(event) {
    const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const [query, key] = [state.query + steps[event.key][0], state.key + steps[event.key][1]];
    choose(Math.max(0, Math.min(tokens().length - 1, query)), Math.max(0, key), true);
  }

  function drag(event) {
    if (!event.buttons) return;
    const box = $("plots").getBoundingClientRect();
    play(false);
    go(Math.round(((event.clientX - box.left) / box.width) * last()));
  }

  function listen() {
    $("model").addEventListener("change", () => (play(false), chooseModel()));
    $("passage").addEventListener("change", () => {
      state.passage = Number($("passage").value);
      drawTokens();
      chooseStriking();
      drawFrame();
    });
    $("kind").addEventListener("change", () => {
      play(false);
      if ($("kind").value) state.at = last();
      drawFrame();
    });
    $("at").addEventListener("input", () => (play(false), go(Number($("at").value))));
    $("play").addEventListener("click", () => play(!playing));
    $("tokens").addEventListener("keydown", moveToken);
    $("matrix").addEventListener("keydown", movePair);
    $("matrix").addEventListener("focus", () => choose(state.query, state.key, true));
    for (const event of ["pointermove", "pointerdown"]) $("matrix").addEventListener(event, pointed);
    for (const event of ["pointermove", "pointerdown"]) $("plots").addEventListener(event, drag);
    for (const [from, event] of [["matrix", "pointerleave"], ["tokens", "mouseleave"], ["matrix", "blur"]]) {
      $(from).addEventListener(event, () => watch.classList.remove("pointing"));
    }
    watch.addEventListener("keydown", moveTime);
    still.addEventListener("change", () => play(false));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawFrame);
  }

  watch.hidden = false;
  if (!("DecompressionStream" in window && Object.groupBy)) {
    watch.textContent = "The patterns over training need a browser of 2024 or later.";
    return;
  }
  fill($("model"), [...blocks].map(([name, block]) => [name, name + block.dataset.kind]), "");
  play(false);
  listen();
  chooseModel();
})();
