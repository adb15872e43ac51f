"""The mistakes of docs/framework.md §9, each compared with the right computation.

The right value is known, and the mistake gives a value far from it.

| mistake                               | value                                                    | right | with it |
|---------------------------------------|----------------------------------------------------------|-------|---------|
| 1 V-composition in reverse order      | score of a hand-made pair (chance 0.0625)                | 0.162 | 0.060   |
| 2 centering before the norm's gain    | relative error of the sum of paths                       | 9e-16 | 0.22    |
|                                       | error of the attention pattern                           | 2e-16 | 0.16    |
| 3 norm after a cyclic permutation     | K-composition of heads at cosine 0.6                     | 0.6   | 0       |
| 4 another batch's patterns            | relative error of the exactness check                    | 7e-16 | 1.37    |
|   orders of terms shifted by one      | nats of single heads, if a virtual head does everything  | 0     | 3.14    |
| 5 hard-coded head numbers             | induction head found, of nine places                     | 9     | 3       |
| 7 BOS in one copy only                | prefix matching of an induction head                     | 1     | 0.909   |
|   tokens that never occur in training | share among random tokens                                | 0     | 0.150   |
| 8 eigenvalues in bf16                 | positivity, if every eigenvalue is 0.05                  | 1     | 0.61    |
| 9 weights that have since changed     | loss of a model that predicts nothing, in nats           | 3.14  | 3.90    |
"""

import copy
import functools
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from pathsum.behavior.induction import copying, prefix_matching, repeat_losses
from pathsum.behavior.positional import attention_by_distance, bos, previous_token
from pathsum.circuits.composition import composition, composition_scores
from pathsum.circuits.eigenvalues import copying_eigenvalues, positivity
from pathsum.circuits.paths import by_order, exactness, path_sum
from pathsum.core.weights import Head, Weights
from pathsum.extraction import cell as extraction
from pathsum.extraction import content, framework, score_paths
from pathsum.extraction.inputs import effective, trace_trained
from pathsum.model.checkpoint import load_checkpoint, save_checkpoint, weights_hash
from pathsum.model.transformer import Transformer
from pathsum.text.repeated import repeated_random
from tests import handmade
from tests.random_models import (
    BATCH,
    BLOCK,
    D_VOCAB,
    HOW,
    LOG,
    N_CTX,
    UNSEEN,
    cell_of,
    evidence,
    loaded,
    random_model,
    seated,
)

EXACT = 1e-12  # float64: 2e-16 a rounding, over sums of some hundreds of terms


# 1. V-composition multiplied in reverse order


def planted_pair(d_model: int = 256, d_head: int = 32, fit: float = 0.84) -> tuple[Head, Head]:
    """Return two isometric heads. The early head writes the share ``fit`` of the variance that the late head reads."""
    g = torch.Generator().manual_seed(1)
    written, other = torch.linalg.qr(handmade.normal(g, d_model, 2 * d_head)).Q.split(d_head, dim=1)
    read, late_written = (torch.linalg.qr(handmade.normal(g, d_model, d_head)).Q for _ in range(2))
    nothing = 0 * read.mT
    early = Head(nothing, nothing, read.mT, written)
    return early, Head(nothing, nothing, (fit**0.5 * written + (1 - fit) ** 0.5 * other).mT, late_written)


def test_mistake_1_v_composition_in_reverse_order() -> None:
    """By construction the score is √(0.84/32) = 0.162. Chance is 1/√256."""
    early, late = planted_pair()
    right, reverse = composition(early, late, "V"), composition(late, early, "V")
    assert right == pytest.approx((0.84 / 32) ** 0.5, rel=1e-12)
    assert reverse == pytest.approx(1 / 16, abs=0.01)
    model = Weights(torch.eye(256).double(), torch.eye(256).double(), ((early,), (late,)))
    (found,) = [s for s in composition_scores(model, 1, torch.Generator().manual_seed(0)) if s.kind == "V"]
    assert (found.early, found.late, found.value) == ((0, 0), (1, 0), right)


# 2. Normalisation folded as (W·M)·g instead of (W·g)·M


def centred(W: Tensor) -> Tensor:
    return W - W.mean(-1, keepdim=True)


def with_reads(weights: Weights, change: Callable[[Tensor, Tensor], Tensor], gains: list[Tensor]) -> Weights:
    """Return the weights with ``change`` applied to each of W_Q, W_K, W_V and W_U, with the gain of the norm before
    it."""
    layers = tuple(
        tuple(Head(change(h.W_Q, g), change(h.W_K, g), change(h.W_V, g), h.W_O) for h in heads)
        for heads, g in zip(weights.layers, gains[:-1], strict=True)
    )
    return Weights(weights.W_E, change(weights.W_U, gains[-1]), layers)


