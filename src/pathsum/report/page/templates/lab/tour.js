"use strict";
// The steps of the tour: what to look at, and the state of the lab that shows it. `models`: those with zero, one and two
// layers, or undefined. `copied`: the head and the token at which a model shows induction. Steps without their model, or
// without its induction head, are left out; the last one always stands.
function tourSteps(models, fresh, copied) {
  const [zero, one, two] = models;
  const random = { ...fresh, text: null, seed: 1, token: 30 }; // a token of the second copy
  const own = { ...random, text: "first = frobnicate(x)\nsecond = frobnicate(", token: Infinity };
  const { previous, induction } = two ?? {};
  const both = previous && induction && { ...random, model: two.name, ...copied(two) };
  const [early, late] = both ? [previous, induction].map(spelled) : [];
  const steps = [
    [
      zero && { ...random, model: zero.name },
      "Zero layers. A model without layers sees the current token alone. The embedding of this token is mapped " +
        "straight to a logit for each possible next token: a table of bigrams. Here the model reads a block of random " +
        "tokens, twice. Apart from its first token, the second copy has the same losses as the first.",
    ],
    [
      one && { ...random, model: one.name },
      "One layer. Heads move information between positions. The query–key (QK) circuit of a head decides to which " +
        "tokens, up to the current one, it attends. Its output–value (OV) circuit says what they add to the logits. " +
        "Together they use one earlier token and the current one: a skip-trigram. A key holds only its own token. No " +
        "head can therefore find the token that followed an earlier copy of the current one, and the second copy " +
        "stays hard.",
    ],
    [
      both && { ...both, head: previous },
      `Two layers, first part. Head ${early} attends to the previous token: its matrix has a line just below the ` +
        "diagonal. Its output adds the previous token to what each position holds, and heads of the second layer can " +
        "read it there.",
    ],
    [
      both,
      `Two layers, second part. Head ${late} compares the current token with the previous token that each key holds. ` +
        "They are equal at the token after the earlier occurrence. The head attends there (the line in the lower half " +
        "of its matrix), and its OV circuit raises the logit of that token. Compare the losses of the two copies.",
    ],
    [
      both && { ...both, cuts: [`${previous}-${induction}-K`] },
      `Test by intervention. The keys of head ${late} read head ${early}: K-composition. Here this edge is cut, and ` +
        "nothing else. Compare the loss of the second copy with that of the intact model.",
    ],
    [
      both,
      "Paths. With attention patterns and norm scales fixed, the logit of the next token is a sum over paths: straight " +
        "from the embedding, through one head, or through one head of each layer. The parts are at the end of the lab. " +
        "Choose another prediction to split its logit. The last table splits the head's attention score into pairs of " +
        "paths, one to the query and one to the key.",
    ],
    [
      two ? { ...own, model: two.name } : own,
      "Your turn. Type a text in which a rare name occurs twice, and compare the losses of its tokens in the two " +
        "occurrences, from the second token on.",
    ],
  ];
  return steps.filter(([shown]) => shown);
}
