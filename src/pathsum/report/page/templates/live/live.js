"use strict";
// The picture of the first screen: a sentence, each token as dark as its loss, and what it loses without the key edges.
(() => {
  const box = document.getElementById("live");
  if (!MODERN || !box) return;
  const $ = byId("live");
  const { texts, text_of, deepest } = JSON.parse(document.getElementById("lab-data").textContent);
  const tokenizer = new Tokenizer(texts[text_of[deepest]].tokenizer);
  const [LOSS, COST] = [10, 6]; // nats of the darkest tokens
  let cut = false;

  // Whether token i and the one before it have stood together before.
  const repeats = (tokens, i) => range(i).some((j) => j > 1 && tokens[j] === tokens[i] && tokens[j - 1] === tokens[i - 1]);

  async function draw() {
    const model = await labModels.get(deepest)();
    const tokens = [0, ...tokenizer.encode($("text").value)].slice(0, model.n_ctx);
    const off = keyEdges(model);
    const before = new Run(model, tokens).losses;
    const after = cut ? new Run(model, tokens, off).losses : before;
    const again = range(tokens.length).slice(1).map((i) => repeats(tokens, i));
    const mean = (values, where) => sumOf(values.filter((_, i) => again[i] === where)) / again.filter((r) => r === where).length;
    const drawn = tokens.slice(1).map((token, i) => {
      const [more, title] = [after[i] - before[i], `${signed(after[i], 2)} nats`];
      const out = cut ? 0 : Math.min(1, before[i] / LOSS);
      const cost = cut ? Math.min(1, Math.max(0, more / COST)) : 0;
      return make("span", { className: again[i] ? "token again" : "token", title: cut ? `${title} (${more < 0 ? "" : "+"}${signed(more, 2)})` : title, vars: { out, cost } }, tokenizer.words[token]);
    });
    const said = [true, false].filter((where) => again.includes(where)).map((where) => {
      const n = again.filter((r) => r === where).length;
      const what = where ? `${n} token${n === 1 ? "" : "s"} that complete a pair seen before (dotted)` : `${n} others`;
      const [a, b] = [before, after].map((losses) => mean(losses, where));
      return `${what}: ${signed(a, 2)}${cut ? ` → ${signed(b, 2)}` : ""} nats`;
    });
    $("tokens").replaceChildren(...drawn);
    $("tokens").ariaLabel = cut ? "The sentence; darker: costs more without the edge" : "The sentence; darker: higher loss";
    const legend = cut ? "Darker: costs more without the edge." : "Darker: higher loss.";
    $("said").textContent = said.length ? `${legend} Mean loss, ${said.join("; ")}.` : "No text.";
    $("cut").ariaPressed = cut;
    $("cut").textContent = cut ? "Undo" : "Cut the key edge";
    const shown = { model: deepest, head: model.induction, token: 1, text: $("text").value, ...(cut && { off: off.join(" ") }) };
    $("lab").href = `#lab?${new URLSearchParams(shown)}`;
  }

  let typed;
  $("text").oninput = () => {
    cancelAnimationFrame(typed);
    typed = requestAnimationFrame(draw);
  };
  $("cut").onclick = () => {
    cut = !cut;
    draw();
  };
  draw();
})();