def layer_norm_model(weights: Weights, gains: list[Tensor], tokens: Tensor) -> Tensor:
    """Return the logits of torch's own LayerNorm with gain, without folding."""
    d_model, eps = len(weights.W_E), torch.finfo(torch.float64).eps
    x = weights.W_E.mT[tokens]
    for heads, g in zip(weights.layers, gains[:-1], strict=True):
        read = F.layer_norm(x, (d_model,), g, eps=eps)
        x = x + sum(handmade.content_pattern(h, read) @ read @ h.W_OV.dense().mT for h in heads)
    return F.layer_norm(x, (d_model,), gains[-1], eps=eps) @ weights.W_U.mT


def test_mistake_2_centring_before_the_gain() -> None:
    """The gain comes first and the centering second: the matrices absorb the gain, and ``weights`` then centers
    them."""
    g = torch.Generator().manual_seed(2)
    plain, tokens = handmade.random_weights(2, n_layers=2), torch.randint(D_VOCAB, (BATCH, N_CTX), generator=g)
    gains = [0.5 + torch.rand(13, generator=g, dtype=torch.float64) for _ in range(3)]
    logits = layer_norm_model(plain, gains, tokens)
    model = loaded(random_model(0, norm="layer"), with_reads(plain, torch.mul, gains))
    trace, right = model.trace(tokens), model.weights()
    wrong = with_reads(plain, lambda W, gain: centred(W) * gain, gains)
    scaled = trace.scales[0].unsqueeze(-1) * model.embed(tokens)

    def errors(weights: Weights) -> tuple[float, float]:
        """Return the errors of the logits and of the first head's pattern."""
        pattern = handmade.content_pattern(weights.layers[0][0], scaled) - trace.patterns[0][:, 0]
        paths = path_sum(weights, tokens, trace.patterns, trace.scales)
        return exactness(paths, logits), pattern.abs().max().item()

    assert max(errors(right)) < EXACT
    assert min(errors(wrong)) > 0.1


# 3. Frobenius norms taken after a cyclic permutation


def test_mistake_3_norms_after_a_cyclic_permutation() -> None:
    """Heads of rank 1: W_OV = a bᵀ, W_QK = q kᵀ. K-composition is the cosine of k and a, here 3/5.

    After a cyclic permutation it is multiplied by the cosine of q and b, here 0.
    """
    e = torch.eye(3, dtype=torch.float64)
    a, b, q, k = e[:, :1], e[:1], e[1:2], 0.6 * e[:1] + 0.8 * e[1:2]
    early, late = Head(0 * b, 0 * b, b, a), Head(q, k, 0 * b, a)
    cyclic = (early.W_V @ late.W_Q.mT @ late.W_K @ early.W_O).norm() / (late.W_QK.norm() * early.W_OV.norm())
    assert composition(early, late, "K") == pytest.approx(0.6, rel=1e-12)
    assert cyclic == 0


# 4. Term importance with another batch's patterns; off by one in the order of terms


def test_mistake_4_patterns_of_another_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(4, norm="rms")
    right = score_paths.exactness_row(lambda: model, LOG[0], evidence(), HOW).max_relative_error
    trace = Transformer.trace
    monkeypatch.setattr(Transformer, "trace", lambda model, tokens: trace(model, tokens.flip(0)))
    wrong = score_paths.exactness_row(lambda: model, LOG[0], evidence(), HOW).max_relative_error
    assert right < EXACT
    assert wrong > 0.1


def test_mistake_4_off_by_one_in_the_order_of_terms() -> None:
    """If only a virtual head writes to the logits, it reduces the loss by log 23 nats, and single heads by nothing."""
    weights = handmade.virtual_head(D_VOCAB)
    weights = replace(weights, W_U=50 * weights.W_U)
    tokens = torch.arange(1, D_VOCAB)[None]
    still = torch.eye(D_VOCAB - 1, dtype=torch.float64)[None, None]
    orders = by_order(weights, tokens, [still] * 2, [torch.ones(1, D_VOCAB - 1).double()] * 3)

    def loss_reductions(terms: list[Tensor]) -> list[float]:
        """Return by how much each order, added to the orders before it, reduces the loss of predicting the current
        token."""
        sums = torch.stack(terms).cumsum(0)
        losses = [F.cross_entropy(logits.flatten(0, 1), tokens.flatten()).item() for logits in sums]
        return [before - after for before, after in zip([math.log(D_VOCAB), *losses], losses, strict=False)]

    assert loss_reductions(orders) == pytest.approx([0, 0, math.log(D_VOCAB)], abs=1e-12)
    shifted = loss_reductions(orders[1:])  # the first entry taken for order 0
    assert shifted == pytest.approx([0, math.log(D_VOCAB)], abs=1e-12)


