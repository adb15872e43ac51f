"use strict";
// The circuit explorer: search a token, and see its circuits.
(() => {
  if (!MODERN) return;
  const $ = byId("x");
  const MATCHES = 30;
  const models = modelsOf("explorers", async (model) => ({
    ...model,
    ...{ found: await unpack(model.found, Int32Array), values: await unpack(model.values, Int32Array) },
  }));
  let model, shown; // the word

  async function chooseModel() {
    const name = $("model").value;
    const read = await models.get(name)();
    if (name !== $("model").value) return;
    model = read;
    const at = model.tokens.findIndex((t) => model.words[t] === shown);
    show(at < 0 ? aWord() : at);
  }

  // A token of four or more letters after a space, or the first token.
  const aWord = () => Math.max(0, model.tokens.findIndex((t) => /^␣[a-z]{4,}$/.test(model.words[t])));

  function search() {
    const { words, tokens } = model;
    const wanted = $("search").value.replaceAll(" ", "␣");
    const rank = (word) => (word === wanted ? 0 : word.startsWith(wanted) ? 1 : word.includes(wanted) ? 2 : 3);
    const found = tokens.map((t, at) => [rank(words[t]), at]).filter(([r]) => r < 3);
    found.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const items = found.slice(0, MATCHES).map(([, at]) => {
      const word = words[tokens[at]];
      const properties = { className: "token", ariaPressed: word === shown, onclick: () => show(at) };
      return make("li", {}, make("button", properties, word));
    });
    refill($("matches"), ...items);
    const more = found.length > MATCHES ? `; the first ${MATCHES} are shown` : "";
    $("found").textContent = `${found.length} of ${tokens.length} tokens match${more}.`;
  }

  // The entries of a table for token number `at`.
  function entries(at, name, write) {
    const { words, tokens, k, found, values } = model;
    const start = (model.tables.indexOf(name) * tokens.length + at) * k;
    return range(k).map((i) => {
      return make("span", { className: "entry" }, code(words[found[start + i]]), ` ${write(values[start + i])}`);
    });
  }

  function show(at) {
    shown = model.words[model.tokens[at]];
    search();
    const share = (name) => entries(at, name, (x) => percent(x / 1e4));
    const logits = (name) => entries(at, name, (x) => signed(x / 100, 2));
    const next = [["by the direct path", "in the corpus"], [[share("direct"), share("corpus")]]];
    const caption =
      "The token as a source: logits above the mean over outputs, and nats above each destination's mean over keys.";
    const columns = ["head", "output tokens that it raises (OV, logits)", "destinations that attend to it (QK, nats)"];
    const heads = model.heads.map((head) => [spelled(head), logits(`OV ${head}`), logits(`QK ${head}`)]);
    const tables = [table("Probability of the next token.", ...next)];
    if (heads.length) tables.push(table(caption, columns, heads));
    $("circuit").replaceChildren(make("h4", {}, "Token ", code(shown)), ...tables);
  }

  const showFirst = () => $("matches").querySelector("button")?.click();
  $("model").onchange = chooseModel;
  $("search").oninput = () => (search(), $("search").value && showFirst());
  $("search").onkeydown = (event) => event.key === "Enter" && showFirst();
  $("model").value = [...models.keys()].at(-1);
  chooseModel();
})();
