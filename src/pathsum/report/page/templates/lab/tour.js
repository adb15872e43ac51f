"use strict";
// The steps of the tour: a state of the lab, and what to look at. `models`: those with zero, one and two layers;
// `copied`: the head and the token at which a model shows induction. Steps whose model or induction head is absent are
// left out.
function tourSteps([zero, one, two], fresh, copied) {
  const random = { ...fresh, text: null, seed: 1, token: 30 }; // a token of the second copy
  const own = { ...random, text: "first = frobnicate(x)\nsecond = frobnicate(", token: Infinity };
  const { previous, induction } = two ?? {};
  const both = previous && induction && { ...random, model: two.name, ...copied(two) };
  const [early, late] = [previous ?? "", induction ?? ""].map(spelled);
  const steps = [
    [
      zero && { ...random, model: zero.name },
      "Zero layers. The model sees the current token alone, and maps its embedding straight to a logit for each next " +
        "token: a table of bigrams. Here it reads a block of random tokens, twice. Apart from its first token, the " +
        "second copy has the same losses as the first.",
    ],
    [
      one && { ...random, model: one.name },
      "One layer. Heads move information between positions. The query–key (QK) circuit of a head decides to which " +
        "tokens it attends, its output–value (OV) circuit what they add to the logits: a skip-trigram of an earlier " +
        "token, the current one and the next. A key holds only its own token. No head can therefore find the token " +
        "that followed an earlier copy of the current one, and the second copy stays hard.",
    ],
    [
      both && { ...both, head: previous },
      `Two layers, first part. Head ${early} attends to the previous token: its matrix has a line just below the ` +
        "diagonal. Its output adds the previous token to each position, where heads of the second layer can read it.",
    ],
    [
      both,
      `Two layers, second part. Head ${late} compares the current token with the previous token that each key holds. ` +
        "They are equal at the token after the earlier occurrence. The head attends there (the line in the lower half " +
        "of its matrix) and raises the logit of that token. Compare the losses of the two copies.",
    ],
    [
      both && { ...both, off: [`${previous}-${induction}-K`] },
      `Test by intervention. The keys of head ${late} read head ${early}: K-composition. Here only this edge is cut. ` +
        "Compare the loss of the second copy with that of the intact model.",
    ],
    [
      both,
      "Paths. With attention patterns and norm scales fixed, the logit of the next token is a sum over paths: straight " +
        "from the embedding, through one head, or through one head of each layer. The parts are at the end of the lab; " +
        "choose another prediction to split its logit. The last table splits the head's attention score into pairs of " +
        "paths, one to the query and one to the key.",
    ],
    [
      two ? { ...own, model: two.name } : own,
      "Your turn. Type a text in which a rare name occurs twice, and compare the losses of its tokens, from the second " +
        "on, in the two occurrences.",
    ],
  ];
  return steps.filter(([shown]) => shown);
}
