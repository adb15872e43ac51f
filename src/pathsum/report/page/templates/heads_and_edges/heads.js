"use strict";
// Heads and what they read: a graph of heads, and a card with the evidence about the chosen head.
(() => {
  if (!MODERN) return;
  const $ = byId("h");
  const models = modelsOf("heads_and_edges");
  const inLab = modelsOf("lab");
  const WIDEST = 14; // pixels
  const state = { head: "", early: "" };
  let model;

  const shown = () => model.edges.filter((e) => e.kind === $("kind").value);
  const above = (edge) => Math.max(0, edge.composition - edge.chance);
  const worth = (edge) => edge.cost !== null && edge.cost.second[1] > 0;
  const second = ({ cost }) => cost?.second[0] ?? -Infinity;
  const ends = ([low, high], digits) => `[${signed(low, digits)}, ${signed(high, digits)}]`;
  const interval = ([value, ...range], digits) =>
    `${value < 0 ? "" : "+"}${signed(value, digits)} ${ends(range, digits)}`;
  const buttons = () => [...$("heads").querySelectorAll("button")];

  // The head with the costliest edge, or without edges the one whose ablation costs most.
  function costliest() {
    const worst = (all) => all.reduce((a, b) => (second(b) > second(a) ? b : a));
    return model.edges.length ? worst(model.edges).late : worst(model.heads).name;
  }

  // ---- drawing ----

  function drawMap() {
    const layers = Object.values(Object.groupBy(model.heads, (head) => head.layer)).reverse();
    const rows = layers.map((heads) =>
      heads.map(({ name, labels }) => {
        const properties = { data: { head: name }, onclick: () => choose(name, "") };
        return make("button", properties, spelled(name), make("small", {}, labels[0] ?? "no label"));
      }),
    );
    $("heads").replaceChildren(...rows.map((row) => make("div", { className: "layer" }, ...row)));
  }

  function drawEdges() {
    const space = $("heads").getBoundingClientRect();
    const places = new Map(buttons().map((b) => [b.dataset.head, b.getBoundingClientRect()]));
    const largest = Math.max(...model.edges.map(above), 1e-9);
    const order = shown().sort((a, b) => worth(a) - worth(b) || above(a) - above(b));
    const paths = order.map((edge) => {
      const [from, to] = [places.get(edge.early), places.get(edge.late)];
      const [x1, y1] = [from.left + from.width / 2 - space.left, from.top - space.top];
      const [x2, y2] = [to.left + to.width / 2 - space.left, to.bottom - space.top];
      const middle = (y1 + y2) / 2;
      const d = `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`;
      const path = svg("path", { d, "stroke-width": 1 + (WIDEST * above(edge)) / largest });
      path.classList.toggle("costs", worth(edge));
      path.classList.toggle("other", ![edge.early, edge.late].includes(state.head));
      path.onclick = () => choose(edge.late, edge.early);
      return path;
    });
    $("edges").replaceChildren(...paths);
    for (const button of buttons()) button.ariaPressed = button.dataset.head === state.head;
  }

  // ---- the card of the chosen head ----

  function drawCard() {
    const head = model.heads.find((h) => h.name === state.head);
    const name = spelled(head.name);
    const lines = [make("h3", {}, `Head ${name}: ${head.labels.join(", ") || "no label"}`)];
    const line = (...content) => lines.push(make("p", {}, ...content));
    const { prefix_matching, previous_token, positivity, scores } = head;
    const always = `prefix matching ${signed(prefix_matching, 2)}, previous token ${signed(previous_token, 2)}`;
    const rest = scores.map(([label, score, ...range]) => `${label} ${signed(score, 2)} ${ends(range, 2)}`).join("; ");
    line(`Scores: ${always}, OV positivity ${signed(positivity, 2)}.${rest && ` Its labels rest on: ${rest}.`}`);
    const far = head.distances.map(([d, share]) => `${percent(share)} ${d} back`).join(", ");
    line(`On text it attends to the first token by ${percent(head.bos)}${far && `; by distance: ${far}`}.`);
    if (head.raises) line(`It raises the logits of what it attends to by ${interval(head.raises, 2)} nats.`);
    if (head.cost) {
      const costs = `second copy ${interval(head.cost.second, 2)}, text ${interval(head.cost.text, 3)}`;
      line(`Loss without it (resample ablation), nats per token: ${costs}.`);
    }
    if (head.examples.length) {
      const trigram = ([source, end, out]) => [make("br"), code(source), " … ", code(end), " → ", code(out)];
      line("Confirmed skip-trigrams, source … destination → output:", ...head.examples.flatMap(trigram));
    }
    const links = [make("a", { href: address() }, "Link to this head")];
    const lab = { model: model.name, head: head.name, token: 40, random: 1 };
    if (inLab.has(model.name)) links.push(" · ", make("a", { href: `#lab?${new URLSearchParams(lab)}` }, "Open it in the lab"));
    line(...links);
    const edges = shown().filter((e) => e.late === head.name).sort((a, b) => second(b) - second(a));
    if (edges.length) lines.push(reads(name, edges));
    $("card").replaceChildren(...lines);
  }

  function reads(name, edges) {
    const columns = ["head", "composition (chance)", "cutting it: second copy (nats)", "text (nats)"];
    if (inLab.has(model.name)) columns.push("try it");
    const rows = edges.map((edge) => [
      spelled(edge.early),
      `${edge.composition.toFixed(2)} (${edge.chance.toFixed(2)})${edge.composes ? ", composes" : ""}`,
      edge.cost ? interval(edge.cost.second, 2) : "–",
      edge.cost ? interval(edge.cost.text, 3) : "–",
      ...(inLab.has(model.name) ? [link(edge)] : []),
    ]);
    const made = table(`What the ${$("kind").selectedOptions[0].text} of ${name} read`, columns, rows);
    const lines = made.querySelectorAll("tr");
    edges.forEach((edge, i) => lines[i + 1].classList.toggle("chosen", edge.early === state.early));
    return made;
  }

  // A link that cuts the edge in the lab.
  function link({ early, late, kind }) {
    const said = { model: model.name, head: late, token: 40, random: 1, off: `${early}-${late}-${kind}` };
    return make("a", { href: `#lab?${new URLSearchParams(said)}`, title: "cut this edge in the lab" }, "lab");
  }

  // The attention of the head on random tokens given twice, after training, if the page has it.
  async function drawPattern() {
    $("pattern").hidden = !watched.has(model.name);
    if ($("pattern").hidden) return;
    const found = await watched.get(model.name)();
    const passage = 0; // random tokens, given twice
    const which = { passage, head: found.heads.indexOf(state.head), frame: found.tokens_seen.length - 1 };
    const weight = (query, key) => attentionOf(found, which, query, key);
    paintMatrix($("matrix"), found.passages[passage].tokens.length, weight);
    $("matrix").ariaLabel = `Attention pattern of head ${spelled(state.head)}`;
  }

  const address = () => `#heads?${new URLSearchParams({ model: model.name, head: state.head })}`;

  // Shows the model and the head in the address, if it has these.
  function restore() {
    if (!location.hash.startsWith("#heads?")) return;
    const said = new URLSearchParams(location.hash.slice(7));
    if (!models.has(said.get("model"))) return;
    $("model").value = said.get("model");
    open();
    if (model.heads.some(({ name }) => name === said.get("head"))) choose(said.get("head"), "");
    document.getElementById("heads").closest("section").scrollIntoView();
  }

  function choose(head, early) {
    Object.assign(state, { head, early });
    drawEdges();
    drawCard();
    drawPattern();
  }

  function open() {
    model = models.get($("model").value)();
    $("kind").disabled = !model.edges.length;
    drawMap();
    choose(costliest(), "");
  }

  $("model").onchange = open;
  $("kind").onchange = () => choose(state.head, state.early);
  new ResizeObserver(drawEdges).observe($("heads"));
  addEventListener("hashchange", restore);
  open();
  restore();
})();
