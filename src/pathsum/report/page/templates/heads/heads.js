"use strict";
// Heads and what they read: a graph of heads, and a card with the evidence about the chosen head.
(() => {
  const $ = (name) => document.getElementById(`h-${name}`);
  const heads = document.getElementById("heads");
  const blocks = new Map([...document.querySelectorAll("script[data-heads]")].map((b) => [b.dataset.heads, b]));
  const SIDES = { Q: "queries", K: "keys", V: "values" };
  const WIDEST = 14; // pixels
  const state = { head: "", early: "" };
  const watched = {};
  let model;

  const find = (name) => model.heads.find((h) => h.name === name);
  const shown = () => model.edges.filter((e) => e.kind === $("kind").value);
  const above = (edge) => Math.max(0, edge.composition - edge.chance);
  const worth = (edge) => edge.cost !== null && edge.cost.second[1] > 0;
  const interval = ([value, low, high], digits) =>
    `${value < 0 ? "" : "+"}${signed(value, digits)} [${signed(low, digits)}, ${signed(high, digits)}]`;

  // The head with the costliest edge, or without edges the one whose ablation costs most.
  function costliest() {
    const best = (all, cost) => all.reduce((a, b) => (cost(b) > cost(a) ? b : a), all[0]);
    const edge = best(model.edges, (e) => e.cost?.second[0] ?? -Infinity);
    return edge ? edge.late : best(model.heads, (h) => h.cost?.second[0] ?? -Infinity).name;
  }

  // ---- drawing ----

  function drawMap() {
    const layers = [...new Set(model.heads.map((h) => h.layer))].sort((a, b) => b - a);
    $("heads").replaceChildren(
      ...layers.map((layer) => {
        const row = make("div", "", "layer");
        for (const head of model.heads.filter((h) => h.layer === layer)) {
          const button = Object.assign(make("button", spelled(head.name)), { type: "button" });
          button.dataset.head = head.name;
          button.append(make("small", head.labels[0] ?? "no label"));
          button.onclick = () => choose(head.name, "");
          row.append(button);
        }
        return row;
      }),
    );
  }

  function drawEdges() {
    const space = $("heads").getBoundingClientRect();
    const places = new Map([...$("heads").querySelectorAll("button")].map((b) => [b.dataset.head, b.getBoundingClientRect()]));
    const largest = Math.max(...model.edges.map(above), 1e-9);
    const order = [...shown()].sort((a, b) => worth(a) - worth(b) || above(a) - above(b));
    $("edges").replaceChildren(
      ...order.map((edge) => {
        const [from, to] = [places.get(edge.early), places.get(edge.late)];
        const [x1, y1] = [from.left + from.width / 2 - space.left, from.top - space.top];
        const [x2, y2] = [to.left + to.width / 2 - space.left, to.bottom - space.top];
        const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
        path.setAttribute("d", `M${x1} ${y1}C${x1} ${(y1 + y2) / 2} ${x2} ${(y1 + y2) / 2} ${x2} ${y2}`);
        path.setAttribute("stroke-width", String(1 + (WIDEST * above(edge)) / largest));
        const touches = [edge.early, edge.late].includes(state.head);
        path.classList.toggle("costs", worth(edge));
        path.classList.toggle("other", !touches);
        path.onclick = () => choose(edge.late, edge.early);
        return path;
      }),
    );
    for (const button of $("heads").querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(button.dataset.head === state.head));
  }

  // ---- the card of the chosen head ----

  function drawCard() {
    const head = find(state.head);
    const card = [make("h3", `Head ${spelled(head.name)}: ${head.labels.join(", ") || "no label"}`)];
    const scores = head.scores.map(([name, ...three]) => `${name} ${three[0].toFixed(2)} [${three[1].toFixed(2)}, ${three[2].toFixed(2)}]`);
    const always = `prefix matching ${head.prefix_matching.toFixed(2)}, previous token ${head.previous_token.toFixed(2)}, OV positivity ${signed(head.positivity, 2)}`;
    card.push(make("p", `Scores: ${always}.${scores.length ? ` Its labels rest on: ${scores.join("; ")}.` : ""}`));
    if (head.cost) {
      const { second, text } = head.cost;
      card.push(make("p", `Loss without it (resample ablation), nats per token: second copy ${interval(second, 2)}, text ${interval(text, 3)}.`));
    }
    if (head.examples.length) {
      const line = make("p", "Confirmed skip-trigrams, source … destination → output:");
      head.examples.forEach(([source, destination, out]) =>
        line.append(make("br"), make("code", source), " … ", make("code", destination), " → ", make("code", out)),
      );
      card.push(line);
    }
    const edges = shown().filter((e) => e.late === head.name);
    edges.sort((a, b) => (b.cost?.second[0] ?? 0) - (a.cost?.second[0] ?? 0));
    const rows = edges.map((e) => [
      spelled(e.early),
      `${e.composition.toFixed(2)} (${e.chance.toFixed(2)})${e.composes ? ", composes" : ""}`,
      e.cost ? interval(e.cost.second, 2) : "–",
      e.cost ? interval(e.cost.text, 3) : "–",
      ...inLab(e),
    ]);
    if (rows.length) {
      const into = SIDES[$("kind").value];
      const columns = ["head", "composition (chance)", "cutting it: second copy (nats)", "text (nats)"];
      if (rows[0].length > columns.length) columns.push("try it");
      card.push(table(`What the ${into} of ${spelled(head.name)} read`, columns, rows));
    }
    $("card").replaceChildren(...card);
    edges.forEach((e, i) => {
      if (e.early === state.early) $("card").querySelectorAll("tr")[i + 1].className = "chosen";
    });
  }

  // The attention of the head on random tokens given twice, after training, if the page has it.
  async function drawPattern() {
    const block = document.querySelector(`script[data-watch="${CSS.escape(model.name)}"]`);
    $("pattern").hidden = block === null;
    if (!block) return;
    const found = (watched[model.name] ??= JSON.parse(block.textContent));
    if (typeof found.patterns === "string") found.patterns = await unpack(found.patterns);
    const passage = 0; // random tokens, given twice
    const which = { passage, head: found.heads.indexOf(state.head), frame: found.tokens_seen.length - 1 };
    const paint = (query, key) => attentionOf(found, which, query, key);
    paintMatrix($("matrix"), found.passages[passage].tokens.length, heads, paint);
    $("matrix").setAttribute("aria-label", `Attention pattern of head ${spelled(state.head)}`);
  }

  // A link that cuts the edge in the lab; none if the lab lacks the model.
  function inLab(edge) {
    if (![...document.querySelectorAll("script[data-lab]")].some((b) => b.dataset.lab === model.name)) return [];
    const said = { model: model.name, head: edge.late, token: 40, random: 1, off: `${edge.early}-${edge.late}-${edge.kind}` };
    return [Object.assign(make("a", "lab"), { href: `#lab?${new URLSearchParams(said)}`, title: "cut this edge in the lab" })];
  }

  function choose(head, early) {
    Object.assign(state, { head, early });
    drawEdges();
    drawCard();
    drawPattern();
  }

  function open(name) {
    model = JSON.parse(blocks.get(name).textContent);
    $("kind").disabled = !model.edges.length;
    drawMap();
    choose(costliest(), "");
  }

  if (!blocks.size) return;
  heads.hidden = false;
  fill($("model"), [...blocks.keys()].map((n) => [n, n]));
  $("model").onchange = () => open($("model").value);
  $("kind").onchange = () => choose(state.head, state.early);
  new ResizeObserver(() => model && drawEdges()).observe($("heads"));
  open($("model").value);
})();