# 5. Head numbers hard-coded


def test_mistake_5_head_numbers_that_belong_to_another_seed() -> None:
    """At all nine places of the two heads, the scores belong to the heads and not to their places."""
    hard_coded = []
    for previous, induction in product(range(3), repeat=2):
        model = seated(previous, induction)
        trained = trace_trained(model, cell_of(model), [], evidence(), HOW)
        rows = {(row.layer, row.head): row for row in framework.head_rows(trained, evidence())}
        for place, row in rows.items():
            assert (row.previous_token > 0.9) == (place == (0, previous))
            assert (row.prefix_matching > 0.5) == (place == (1, induction))
            assert (row.copying_positivity > 0.9) == (place == (1, induction))
            assert row.previous_head == (previous if row.layer else None)
        assert rows[1, induction].qk_matching_positivity == pytest.approx(1, abs=1e-5)
        edges = composition_scores(trained.weights, 1, torch.Generator().manual_seed(0))
        best = max(edges, key=lambda s: s.value)
        assert (best.kind, best.early, best.late) == ("K", (0, previous), (1, induction))
        hard_coded.append(rows[1, 0].prefix_matching)
    assert sum(score > 0.5 for score in hard_coded) == 3  # right in three of the nine by luck


# 6. A detector that edits its cache in place, or drops its arguments when it is given several heads


@pytest.mark.parametrize(
    "score",
    [functools.partial(prefix_matching, block=BLOCK), attention_by_distance, previous_token, bos],
    ids=["prefix_matching", "attention_by_distance", "previous_token", "bos"],
)
def test_mistake_6_a_score_leaves_its_cache_alone_and_heads_together_score_as_each_alone(
    score: Callable[[Tensor], Tensor],
) -> None:
    pattern = torch.cat(random_model(6).trace(handmade.repeated_tokens(6, BATCH, D_VOCAB, BLOCK)).patterns, 1)
    before = pattern.clone()
    alone = torch.cat([score(pattern[:, h : h + 1]) for h in range(pattern.shape[1])])
    torch.testing.assert_close(score(pattern), alone, rtol=0, atol=1e-15)
    assert len(alone.unique(dim=0)) == 6
    assert pattern.equal(before)


# 7. BOS overwritten in one copy of a repeated sequence; tokens that were never trained


def test_mistake_7_a_copy_with_another_beginning() -> None:
    """The induction head finds 11 of 11 tokens.

    With BOS in place of the second copy's first token, it finds 10 and what followed the real BOS. Functions that are
    given tokens refuse this input.
    """
    weights = handmade.induction_pair(D_VOCAB)
    right = handmade.repeated_tokens(7, BATCH, D_VOCAB, BLOCK)
    wrong = right.clone()
    wrong[:, BLOCK + 1] = 0

    def score(tokens: Tensor) -> float:
        (early,), (late,) = weights.layers
        x = weights.W_E.mT[tokens]
        x = x + handmade.previous_token_pattern(N_CTX) @ x @ early.W_OV.dense().mT
        return prefix_matching(handmade.content_pattern(late, x)[:, None], BLOCK).item()

    assert score(right) == pytest.approx(1, abs=1e-9)
    assert score(wrong) == pytest.approx(10 / 11, abs=1e-9)
    with pytest.raises(ValueError, match="expected the same block twice, got copies that differ"):
        copying(torch.zeros(BATCH, 1, N_CTX, 46), wrong, weights.W_U.float(), BLOCK)
    with pytest.raises(ValueError, match="expected the same block twice, got copies that differ"):
        repeat_losses(torch.zeros(BATCH, N_CTX, D_VOCAB), wrong, BLOCK)


def test_mistake_7_tokens_that_were_never_trained_and_bos_inside_a_block() -> None:
    """Three of 22 ids do not occur in the training text, so the model has learned nothing about them. BOS belongs at
    position 0."""
    model = random_model(7).float()
    trained = trace_trained(model, cell_of(model), [], evidence(), HOW)
    drawn = trained.repeated_tokens[:, 1:]
    assert not torch.isin(drawn, UNSEEN).any()
    assert (drawn != 0).all()
    assert drawn.unique().numel() == D_VOCAB - 1 - len(UNSEEN)
    careless, _ = repeated_random(HOW.repeated_windows, N_CTX, D_VOCAB, torch.Generator().manual_seed(0))
    share = torch.isin(careless[:, 1:], UNSEEN).double().mean().item()
    assert share == pytest.approx(3 / 22, abs=4 * (3 / 22 / 341) ** 0.5)


