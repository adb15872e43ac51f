"use strict";
// Small pieces of the page, for all widgets. Tokens come from a corpus: they reach the page as text alone.
const MODERN = "Float16Array" in window;
for (const widget of document.querySelectorAll(".widget")) {
  widget.hidden = false;
  if (!MODERN) widget.textContent = "This part needs a browser of 2025 or later.";
}

// An element with properties, data attributes, CSS variables, and texts or elements in it.
function make(tag, { data = {}, vars = {}, ...properties } = {}, ...content) {
  const made = Object.assign(document.createElement(tag), properties);
  Object.assign(made.dataset, data);
  made.append(...content);
  return vary(made, vars);
}

function vary(element, vars) {
  for (const [name, value] of Object.entries(vars)) element.style.setProperty(`--${name}`, value);
  return element;
}

// An SVG element.
function svg(tag, attributes, ...content) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...content);
  return made;
}

function saveFile(name, blob) {
  const href = URL.createObjectURL(blob);
  make("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
}

const code = (word) => make("code", {}, word);
const byId = (widget) => (name) => document.getElementById(`${widget}-${name}`);
const range = (n) => [...Array(n).keys()];
const clamp = (x, n) => Math.max(0, Math.min(n - 1, x));
const sumOf = (numbers) => numbers.reduce((a, b) => a + b, 0);

// Replace what is in a box. The focus stays at its place among the controls.
function refill(box, ...content) {
  const controls = () => [...box.querySelectorAll("button, input, [role=button]")];
  const at = controls().indexOf(document.activeElement);
  box.replaceChildren(...content);
  controls()[at]?.focus();
}

// The models of a widget, by name: functions that read them from their blocks of data, once.
function modelsOf(widget, prepare = (model) => model) {
  const entry = (block) => {
    let read;
    return [block.dataset.model, () => (read ??= prepare(JSON.parse(block.textContent)))];
  };
  return new Map([...document.querySelectorAll(`script[data-widget=${widget}]`)].map(entry));
}

// The numbers that Python has packed: all first bytes, all second bytes, …, deflated, in base64.
async function unpack(text, Numbers) {
  const plain = new Blob([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))]).stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(plain).arrayBuffer());
  const bytes = new Uint8Array(planes.length);
  const [size, n] = [Numbers.BYTES_PER_ELEMENT, planes.length / Numbers.BYTES_PER_ELEMENT];
  for (let at = 0; at < size; at++) for (let i = 0; i < n; i++) bytes[i * size + at] = planes[at * n + i];
  return new Numbers(bytes.buffer);
}

const spelled = (text) => text.replace(/L(\d+)H(\d+)/g, "$1.$2"); // names of heads, as the report spells them
const signed = (value, digits) => value.toFixed(digits).replace("-", "−");
const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;

// A table in a region of its own that scrolls; a field is text, an element, or a list of these.
function table(caption, columns, rows, label = caption) {
  const line = (fields, tag, properties) =>
    make("tr", {}, ...fields.map((field) => make(tag, properties, ...[field].flat())));
  const lines = [line(columns, "th", { scope: "col" }), ...rows.map((row) => line(row, "td"))];
  const made = make("table", {}, make("caption", {}, caption), ...lines);
  const scroll = make("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: label }, made);
  sizes.observe(scroll); // of tables.js
  return scroll;
}

// ---- attention ----

// Patterns over training are packed by passage, head, entry and frame: one frame for each checkpoint, and the
// value-weighted pattern of the last one.
const watched = modelsOf("watch_it_learn", async (model) => {
  return { ...model, patterns: await unpack(model.patterns, Uint8Array) };
});

function attentionOf(model, { passage, head, frame }, query, key) {
  const triangle = (n) => (n * (n + 1)) / 2;
  const sizes = model.passages.map((p) => triangle(p.tokens.length));
  const before = sumOf(sizes.slice(0, passage)) * model.heads.length;
  const entry = before + head * sizes[passage] + triangle(query) + key;
  return model.patterns[entry * (model.tokens_seen.length + 1) + frame] / model.levels;
}

// Draw a pattern of n tokens on at most `most` pixels a side, each as dark as the largest weight(query, key) in it.
function paintMatrix(canvas, n, weight, most = n) {
  const step = Math.ceil(n / most);
  const side = Math.ceil(n / step);
  const image = new ImageData(side, side);
  const ink = getComputedStyle(document.body).getPropertyValue("--cell-ink").trim().split(" ").map(Number);
  for (let query = 0; query < n; query++) {
    for (let key = 0; key <= query; key++) {
      const at = 4 * (Math.floor(query / step) * side + Math.floor(key / step));
      image.data.set([...ink, Math.max(image.data[at + 3], Math.round(255 * weight(query, key)))], at);
    }
  }
  canvas.width = canvas.height = side;
  canvas.getContext("2d").putImageData(image, 0, 0);
}

// Call point(query, key) for the pair under the pointer, and choose for the one that a click or an arrow key chooses.
// now() is the number of tokens and the chosen pair.
function listenToMatrix(canvas, now, point, choose) {
  const within = ([n], query, key) => [clamp(query, n), clamp(key, clamp(query, n) + 1)];
  const under = (event) => {
    const box = canvas.getBoundingClientRect();
    const at = (share) => Math.floor(share * now()[0]);
    return within(now(), at((event.clientY - box.top) / box.height), at((event.clientX - box.left) / box.width));
  };
  canvas.onpointermove = (event) => point(...under(event));
  canvas.onclick = (event) => choose(...under(event));
  canvas.onkeydown = (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    const [, query, key] = now();
    choose(...within(now(), query + step[0], key + step[1]));
  };
}

// Call look(i) when pointer or focus comes to token i of a passage. Arrow keys, Home and End move the focus.
function listenToPassage(box, look) {
  const at = (element) => [...box.querySelectorAll("button")].indexOf(element.closest("button"));
  for (const event of ["pointerover", "focusin"])
    box.addEventListener(event, ({ target }) => at(target) >= 0 && look(at(target)));
  box.addEventListener("keydown", (event) => {
    const [i, buttons] = [at(event.target), box.querySelectorAll("button")];
    const goals = { ArrowRight: i + 1, ArrowDown: i + 1, ArrowLeft: i - 1, ArrowUp: i - 1, Home: 0, End: Infinity };
    if (!(event.key in goals)) return;
    event.preventDefault();
    buttons[clamp(goals[event.key], buttons.length)].focus();
  });
}

// Show the buttons of a passage, those of a block of tokens that is given twice under each other.
function fillPassage(box, words, buttons, block) {
  const ends = (i) => (i === 0 && block) || i === block || words[i].includes("↵");
  refill(box, ...buttons.flatMap((b, i) => (ends(i) ? [b, make("br")] : [b])));
  const widths = buttons.map((b) => b.offsetWidth);
  for (let i = 1; i + block < buttons.length; i++)
    for (const j of [i, i + block]) buttons[j].style.minWidth = `${Math.max(widths[i], widths[i + block])}px`;
}

// Shade the tokens of a passage by the attention weight(query, key) from token i and to it.
function shade(box, i, weight) {
  box.querySelectorAll("button").forEach((button, j) => {
    vary(button, { out: (j <= i ? weight(i, j) : 0).toFixed(3), in: (j >= i ? weight(j, i) : 0).toFixed(3) });
    button.tabIndex = j === i ? 0 : -1;
    button.classList.toggle("here", j === i);
  });
}
