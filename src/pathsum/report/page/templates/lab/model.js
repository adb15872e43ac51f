"use strict";
// The transformer of pathsum.model.transformer, and interventions on a run of it, each as in pathsum.interventions.run.
// A matrix is a Float32Array of its rows; W_E has a row for each token.

// The float16 numbers that pathsum.report.page.lab has packed: all high bytes, then all low bytes.
async function readHalves(text) {
  const planes = await unpack(text);
  const numbers = new Float32Array(planes.length / 2);
  for (let i = 0; i < numbers.length; i++) numbers[i] = HALVES[(planes[i] << 8) | planes[numbers.length + i]];
  return numbers;
}

const HALVES = Float32Array.from({ length: 1 << 16 }, (_, bits) => half(bits));

function half(bits) {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
}

const headName = (layer, head) => `L${layer}H${head}`;

class Model {
  constructor(about, numbers) {
    Object.assign(this, about); // name n_layers n_heads d_head d_model d_vocab n_ctx norm
    const { n_layers, n_heads, d_head, d_model, d_vocab, n_ctx } = about;
    let at = 0;
    const take = (size) => numbers.subarray(at, (at += size));
    this.W_E = take(d_vocab * d_model);
    this.W_U = take(d_vocab * d_model);
    this.layers = range(n_layers).map((layer) =>
      range(n_heads).map((h) => {
        const [W_Q, W_K, W_V, W_O] = range(4).map(() => take(d_head * d_model));
        const [bias, mean] = [take(n_ctx), take(n_ctx * d_head)]; // of scores by distance; of A v by position
        return { name: headName(layer, h), layer, W_Q, W_K, W_V, W_O, bias, mean };
      }),
    );
    this.heads = this.layers.flat();
    this.meanOutput = columnMeans(this.W_U, d_model); // what all logits have in common
  }

  // The factor of the norm at each position.
  scales(x) {
    return range(x.length / this.d_model).map((i) => {
      const row = x.subarray(i * this.d_model, (i + 1) * this.d_model);
      return this.norm === "rms" ? 1 / Math.sqrt(dot(row, row) / this.d_model + 2 ** -23) : 1;
    });
  }
}

// A run of a model on tokens, with interventions that act together:
// modes: by head "zero", "mean" (what it writes there on average over held-out text) or "previous" (token, as pattern);
// cuts: the edges "L0H1-L1H0-K" whose later head computes its queries (Q), keys (K) or values (V) without the write of
// the earlier one. The norm keeps the scale of the whole stream, which the three share.
class Run {
  constructor(model, tokens, modes = {}, cuts = []) {
    Object.assign(this, { model, tokens, modes, cuts: new Set(cuts), heads: {} });
    const { d_model, W_E } = model;
    this.embedded = new Float32Array(tokens.length * d_model);
    tokens.forEach((t, i) => this.embedded.set(W_E.subarray(t * d_model, (t + 1) * d_model), i * d_model));
    let x = this.embedded;
    this.scales = [];
    for (const layer of [...model.layers, null]) {
      const scale = model.scales(x);
      this.scales.push(scale);
      const read = scaled(x, scale);
      if (!layer) this.logits = timesTransposed(read, model.W_U, d_model);
      const ran = (layer ?? []).map((head) => this.runHead(head, x, scale, read));
      for (const head of ran) this.heads[head.name] = head;
      x = ran.reduce((sum, head) => added(sum, head.write, 1), x);
    }
  }

  runHead(head, x, scale, read) {
    const { d_model, d_head } = this.model;
    const [q, k, v] = ["Q", "K", "V"].map((side) => {
      const cut = Object.values(this.heads).filter((early) => this.isCut(early.name, head.name, side));
      const own = cut.length ? scaled(cut.reduce((sum, early) => added(sum, early.write, -1), x), scale) : read;
      return timesTransposed(own, head[`W_${side}`], d_model);
    });
    const mode = this.modes[head.name];
    const n = this.tokens.length;
    const pattern = mode === "previous" ? previousToken(n) : softmaxPattern(q, k, head.bias, d_head);
    const values = mode === "mean" ? head.mean.subarray(0, n * d_head) : times(pattern, v, n);
    const write = timesTransposed(mode === "zero" ? values.map(() => 0) : values, head.W_O, d_head);
    return { ...head, mode, q, k, pattern, write };
  }

