"use strict";
// Watch it learn: the attention pattern of a head on a passage, at every checkpoint of training.
(() => {
  if (!MODERN) return;
  const $ = byId("w");
  const watch = document.getElementById("watch");
  const PACE = 350; // milliseconds for which a checkpoint is shown
  const TICKS = 6;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const state = { head: 0, passage: 0, at: 0, query: 0, key: 0 };
  let model, playing;

  const last = () => model.tokens_seen.length - 1;
  const tokens = () => model.passages[state.passage].tokens;
  const buttons = () => [...$("heads").querySelectorAll("button")];
  const amount = (n) => (n >= 1e4 ? `${(n / 1e6).toFixed(2)} M` : n.toLocaleString("en"));
  const level = (value, all) => 1 - (value - Math.min(...all)) / (Math.max(...all) - Math.min(...all) || 1);

  function attention(head, query, key) {
    const frame = $("kind").value ? last() + 1 : state.at;
    return attentionOf(model, { passage: state.passage, head, frame }, query, key);
  }

  function strongest(query, from = 0) {
    const row = range(query + 1).map((key) => (key < from ? -1 : attention(state.head, query, key)));
    return row.indexOf(Math.max(...row));
  }

  // ---- drawing ----

  function paint(canvas, head) {
    paintMatrix(canvas, tokens().length, (query, key) => attention(head, query, key));
  }

  // Everything that changes with the checkpoint.
  function drawFrame() {
    const { at, head } = state;
    const [loss, matching, previous] = [model.loss[at], model.prefix_matching[head][at], model.previous_token[head][at]];
    const seen = amount(model.tokens_seen[at]);
    paint($("matrix"), head);
    for (const button of buttons()) paint(button.firstChild, Number(button.dataset.head));
    $("at").value = at;
    vary($("plots"), { at: at / (last() || 1) });
    vary($("loss"), { level: level(loss, model.loss) });
    vary($("matching"), { level: level(matching, [0, 1]) });
    $("seen").textContent = seen;
    const scores = `prefix matching ${matching.toFixed(2)}, previous token ${previous.toFixed(2)}`;
    const said = `loss ${loss.toFixed(2)} nats, ${scores}`;
    $("scores").textContent = `Checkpoint ${at + 1} of ${last() + 1}: ${said}.`;
    $("at").setAttribute("aria-valuetext", `${seen} tokens seen, ${said}`);
    point();
  }

  // The curves of the model, with those of the chosen head on top.
  function drawCurves() {
    const line = (values, all, kind = "") => {
      const x = (i) => (100 * i) / (last() || 1);
      const d = values.map((v, i) => `${i ? "L" : "M"}${x(i)} ${100 * level(v, all)}`).join("");
      return svg("path", { d, class: kind });
    };
    const draw = (name, ends, ...lines) => {
      $(name).querySelector("svg").replaceChildren(...lines);
      $(name).querySelector(".axis").replaceChildren(...ends.map((end) => make("span", {}, end)));
    };
    const { loss, prefix_matching, previous_token } = model;
    const ends = [Math.max(...loss), Math.min(...loss)].map((v) => v.toFixed(1));
    draw("loss", ends, line(loss, loss, "loss"));
    const others = prefix_matching.map((values) => line(values, [0, 1]));
    const own = line(prefix_matching[state.head], [0, 1], "matching");
    draw("matching", ["1", "0"], ...others, line(previous_token[state.head], [0, 1], "previous"), own);
  }

  function drawTime() {
    const { tokens_seen: seen, onset } = model;
    const places = [...new Set(range(TICKS).map((i) => Math.round((i * last()) / (TICKS - 1))))];
    const tick = (at) => make("span", { vars: { at: at / (last() || 1) } }, amount(seen[at]));
    $("ticks").replaceChildren(...places.map(tick));
    $("at").max = last();
    const after = seen.findIndex((n) => n >= onset);
    const share = onset === null ? 1 : (after - (seen[after] - onset) / (seen[after] - seen[after - 1])) / last();
    vary($("onset"), { at: share });
    $("onset").classList.toggle("none", onset === null);
    $("onset").classList.toggle("late", share > 0.6);
    $("onset").firstElementChild.textContent = onset === null ? "no onset" : `onset: ${amount(onset)}`;
  }

  function drawHeads() {
    const thumbnails = model.heads.map((name, h) => {
      const role = model.roles[h];
      const properties = { className: "thumb", onclick: () => chooseHead(h) };
      const note = make("small", {}, role === "no label" ? "" : ` ${role}`);
      return make("button", { ...properties, data: { head: h } }, make("canvas"), spelled(name), note);
    });
    const layers = Object.entries(Object.groupBy(thumbnails, (_, h) => model.heads[h].match(/\d+/)[0]));
    const boxes = layers.reverse().map(([layer, heads]) => {
      return make("fieldset", { className: "role" }, make("legend", {}, `Layer ${layer}`), ...heads);
    });
    $("heads").replaceChildren(...boxes);
  }

  function drawTokens() {
    const words = tokens().map((word) => make("button", { className: "token", tabIndex: -1 }, word));
    const block = model.passages[state.passage].kind.endsWith("twice") ? Math.floor(words.length / 2) : NaN;
    fillPassage($("tokens"), tokens(), words, block);
  }

  // ---- the pair of tokens ----

  function choose(query, key, pointing = true) {
    Object.assign(state, { query, key });
    watch.classList.toggle("pointing", pointing);
    point();
  }

  function point() {
    const { head, query, key } = state;
    vary($("matrix").parentElement, { query, key, n: tokens().length });
    for (const name of ["query", "key"]) $(name).textContent = tokens()[state[name]];
    shade($("tokens"), query, (i, j) => attention(head, i, j));
    const word = (i) => [code(tokens()[i]), ` (${i})`];
    const share = `: ${Math.round(100 * attention(head, query, key))} %.`;
    $("said").replaceChildren(`${spelled(model.heads[head])}: `, ...word(query), " attends to ", ...word(key), share);
  }

  // Chooses the query with the largest attention to a key other than itself and position 0.
  function chooseStriking() {
    const best = (query) => Math.max(...range(query).slice(1).map((key) => attention(state.head, query, key)), 0);
    const most = range(tokens().length).map(best);
    const query = most.indexOf(Math.max(...most));
    choose(query, Math.min(query, strongest(query, 1)), false);
  }

  // ---- choices ----

  async function chooseModel() {
    const name = $("model").value;
    const found = await watched.get(name)();
    if (name !== $("model").value) return; // another model has been chosen since
    model = found;
    state.at = last();
    drawHeads();
    drawTime();
    drawTokens();
    chooseHead(model.look);
    chooseStriking();
  }

  function chooseHead(h) {
    state.head = h;
    for (const button of buttons()) button.ariaPressed = Number(button.dataset.head) === h;
    const title = `Head ${spelled(model.heads[h])} of ${$("model").selectedOptions[0].text}: ${model.roles[h]}`;
    $("head").textContent = title;
    $("matrix").ariaLabel = `Attention of ${title}. A row for each query, a column for each key.`;
    drawCurves();
    drawFrame();
  }

  function choosePassage() {
    state.passage = Number($("passage").value);
    drawTokens();
    chooseStriking();
    drawFrame();
  }

  function chooseKind() {
    if ($("kind").value) state.at = last();
    drawFrame();
  }

  function go(at) {
    state.at = clamp(at, last() + 1);
    $("kind").value = "";
    drawFrame();
  }

  function play(on) {
    clearInterval(playing);
    playing = undefined;
    if (on && state.at === last()) go(0);
    else if (on && still.matches) go(state.at + 1); // no motion that was not asked for: one checkpoint a press
    if (on && !still.matches) playing = setInterval(() => (state.at < last() ? go(state.at + 1) : play(false)), PACE);
    $("play").textContent = playing ? "❚❚ Pause" : still.matches ? "▶ Next" : "▶ Play";
  }

  function moveTime(event) {
    const steps = { ArrowRight: 1, ArrowLeft: -1 };
    if (event.key === " " && event.target === $("at")) play(!playing);
    else if (event.target.matches("button:not(.token)") && event.key in steps) go(state.at + steps[event.key]);
    else return;
    event.preventDefault();
  }

  function drag(event) {
    if (!event.buttons) return;
    const box = $("plots").getBoundingClientRect();
    play(false);
    go(Math.round(((event.clientX - box.left) / box.width) * last()));
  }

  // ---- start ----

  const pausing = (act) => () => (play(false), act());
  $("model").onchange = pausing(chooseModel);
  $("passage").onchange = choosePassage;
  $("kind").onchange = pausing(chooseKind);
  $("at").oninput = pausing(() => go(Number($("at").value)));
  $("play").onclick = () => play(!playing);
  listenToPassage($("tokens"), (i) => choose(i, strongest(i)));
  listenToMatrix($("matrix"), () => [tokens().length, state.query, state.key], choose, choose);
  $("matrix").onfocus = () => choose(state.query, state.key);
  for (const name of ["tokens", "matrix"]) $(name).onpointerleave = () => watch.classList.remove("pointing");
  $("matrix").onblur = $("matrix").onpointerleave;
  $("plots").onpointermove = $("plots").onpointerdown = drag;
  watch.onkeydown = moveTime;
  still.onchange = () => play(false);
  matchMedia("(prefers-color-scheme: dark)").onchange = drawFrame;
  play(false);
  chooseModel();
})();
