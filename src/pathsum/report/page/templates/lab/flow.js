"use strict";
// The flow of one logit: a ribbon for each strand (paths.js), from its token through its heads to the logit, as wide as
// its part is large. The smaller strands are two ribbons, one for each sign. say: words for a strand and for a source;
// open is called with the strand that the reader chooses. Returns all strands.
function drawFlow(box, run, position, token, say, open) {
  const STRANDS = 12;
  const [HEIGHT, GAP, LABEL, BAR] = [340, 22, 110, 8];
  const all = logitStrands(run, position, token).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const rest = all.slice(STRANDS);
  const signs = [rest.filter(({ value }) => value > 0), rest.filter(({ value }) => value < 0)];
  const others = signs.filter((some) => some.length).map((some) => {
    return { path: null, some, value: sumOf(some.map(({ value }) => value)) };
  });
  const start = (strand) => (strand.path ? beginning(run, strand) : "others");
  const order = (strand) => (strand.path ? (strand.source ?? run.tokens.length) : Infinity);
  const strands = [...all.slice(0, STRANDS), ...others].sort((a, b) => (order(a) === order(b) ? b.value - a.value : order(a) - order(b)));

  // The node of a strand in each column: where it begins, its head or none in each layer, the logit.
  const { n_layers, heads, roles } = run.model;
  const layers = range(n_layers).map((layer) => heads.filter((head) => head.layer === layer).map(({ name }) => name));
  const nodesOf = (strand) => [start(strand), ...layers.map((names) => names.find((name) => strand.path?.includes(name)) ?? ""), "logit"];
  const width = Math.max(300, box.clientWidth);
  const columns = range(n_layers + 2);
  const x = (column) => LABEL + ((width - LABEL - 70) * column) / (n_layers + 1);
  const total = sumOf(strands.map(({ value }) => Math.abs(value))) || 1;
  const most = Math.max(...columns.map((c) => new Set(strands.map((strand) => nodesOf(strand)[c])).size));
  const thick = (value) => (Math.abs(value) / total) * (HEIGHT - GAP * most);

  // From the top: each node as high as its strands, and the middle of each strand in it.
  const drawn = strands.map((strand) => ({ strand, at: [] }));
  const nodes = columns.flatMap((column) => {
    const named = Map.groupBy(drawn, ({ strand }) => nodesOf(strand)[column]);
    const names = column && column <= n_layers ? ["", ...layers[column - 1]] : [...named.keys()];
    let y = GAP;
    return names.filter((name) => named.has(name)).map((name) => {
      const top = y;
      for (const { strand, at } of named.get(name).toSorted((a, b) => (column ? a.at.at(-1)[1] - b.at.at(-1)[1] : 0))) {
        at.push([x(column), y + thick(strand.value) / 2]);
        y += thick(strand.value);
      }
      const made = { column, name, top, bottom: y, value: sumOf(named.get(name).map(({ strand }) => strand.value)) };
      y += GAP;
      return made;
    });
  });

  const ribbons = drawn.map(({ strand, at }) => {
    const bend = ([x0, y0], [x1, y1]) => `C${(x0 + x1) / 2} ${y0} ${(x0 + x1) / 2} ${y1} ${x1} ${y1}`;
    const d = `M${at[0]}${at.slice(1).map((to, i) => bend(at[i], to)).join("")}`;
    const aria = { tabindex: 0, role: "button", "aria-label": say.strand(strand) };
    const ribbon = svg("path", { d, class: strand.value < 0 ? "less" : "more", "stroke-width": Math.max(1, thick(strand.value)), ...aria });
    ribbon.append(svg("title", {}, say.strand(strand)));
    ribbon.onclick = () => open(strand);
    ribbon.onkeydown = (event) => {
      if (!["Enter", " "].includes(event.key)) return;
      event.preventDefault();
      open(strand);
    };
    return ribbon;
  });
  const label = (x, y, anchor, text) => svg("text", { x, y, "text-anchor": anchor }, text);
  const marks = nodes.filter(({ name }) => name !== "").flatMap(({ column, name, top, bottom, value }) => {
    const bar = svg("path", { d: `M${x(column)} ${top}V${Math.max(bottom, top + 1)}`, class: "node", "stroke-width": BAR });
    const middle = (top + bottom) / 2 + 4;
    if (column === 0) return [bar, label(x(0) - BAR, middle, "end", say.source(name))];
    if (name === "logit") return [bar, label(x(column) + BAR, middle, "start", `logit ${signed(value, 2)}`)];
    const role = width > 600 && roles[name] && roles[name] !== "no label" ? ` ${roles[name]}` : "";
    return [bar, label(x(column), top - 5, "middle", `${spelled(name)}${role}`)];
  });
  const height = Math.max(...nodes.map(({ bottom }) => bottom)) + 4;
  refill(box, svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "Flow of the logit" }, ...ribbons, ...marks));
  return all;
}
