"use strict";
// Path expansion (pathsum.circuits.paths and score_paths): with patterns and norm scales frozen, what a layer reads is
// a sum over paths. A path is the names of the heads on it, earliest first; [] is the direct path. A mean-ablated head
// begins a path with its mean write, a zero-ablated head is on no path. In models from elsewhere, paths also begin at
// positions, at biases of a layer, and at the value bias of a head; the first name of such a path says so.

// The paths to the residual stream before `layer` at a position: their vectors add up to it. `weights`: of the
// embedding of each token, the attention along the path times the norm's scales; null for a path from a mean.
function streamPaths(run, layer, position) {
  const found = [];
  const begin = (path, vector) => found.push({ path, weights: null, vector });
  const walk = (layer, weights, path) => {
    found.push({ path, weights, vector: through(run, path, weightedSum(weights, run.embedded)) });
    run.joining.slice(0, layer + 1).forEach((joining, at) => {
      const name = at ? `bias of layer ${at - 1}` : "positions";
      if (joining) begin([name, ...path], through(run, path, weightedSum(weights, joining)));
    });
    for (const head of run.model.layers.slice(0, layer).flat()) {
      const ran = run.heads[head.name];
      const longer = [head.name, ...path];
      if (ran.mode === "zero" || (path.length && run.isCut(head.name, path[0], "V"))) continue;
      const written = ran.mode === "mean" && weightedSum(weights, ran.write);
      if (!written && head.b_V?.some(Boolean)) {
        const write = timesTransposed(head.b_V, head.W_O, run.model.d_head);
        begin(["value bias", ...longer], through(run, path, write.map((x) => x * sumOf(weights))));
      }
      if (written) begin(longer, through(run, path, written));
      else walk(head.layer, scaled(weightedSum(weights, ran.pattern), run.scales[head.layer]), longer);
    }
  };
  const weights = new Float64Array(run.tokens.length);
  weights[position] = 1;
  walk(layer, weights, []);
  return found.sort((a, b) => a.path.length - b.path.length);
}

// W_OV of each head of a path in turn.
function through(run, path, vector) {
  const { d_head, d_model } = run.model;
  return path.reduce((x, name) => {
    const { W_O, W_V } = run.heads[name];
    return timesTransposed(timesTransposed(x, W_V, d_model), W_O, d_head);
  }, vector);
}

// What a logit over the mean of all logits reads from the stream, before the scale of the last norm.
function readout({ W_U, d_model, meanOutput }, token) {
  return Float64Array.from(meanOutput, (mean, c) => W_U[token * d_model + c] - mean);
}

// The logit of a token after a position, over the mean of all logits, path by path.
function logitPaths(run, position, token) {
  const { n_layers, b_U } = run.model;
  const [output, scale] = [readout(run.model, token), run.scales[n_layers][position]];
  const found = streamPaths(run, n_layers, position).map(({ path, weights, vector }) => {
    return { path, weights, value: scale * dot(output, vector) };
  });
  const bias = b_U?.some(Boolean) ? [{ path: ["bias of logits"], weights: null, value: b_U[token] - sumOf(b_U) / b_U.length }] : [];
  return [...found, ...bias];
}

// The same by strands: a strand is a path and the token at which it begins (source; null for a mean). Its value is
// weight · entry: attention and scales of the norms along the path, and the token's entry in its table W_U W_OV ⋯ W_E.
function logitStrands(run, position, token) {
  const { d_model, n_layers } = run.model;
  const scale = run.scales[n_layers][position];
  return logitPaths(run, position, token).flatMap(({ path, weights, value }) => {
    if (!weights) return [{ path, source: null, value }];
    const column = path.reduceRight((x, name) => {
      const { W_O, W_V } = run.heads[name];
      return weightedSum(weightedSum(x, W_O), W_V);
    }, readout(run.model, token));
    return [...weights].flatMap((weight, source) => {
      const entry = weight && dot(column, run.embedded.subarray(source * d_model, (source + 1) * d_model));
      return weight ? [{ path, source, entry, value: scale * weight * entry }] : [];
    });
  });
}

// Where a strand begins: at a token (its number), at a constant (its name), or at the mean write of a head ("mean").
const beginning = (run, { path, source }) => source ?? (run.heads[path[0]] ? "mean" : path[0]);

// The ways of a strand through the positions, first to last: attention and scales multiply to a part of its weight. Those
// with less than a ten-millionth of attention are left out.
function strandRoutes(run, position, { path, source }) {
  const { tokens, scales, model } = run;
  let routes = [{ places: [position], attention: 1, scale: scales[model.n_layers][position] }];
  for (const name of path.toReversed()) {
    const { pattern, layer } = run.heads[name];
    routes = routes.filter(({ attention }) => attention > 1e-7).flatMap(({ places, attention, scale }) =>
      (name === path[0] ? [source] : range(places[0] + 1)).map((key) => ({
        places: [key, ...places],
        attention: attention * (pattern[places[0] * tokens.length + key] ?? 0),
        scale: scale * scales[layer][key],
      })),
    );
  }
  return routes.filter(({ attention }) => attention);
}

// The score of a head at a query and a key, by pairs of paths: values[query path][key path], and the position's bias.
function scorePaths(run, name, query, key) {
  const { layer, W_Q, W_K, b_Q, b_K, bias } = run.heads[name];
  const { d_model, d_head } = run.model;
  const side = (which, W, b, position) => {
    const scale = run.scales[layer][position];
    const read = ({ path }) => !path.length || !run.isCut(path.at(-1), name, which);
    const paths = streamPaths(run, layer, position).filter(read);
    const projected = (vector) => run.model.turned(timesTransposed(vector, W, d_model).map((x) => x * scale), position);
    const found = paths.map(({ path, vector }) => ({ path, vector: projected(vector) }));
    const own = b?.subarray(position * d_head, (position + 1) * d_head);
    if (own?.some(Boolean)) found.push({ path: ["bias"], vector: run.model.turned(own, position) });
    return found;
  };
  const queries = side("Q", W_Q, b_Q, query);
  const keys = side("K", W_K, b_K, key);
  const score = (q, k) => dot(q.vector, k.vector) / Math.sqrt(d_head);
  const values = queries.map((q) => keys.map((k) => score(q, k)));
  return { queries: queries.map((q) => q.path), keys: keys.map((k) => k.path), values, position: bias[query - key] };
}