  isCut(early, late, side) {
    return this.cuts.has(`${early}-${late}-${side}`);
  }

  // The logarithm of the probability of every next token after position i.
  logProbs(i) {
    const row = this.logits.subarray(i * this.model.d_vocab, (i + 1) * this.model.d_vocab);
    const top = row.reduce((a, b) => Math.max(a, b));
    const total = top + Math.log(row.reduce((sum, x) => sum + Math.exp(x - top), 0));
    return Float64Array.from(row, (x) => x - total);
  }

  // The loss of each token after the first, in nats.
  get losses() {
    this.lost ??= this.tokens.slice(1).map((token, i) => -this.logProbs(i)[token]);
    return this.lost;
  }
}

function softmaxPattern(q, k, bias, d_head) {
  const n = q.length / d_head;
  const products = timesTransposed(q, k, d_head);
  const pattern = new Float32Array(n * n);
  for (let i = 0; i < n; i++) {
    const scores = range(i + 1).map((j) => products[i * n + j] / Math.sqrt(d_head) + bias[i - j]);
    const top = scores.reduce((a, b) => Math.max(a, b));
    const weights = scores.map((s) => Math.exp(s - top));
    const total = sumOf(weights);
    weights.forEach((w, j) => (pattern[i * n + j] = w / total));
  }
  return pattern;
}

// Each token attends to the one before it alone; the first, which has none, to itself.
function previousToken(n) {
  const pattern = new Float32Array(n * n);
  for (let i = 0; i < n; i++) pattern[i * n + Math.max(0, i - 1)] = 1;
  return pattern;
}

// ---- arithmetic ----

const range = (n) => Array.from({ length: n }, (_, i) => i);
const sumOf = (numbers) => numbers.reduce((a, b) => a + b, 0);

function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

function added(a, b, factor) {
  return a.map((x, i) => x + factor * b[i]);
}

function scaled(x, scale) {
  const width = x.length / scale.length;
  return x.map((value, i) => value * scale[Math.floor(i / width)]);
}

function columnMeans(A, columns) {
  const mean = new Float64Array(columns);
  A.forEach((x, i) => (mean[i % columns] += (x * columns) / A.length));
  return mean;
}

// A B, where A is lower triangular with n columns.
function times(A, B, n) {
  const width = B.length / n;
  const product = new Float32Array(B.length);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j <= i; j++) {
      const a = A[i * n + j];
      for (let c = 0; c < width; c++) product[i * width + c] += a * B[j * width + c];
    }
  }
  return product;
}

// A Bᵀ, both with `inner` columns: four rows of B at a time, which is faster, and the last few one by one (to read beyond
// an array would make every product slow).
function timesTransposed(A, B, inner) {
  const [rows, columns] = [A.length / inner, B.length / inner];
  const product = new Float32Array(rows * columns);
  for (let r = 0; r < rows; r++) {
    let c = 0;
    for (; c + 3 < columns; c += 4) {
      const at = r * columns + c;
      let b = c * inner;
      let s0 = 0, s1 = 0, s2 = 0, s3 = 0;
      for (let a = r * inner; a < (r + 1) * inner; a++, b++) {
        const x = A[a];
        s0 += x * B[b];
        s1 += x * B[b + inner];
        s2 += x * B[b + 2 * inner];
        s3 += x * B[b + 3 * inner];
      }
      product[at] = s0;
      product[at + 1] = s1;
      product[at + 2] = s2;
      product[at + 3] = s3;
    }
    for (; c < columns; c++) {
      for (let i = 0; i < inner; i++) product[r * columns + c] += A[r * inner + i] * B[c * inner + i];
    }
  }
  return product;
}
