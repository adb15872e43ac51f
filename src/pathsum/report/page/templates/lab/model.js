"use strict";
// The transformer of pathsum.model.transformer, and interventions on a run of it, each as in pathsum.interventions.run.
// A matrix is a Float32Array of its rows; W_E has a row for each token.

class Model {
  constructor(about, numbers, further) {
    Object.assign(this, { wave: 0, eps: 2 ** -23, ...about }); // name n_layers n_heads d_head d_model d_vocab n_ctx norm
    const { n_layers, n_heads, d_head, d_model, d_vocab, n_ctx } = about;
    let at = 0;
    const take = (size) => numbers.subarray(at, (at += size));
    this.W_E = take(d_vocab * d_model);
    this.W_U = take(d_vocab * d_model);
    this.layers = range(n_layers).map((layer) =>
      range(n_heads).map((h) => {
        const [W_Q, W_K, W_V, W_O] = range(4).map(() => take(d_head * d_model));
        const [bias, mean] = [take(n_ctx), take(n_ctx * d_head)]; // of scores by distance; of A v by position
        return { name: `L${layer}H${h}`, layer, W_Q, W_K, W_V, W_O, bias, mean };
      }),
    );
    this.heads = this.layers.flat();
    if (further) this.addFurther(further);
    if (this.norm === "layer") for (const W of [this.W_U, ...this.heads.flatMap((h) => [h.W_Q, h.W_K, h.W_V])]) centre(W, d_model);
    this.meanOutput = weightedSum(new Float64Array(d_vocab).fill(1 / d_vocab), this.W_U); // what all logits have in common
  }

  // What a model from elsewhere has besides: what joins the stream before each layer and at the end, biases, rotations.
  addFurther(numbers) {
    const { n_layers, d_head, d_model, d_vocab, n_ctx, wave } = this;
    let at = 0;
    const take = (size) => numbers.subarray(at, (at += size));
    this.joining = range(n_layers + 1).map((layer) => take(layer ? d_model : n_ctx * d_model));
    for (const head of this.heads) [head.b_Q, head.b_K, head.b_V] = [n_ctx, n_ctx, 1].map((n) => take(n * d_head));
    this.b_U = take(d_vocab);
    if (wave) [this.cos, this.sin] = [take(n_ctx * wave), take(n_ctx * wave)];
  }

  // The factor of the norm at each position. The matrices that follow are centred.
  scales(x) {
    return range(x.length / this.d_model).map((i) => {
      if (this.norm === "none") return 1;
      let row = x.subarray(i * this.d_model, (i + 1) * this.d_model);
      if (this.norm === "layer") centre((row = row.slice()), this.d_model);
      return 1 / Math.sqrt(dot(row, row) / this.d_model + this.eps);
    });
  }

  // The constants that join the stream before a layer: a row for each of n positions; undefined if they are zero.
  joins(layer, n) {
    const found = this.joining?.[layer];
    if (!found?.some(Boolean)) return undefined;
    return layer
      ? Float32Array.from({ length: n * this.d_model }, (_, i) => found[i % this.d_model])
      : found.subarray(0, n * this.d_model);
  }

  // Queries or keys of the positions from `first` on, rotated by them.
  turned(x, first = 0) {
    const { d_head, wave, adjacent, cos, sin } = this;
    if (!wave) return x;
    return x.map((value, i) => {
      const [pos, c] = [first + Math.floor(i / d_head), i % d_head];
      if (c >= wave) return value;
      const before = adjacent ? c % 2 === 1 : c >= wave / 2;
      const across = x[i + (before ? -1 : 1) * (adjacent ? 1 : wave / 2)];
      return value * cos[pos * wave + c] + (before ? across : -across) * sin[pos * wave + c];
    });
  }
}

// The key edges of induction: from all previous-token heads to all induction heads.
function keyEdges({ heads, roles, previous, induction }) {
  const early = heads.filter(({ name }) => name === previous || roles[name] === "previous token");
  const late = heads.filter(({ name }) => name === induction || roles[name]?.startsWith("induction"));
  return late.flatMap((b) => early.filter((a) => a.layer < b.layer).map((a) => `${a.name}-${b.name}-K`));
}

// The models of the lab, by name: functions that read each once.
const labModels = modelsOf("lab", readModel);

async function readModel(about) {
  const read = async (name) => about[name] && Float32Array.from(await unpack(about[name], Float16Array));
  return new Model(about, await read("numbers"), await read("further"));
}

// A run of a model on tokens, with interventions in `off` that act together. "L0H1.zero", "L0H1.mean": the head writes
// zero, or what it writes there on average over held-out text. "L0H1.previous": its pattern is the previous token.
// "L0H1-L1H0-K": the later head computes its queries (Q), keys (K) or values (V) without the write of the earlier one.
// The norm keeps the scale of the whole stream, which the three share.
class Run {
  constructor(model, tokens, off = []) {
    Object.assign(this, { model, tokens, off: new Set(off), heads: {} });
    const { d_model, W_E } = model;
    this.embedded = new Float32Array(tokens.length * d_model);
    tokens.forEach((t, i) => this.embedded.set(W_E.subarray(t * d_model, (t + 1) * d_model), i * d_model));
    this.joining = range(model.n_layers + 1).map((layer) => model.joins(layer, tokens.length));
    const join = (x, layer) => (this.joining[layer] ? added(x, this.joining[layer], 1) : x);
    let x = join(this.embedded, 0);
    this.scales = [];
    for (const [i, layer] of model.layers.entries()) {
      this.scales.push(model.scales(x));
      const ran = layer.map((head) => this.runHead(head, x, this.scales.at(-1)));
      for (const head of ran) this.heads[head.name] = head;
      x = join(ran.reduce((sum, head) => added(sum, head.write, 1), x), i + 1);
    }
    this.scales.push(model.scales(x));
    this.logits = plus(timesTransposed(scaled(x, this.scales.at(-1)), model.W_U, d_model), model.b_U);
  }

