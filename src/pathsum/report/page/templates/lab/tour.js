"use strict";
// The steps of the tour: a state of the lab, what to look at, and its subject, the part of the lab that is ringed.
// `models`: those with zero, one and two layers; `copied`: the head and the token at which a model shows induction.
// Steps whose model or induction head is absent are left out.
function tourSteps([zero, one, two], fresh, copied) {
  const random = { ...fresh, text: null, seed: 1, token: 30 }; // a token of the second copy
  const { previous, induction } = two ?? {};
  const both = previous && induction && { ...random, model: two.name, ...copied(two) };
  const [early, late] = [previous ?? "", induction ?? ""].map(spelled);
  const steps = [
    [
      zero && { ...random, model: zero.name },
      "The residual stream. Each token becomes a vector, its embedding. Layers would read this vector and add to it; " +
        "here there are none. The one ribbon is the whole model: embedding to logit.",
      "flow",
    ],
    [
      zero && { ...random, model: zero.name },
      "Zero layers: bigrams. The model sees the current token alone, so its predictions are one row of a table of " +
        "token pairs.",
      "predictions",
    ],
    [
      one && { ...random, model: one.name },
      "One layer. Heads move information between positions. The query–key (QK) circuit of a head decides to which " +
        "tokens it attends, its output–value (OV) circuit what they add to the logits: together skip-trigrams.",
      "heads",
    ],
    [
      one && { ...random, model: one.name },
      "What one layer cannot do. The text is a block of random tokens, twice. A key holds only its own token, so no " +
        "head can find what followed an earlier copy of the current token: the second copy stays hard.",
      "tokens",
    ],
    [
      both && { ...both, head: previous },
      `Two layers. Head ${early} attends to the previous token: the line below the diagonal. It adds the previous ` +
        "token to the stream of each position, where the second layer can read it.",
      "matrix",
    ],
    [
      both,
      `Head ${late} attends to the token after the earlier occurrence of the current one: the line in the lower half ` +
        "of its matrix. This is an induction head.",
      "matrix",
    ],
    [both, "Its effect: the second copy costs less than the first. Compare the bars of the two rows.", "tokens"],
    [
      both,
      `Why it looks there. The score is a sum over pairs of paths. The largest: the query holds the current token, the ` +
        `key holds, through head ${early}, the token before it. They are equal.`,
      "score",
    ],
    [
      both,
      `Path by path. With attention and norm scales fixed, the logit is a sum: choose the ribbon through head ${late} ` +
        "for its arithmetic.",
      "flow",
    ],
    [
      both && { ...both, off: [`${previous}-${induction}-K`] },
      `The test. The keys of head ${late} no longer read head ${early}; nothing else has changed. Its line is gone, and ` +
        "the second copy costs more. Undo it, and try your own text in which a rare name occurs twice.",
      "tokens",
    ],
  ];
  return steps.filter(([shown]) => shown);
}