# 8. Eigenvalues in bf16


def defective_head(eigenvalue: float = 0.05) -> Weights:
    """Return a head whose circuit is a rotated Jordan block with three eigenvalues of 0.05.

    An error of ε moves such eigenvalues by about ε^⅓.
    """
    eye, across = torch.eye(3, dtype=torch.float64), torch.tensor([[1.0, 2.0, 4.0]]).double()
    mirror = eye - 2 / 21 * across.mT @ across
    W_OV = mirror @ (eigenvalue * eye + eye.roll(1, 1).triu()) @ mirror
    outputs = torch.cat([eye, -eye])  # six tokens whose outputs have mean 0, so that centring changes nothing
    inputs = torch.cat([eye, -eye], 1) / 2
    return Weights(inputs, outputs, ((Head(0 * eye, 0 * eye, eye, W_OV),),))


def test_mistake_8_eigenvalues_in_half_precision() -> None:
    """Positivity is 1, because every eigenvalue is the same positive number. float32 suffices; bf16 does not and is
    refused."""
    exact = defective_head()
    rounded = exact.to(torch.bfloat16)
    scores = [positivity(copying_eigenvalues(w, [w.layers[0][0].W_OV])[0]) for w in (exact, exact.to(torch.float32))]
    wrong = rounded.to(torch.float32)
    scores.append(positivity(copying_eigenvalues(wrong, [wrong.layers[0][0].W_OV])[0]))
    assert scores[0] == pytest.approx(1, abs=1e-6)
    assert scores[1] == pytest.approx(1, abs=0.03)
    assert scores[2] < 0.8
    with pytest.raises(ValueError, match=r"eigenvalues need float32 at least, got torch\.bfloat16"):
        copying_eigenvalues(rounded, [rounded.layers[0][0].W_OV])
    model = random_model(8).float()
    rows = framework.eigenvalue_rows(trace_trained(model, cell_of(model), [], evidence(), HOW))
    weights = effective(model).to(torch.float64)
    (values,) = copying_eigenvalues(weights, [weights.layers[0][0].W_OV])
    first = [abs(complex(row.real, row.imag)) for row in rows if (row.layer, row.head) == (0, 0)]
    assert first == pytest.approx(values.abs().sort(descending=True).values.tolist(), rel=1e-9)


# 9. Results computed on weights that have since changed


def test_mistake_9_a_checkpoint_that_was_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new weights predict nothing and lose log 23 nats per token. A cache by path would return the old results."""
    monkeypatch.setattr(extraction, "parts", lambda: (framework.tables, content.tables, score_paths.tables))
    path, old = tmp_path / "a.safetensors", random_model(9)
    new = loaded(random_model(9), replace(old.weights(), W_U=0 * old.W_U))

    def overwritten(load: Callable[[Path, str], Transformer]) -> list[tuple[str, float]]:
        """Return the weights' hash and the loss, before and after the file is overwritten."""
        found = []
        for model in (old, new):
            save_checkpoint(path, model, "words")
            summary = extraction.extract(
                "cell", cell_of(model), LOG, [lambda: load(path, "words")] * 2, evidence(), HOW
            ).summary
            found.append((summary.weights_hash, summary.val_loss_nats))
        return found

    first, second = overwritten(load_checkpoint)
    assert first[0] == weights_hash(old) != weights_hash(new) == second[0]
    assert second[1] == pytest.approx(math.log(D_VOCAB), abs=1e-6)
    assert overwritten(functools.cache(load_checkpoint)) == [first, first]
    assert abs(first[1] - second[1]) > 0.5


def test_mistake_9_weights_taken_before_a_training_step_do_not_move_with_it() -> None:
    model = random_model(9)
    weights = model.weights()
    before = copy.deepcopy(weights)
    for p in model.parameters():
        p.mul_(2)
    assert weights.W_E.equal(before.W_E)
    assert weights.W_U.equal(before.W_U)
    for heads, were in zip(weights.layers, before.layers, strict=True):
        assert all(h.W_Q.equal(w.W_Q) and h.W_O.equal(w.W_O) for h, w in zip(heads, were, strict=True))
