"use strict";
// The steps of the tour: what to look at, and the state of the lab that shows it. `two`: the model of most layers on
// random tokens, at its induction head. Steps whose model or head is absent are left out.
function tourSteps({ fresh, ofLayers, two, previous, induction }) {
  const random = { ...fresh, text: null, seed: 1 };
  const [early, late] = [previous, induction].map((name) => name && spelled(name));
  const steps = [
    [
      ofLayers(0) && { ...random, model: ofLayers(0) },
      "Zero layers. A model without layers sees the current token alone. The embedding of this token is mapped " +
        "straight to a logit for each possible next token: a table of bigrams. Here the model reads 24 random tokens, " +
        "twice. The second copy is as hard as the first.",
    ],
    [
      ofLayers(1) && { ...random, model: ofLayers(1), token: 30 },
      "One layer. Heads move information between positions. The query–key (QK) circuit of a head chooses the earlier " +
        "tokens to which it attends. Its output–value (OV) circuit says what they add to the logits. Together they use " +
        "one earlier token and the current one: a skip-trigram. The head cannot find where the current token stood " +
        "before and read on from there, so the second copy stays hard.",
    ],
    [
      previous && { ...two, head: previous },
      `Two layers, first part. Head ${early} attends to the previous token: its matrix is a line next to the diagonal. ` +
        "From then on, each position also holds the token before it, which heads of the second layer can read.",
    ],
    [
      induction && two,
      `Two layers, second part. Head ${late} compares the current token with the previous token that each key holds. ` +
        "They are equal at the token after the earlier occurrence. The head attends there (the line in the lower half " +
        "of its matrix) and predicts that token again. Compare the losses of the two copies.",
    ],
    [
      previous && induction && { ...two, cuts: [`${previous}-${induction}-K`] },
      `The cause. The keys of head ${late} read head ${early}: K-composition. Here this edge is cut. Compare the loss of ` +
        "the second copy with that of the intact model.",
    ],
    [
      induction && two,
      "Paths. At the end of the lab, the logit of the next token is split into a sum over paths: straight from the " +
        "embedding, through one head, or through one head of each layer. Choose another prediction to split its logit. " +
        "The last table splits the head's attention score in the same way.",
    ],
    [
      { ...two, text: "def frobnicate(value):\n    return value\n\nfrobnicate(", token: Infinity },
      "Your turn. Type a text in which a rare name occurs twice, and look at the losses of its second occurrence.",
    ],
  ];
  return steps.filter(([shown]) => shown);
}
