"use strict";
// Small pieces of page, for all widgets. Tokens come from a corpus: they reach the page through textContent alone.
function make(tag, text = "", kind = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

// The bytes that Python has deflated, in base64.
async function unpack(text) {
  const packed = atob(text);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = packed.charCodeAt(i); // Uint8Array.from takes ten times as long
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}

// Names of models and heads as the text spells them: L2H4S3 as "2 layers · 4 heads · seed 3", L1H3 as 1.3.
function spelled(text) {
  const model = (_, layers, heads, width, seed) =>
    [layers === "1" ? "1 layer" : `${layers} layers`, heads && `${heads} heads`, width && `d_head ${width}`, `seed ${seed}`]
      .filter(Boolean)
      .join(" · ");
  return text.replace(/\bL(\d+)(?:H(\d+))?(?:D(\d+))?S(\d+)\b/g, model).replace(/\bL(\d+)H(\d+)\b/g, "$1.$2");
}

// The attention of a head from a token to an earlier one, of a model of the patterns over training. They are packed by
// passage, head, entry and frame: one frame for each checkpoint, and the value-weighted pattern of the last one.
const triangle = (n) => (n * (n + 1)) / 2;
function attentionOf(model, { passage, head, frame }, query, key) {
  const sizes = model.passages.map((p) => triangle(p.tokens.length));
  const before = sizes.slice(0, passage).reduce((a, b) => a + b, 0) * model.heads.length;
  const entry = before + head * sizes[passage] + triangle(query) + key;
  return model.patterns[entry * (model.tokens_seen.length + 1) + frame] / model.levels;
}

// Draw a matrix of n rows with the color --cell-ink of the widget; weight(query, key) is from 0 to 1.
function paintMatrix(canvas, n, widget, weight) {
  const image = new ImageData(n, n);
  const [red, green, blue] = getComputedStyle(widget).getPropertyValue("--cell-ink").trim().split(" ").map(Number);
  for (let query = 0; query < n; query++) {
    for (let key = 0; key <= query; key++) {
      image.data.set([red, green, blue, Math.round(255 * weight(query, key))], 4 * (query * n + key));
    }
  }
  canvas.width = canvas.height = n;
  canvas.getContext("2d").putImageData(image, 0, 0);
}

function fill(select, options, chosen) {
  select.replaceChildren(...options.map(([value, text]) => Object.assign(make("option", spelled(text)), { value })));
  if (options.some(([value]) => value === chosen)) select.value = chosen;
}

// A table in a region of its own that scrolls; a field is text, an element, or a list of these.
function table(caption, columns, rows, label = caption) {
  const made = make("table");
  const head = make("tr");
  head.append(...columns.map((c) => Object.assign(make("th", c), { scope: "col" })));
  made.append(make("caption", caption), head);
  for (const row of rows) {
    const line = make("tr");
    for (const field of row) {
      const box = make("td");
      box.append(...[field].flat());
      line.append(box);
    }
    made.append(line);
  }
  const scroll = Object.assign(make("div", "", "scroll"), { tabIndex: 0 });
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", label);
  scroll.append(made);
  sizes.observe(scroll); // of tables.js
  return scroll;
}

function bar(share, negative) {
  const made = make("span", "", negative ? "bar less" : "bar");
  made.style.setProperty("--size", share.toFixed(3));
  return made;
}

const signed = (value, digits) => value.toFixed(digits).replace("-", "−");
const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
const thousandths = (value, kind = "part") => make("span", signed(value / 1000, 3), `number ${kind}`);

// Whole thousandths that add up to their rounded sum: those cut most are rounded up.
function inWhole(values) {
  const exact = values.map((x) => x * 1000);
  const whole = exact.map(Math.floor);
  const short = Math.round(exact.reduce((a, b) => a + b, 0)) - whole.reduce((a, b) => a + b, 0);
  const order = [...whole.keys()].sort((a, b) => whole[a] - exact[a] - (whole[b] - exact[b]));
  for (const i of order.slice(0, short)) whole[i] += 1;
  return whole;
}
