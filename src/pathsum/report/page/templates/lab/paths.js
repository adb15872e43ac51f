"use strict";
// Path expansion (pathsum.circuits.paths and score_paths): with patterns and norm scales frozen, what a layer reads is
// a sum over paths. A path is the names of the heads on it, earliest first; [] is the direct path. A mean-ablated head
// begins a path with its mean write, a zero-ablated head is on no path.

// The paths to the residual stream before `layer` at a position: their vectors add up to it.
function streamPaths(run, layer, position) {
  const found = [];
  const walk = (layer, weights, path) => {
    found.push({ path, vector: through(run, path, weightedSum(weights, run.embedded)) });
    for (const head of run.model.layers.slice(0, layer).flat()) {
      const ran = run.heads[head.name];
      const longer = [head.name, ...path];
      if (ran.mode === "zero" || (path.length && run.isCut(head.name, path[0], "V"))) continue;
      const written = ran.mode === "mean" && weightedSum(weights, ran.write);
      if (written) found.push({ path: longer, vector: through(run, path, written) });
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

// The logit of a token after a position, over the mean of all logits, path by path.
function logitPaths(run, position, token) {
  const { W_U, d_model, meanOutput, n_layers } = run.model;
  const output = Float64Array.from(meanOutput, (mean, c) => W_U[token * d_model + c] - mean);
  const scale = run.scales[n_layers][position];
  return streamPaths(run, n_layers, position).map(({ path, vector }) => ({ path, value: scale * dot(output, vector) }));
}

// The score of a head at a query and a key, by pairs of paths: values[query path][key path], and the position's bias.
function scorePaths(run, name, query, key) {
  const { layer, W_Q, W_K, bias } = run.heads[name];
  const { d_model, d_head } = run.model;
  const side = (which, W, position) => {
    const scale = run.scales[layer][position];
    const read = ({ path }) => !path.length || !run.isCut(path.at(-1), name, which);
    const paths = streamPaths(run, layer, position).filter(read);
    const projected = (vector) => timesTransposed(vector, W, d_model).map((x) => x * scale);
    return paths.map(({ path, vector }) => ({ path, vector: projected(vector) }));
  };
  const queries = side("Q", W_Q, query);
  const keys = side("K", W_K, key);
  const score = (q, k) => dot(q.vector, k.vector) / Math.sqrt(d_head);
  const values = queries.map((q) => keys.map((k) => score(q, k)));
  return { queries: queries.map((q) => q.path), keys: keys.map((k) => k.path), values, position: bias[query - key] };
}