  runHead(head, x, scale) {
    const { d_model, d_head } = this.model;
    const [q, k, v] = ["Q", "K", "V"].map((side) => {
      const cut = Object.values(this.heads).filter((early) => this.isCut(early.name, head.name, side));
      const read = scaled(cut.reduce((sum, early) => added(sum, early.write, -1), x), scale);
      const found = plus(timesTransposed(read, head[`W_${side}`], d_model), head[`b_${side}`]);
      return side === "V" ? found : this.model.turned(found);
    });
    const mode = ["zero", "mean", "previous"].find((mode) => this.off.has(`${head.name}.${mode}`));
    const n = this.tokens.length;
    const pattern = mode === "previous" ? previousToken(n) : softmaxPattern(q, k, head.bias, d_head);
    const values = mode === "mean" ? head.mean.subarray(0, n * d_head) : times(pattern, v, n);
    const write = timesTransposed(mode === "zero" ? values.map(() => 0) : values, head.W_O, d_head);
    return { ...head, mode, q, k, pattern, write };
  }

  isCut(early, late, side) {
    return this.off.has(`${early}-${late}-${side}`);
  }

  // The logarithm of the probability of every next token after position i.
  logProbs(i) {
    const row = Float64Array.from(this.logits.subarray(i * this.model.d_vocab, (i + 1) * this.model.d_vocab));
    const total = logSumExp(row);
    return row.map((x) => x - total);
  }

  // The loss of each token after the first, in nats.
  get losses() {
    return (this.lost ??= this.tokens.slice(1).map((token, i) => -this.logProbs(i)[token]));
  }
}

function softmaxPattern(q, k, bias, d_head) {
  const n = q.length / d_head;
  const products = timesTransposed(q, k, d_head);
  const pattern = new Float32Array(n * n);
  for (let i = 0; i < n; i++) {
    const scores = range(i + 1).map((j) => products[i * n + j] / Math.sqrt(d_head) + bias[i - j]);
    const total = logSumExp(scores);
    scores.forEach((s, j) => (pattern[i * n + j] = Math.exp(s - total)));
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

function logSumExp(x) {
  const top = x.reduce((a, b) => Math.max(a, b));
  return top + Math.log(x.reduce((sum, value) => sum + Math.exp(value - top), 0));
}

function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

// Subtract the mean of each row of x, in place.
function centre(x, width) {
  for (let at = 0; at < x.length; at += width) {
    const row = x.subarray(at, at + width);
    const mean = sumOf(row) / width;
    row.forEach((value, i) => (row[i] = value - mean));
  }
}

// Add a bias, one row or one for each row of x.
const plus = (x, bias) => (bias ? x.map((value, i) => value + bias[i % bias.length]) : x);

const added = (a, b, factor) => a.map((x, i) => x + factor * b[i]);

function scaled(x, scale) {
  const width = x.length / scale.length;
  return x.map((value, i) => value * scale[Math.floor(i / width)]);
}

// The sum of the rows of x, each times its weight.
function weightedSum(weights, x) {
  const width = x.length / weights.length;
  const sum = new Float64Array(width);
  weights.forEach((w, i) => {
    if (w) for (let c = 0; c < width; c++) sum[c] += w * x[i * width + c];
  });
  return sum;
}

// A B, where A has n columns.
function times(A, B, n) {
  const product = new Float32Array(B.length);
  for (let i = 0; i < n; i++) product.set(weightedSum(A.subarray(i * n, (i + 1) * n), B), (i * B.length) / n);
  return product;
}

// A Bᵀ, both with `inner` columns: four rows of B at a time, which is twice as fast, and the last few one by one.
function timesTransposed(A, B, inner) {
  const [rows, columns] = [A.length / inner, B.length / inner];
  const product = new Float32Array(rows * columns);
  const row = (X, at) => X.subarray(at * inner, (at + 1) * inner);
  for (let r = 0; r < rows; r++) {
    let c = 0;
    for (; c + 3 < columns; c += 4) {
      let [s0, s1, s2, s3] = [0, 0, 0, 0];
      for (let a = r * inner, b = c * inner; a < (r + 1) * inner; a++, b++) {
        s0 += A[a] * B[b];
        s1 += A[a] * B[b + inner];
        s2 += A[a] * B[b + 2 * inner];
        s3 += A[a] * B[b + 3 * inner];
      }
      product.set([s0, s1, s2, s3], r * columns + c);
    }
    for (; c < columns; c++) product[r * columns + c] = dot(row(A, r), row(B, c));
  }
  return product;
}
