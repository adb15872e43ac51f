"""Heads that match exactly and heads that match alike tokens are distinguished."""

import dataclasses
import math

import pytest
import torch

from pathsum.config import ModelConfig
from pathsum.extraction import fuzzy_matching
from pathsum.extraction.fuzzy_matching import scored, tables
from pathsum.extraction.inputs import EvalData, TrainedModel, trace_trained
from pathsum.model.transformer import Transformer
from pathsum.records.evaluation import Evaluation
from pathsum.records.fuzzy_matching import FuzzyMatchingRow
from tests import handmade
from tests.extraction.small import plain_text
from tests.random_models import HOW, cell_of, loaded

LETTERS = [a + b + "o" for a in "bdfgh" for b in "klmnr"][:21]
WORDS = ["<|bos|>", *LETTERS, *(w.title() for w in LETTERS), *("␣" + w for w in LETTERS), *map(str, range(37))]
D_VOCAB, N_CTX, STRENGTH = len(WORDS), 23, 6.0
FAMILY = torch.arange(len(LETTERS))
PLAIN, TITLE, SPACED = 1 + FAMILY, 1 + 21 + FAMILY, 1 + 42 + FAMILY


def evidence() -> EvalData:
    windows = torch.randint(1, D_VOCAB, (29, N_CTX + 1), generator=torch.Generator().manual_seed(1))
    windows[:, 0] = 0
    return plain_text(windows, WORDS, 100.0)


def trained(model: Transformer, n_layers: int = 2) -> TrainedModel:
    last = Evaluation(9, 9, 1.0, 0.1, 9.0, 1.0, [[0.1], [0.9]][:n_layers], [[0.9], [0.1]][:n_layers], [[0.1]], [1.0])
    return trace_trained(model, cell_of(model), [last], evidence(), HOW)


def blank(n_layers: int = 2) -> Transformer:
    config = ModelConfig(
        n_layers=n_layers, n_heads=1, d_head=D_VOCAB, d_model=2 * D_VOCAB, n_ctx=N_CTX, positions="relative",
        norm="none", smeared_keys=False, embedding_std=1.0,
    )  # fmt: skip
    return Transformer(config, D_VOCAB, torch.Generator().manual_seed(2)).requires_grad_(False)


def matcher(case: float, space: float) -> dict[tuple[str, str], FuzzyMatchingRow]:
    """Return an induction head where the embeddings of a word's variants have these cosines with the word's."""
    weights = handmade.induction_pair(D_VOCAB, STRENGTH)
    W_E = weights.W_E.clone()
    for variants, cosine in ((TITLE, case), (SPACED, space)):
        own = math.sqrt(1 - cosine**2) * weights.W_E[:, variants]
        W_E[:, variants] = cosine * weights.W_E[:, PLAIN] + own
    model = loaded(blank(), dataclasses.replace(weights, W_E=W_E).to(torch.float32))
    model.layers[0].bias[0, 1] = 40.0  # type: ignore[index, operator]
    rows = tables(trained(model), evidence(), HOW)["fuzzy_matching"]
    assert all((r.layer, r.head) == ((None, None) if "gain" in r.measure else (1, 0)) for r in rows)
    return {(r.kind, r.measure): r for r in rows}


def attention(cosine: float) -> float:
    return math.exp(cosine * STRENGTH) / (math.exp(cosine * STRENGTH) + N_CTX - 1)


def test_a_head_that_matches_exactly_gives_alike_tokens_nothing() -> None:
    rows = matcher(0.0, 0.0)
    for kind in ("case", "leading space"):
        assert rows[f"equal ({kind})", "attention"].value == pytest.approx(attention(1), rel=1e-4)
        assert rows[kind, "attention"].value == pytest.approx(1 / N_CTX, rel=1e-4)
        assert rows[kind, "attention over unrelated"].value == pytest.approx(0, abs=1e-6)
        assert rows[kind, "log-probability over unrelated"].value == pytest.approx(0, abs=1e-6)
        assert rows[kind, "match score over unrelated"].value == pytest.approx(0, abs=1e-4)
        assert rows[f"equal ({kind})", "log-probability over unrelated"].low > 0.3
        assert rows[f"equal ({kind})", "match score over unrelated"].low > 5
        assert rows[f"equal ({kind})", "attention"].n == len(LETTERS)
    assert rows["chance", "attention"].value == pytest.approx(1 / N_CTX, rel=1e-4)


def test_variants_that_share_an_embedding_are_matched_as_equal_tokens_are_and_others_by_their_cosine() -> None:
    rows = matcher(1.0, 0.5)
    for measure in ("attention", "attention over unrelated", "log-probability over unrelated"):
        assert rows["case", measure].value > 0.1
    assert rows["case", "attention"].value == pytest.approx(attention(1), rel=1e-4)
    assert rows["leading space", "attention"].value == pytest.approx(attention(0.5), rel=1e-4)
    assert rows["unrelated (leading space)", "attention"].value == pytest.approx(1 / N_CTX, rel=1e-4)
    variant, equal = (rows[k, "match score over unrelated"].value for k in ("leading space", "equal (leading space)"))
    assert variant / equal == pytest.approx(0.5, abs=1e-4)
    equal, variant, unrelated = (
        rows[k, "match score"].value for k in ("equal (leading space)", "leading space", "unrelated (leading space)")
    )
    assert (variant - unrelated) / (equal - unrelated) == pytest.approx(0.5, abs=1e-4)


def test_an_untrained_model_tells_nothing_apart() -> None:
    """Negative control: no difference in attention, in log-probability or in scores."""
    rows = tables(trained(blank()), evidence(), HOW)["fuzzy_matching"]
    apart = [r for r in rows if r.measure.endswith("over unrelated") or "−" in r.kind]
    assert len(apart) == 3 * 4 + 2 * 3
    assert sum(not r.low <= 0 <= r.high for r in apart) <= 1  # 18 intervals of 95 %: 0.9 expected


def test_a_copy_helps_where_names_are_kept_and_an_exact_matcher_gains_nothing_from_changed_ones() -> None:
    rows = matcher(0.0, 0.0)
    kept, after, new = (f"gain {p}" for p in ("after a kept token", "after a renamed token", "of a renamed token"))
    assert rows["exact copy", kept].low > 0.2
    assert rows["renamed − another", kept].low > 0.2
    assert rows["exact copy", after].low > 0.2
    assert rows["renamed − shuffled", kept].low > 0.2
    for contrast in ("renamed − another", "renamed − shuffled"):
        assert abs(rows[contrast, after].value) < 0.2 * rows["exact copy", after].value
        assert rows[contrast, new].value < 0.05


def test_a_head_that_copies_the_tokens_of_its_context_in_any_order_gains_nothing_over_them_shuffled() -> None:
    """A bag-of-words model: attention is uniform and the last layer copies."""
    weights = handmade.induction_pair(D_VOCAB)
    (previous,), (copying,) = weights.layers
    nothing = 0 * copying.W_Q
    silent = dataclasses.replace(previous, W_O=0 * previous.W_O)
    uniform = dataclasses.replace(copying, W_Q=nothing, W_K=nothing, W_O=20 * copying.W_O)
    model = loaded(blank(), dataclasses.replace(weights, layers=((silent,), (uniform,))).to(torch.float32))
    rows = {(r.kind, r.measure): r for r in tables(trained(model), evidence(), HOW)["fuzzy_matching"]}
    for place in ("gain after a kept token", "gain after a renamed token"):
        assert rows["renamed − another", place].low > 0.1
        assert rows["renamed − shuffled", place].value == pytest.approx(0, abs=1e-5)
        assert rows["shuffled passage", place].value == pytest.approx(rows["renamed copy", place].value, abs=1e-5)


def test_places_are_scored_by_what_was_renamed() -> None:
    passage, copy = torch.tensor([[5, 1, 6, 1, 7, 1, 2]]), torch.tensor([[5, 9, 6, 9, 7, 9, 2]])
    found = {name: places[0].nonzero().squeeze(-1).tolist() for name, places in scored(passage, copy).items()}
    assert found == {
        "gain after a kept token": [],
        "gain after a renamed token": [2, 4, 6],
        "gain of a renamed token": [3, 5],
    }
    found = {name: places.sum().item() for name, places in scored(passage, passage).items()}
    assert found == {"gain after a kept token": 6, "gain after a renamed token": 0, "gain of a renamed token": 0}


def test_one_layer_or_a_vocabulary_without_pairs_has_no_such_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tables(trained(blank(1), 1), evidence(), HOW) == {"fuzzy_matching": []}
    nameless = dataclasses.replace(evidence(), words=["7"] * D_VOCAB)
    rows = tables(trained(blank()), nameless, HOW)["fuzzy_matching"]
    assert {r.measure for r in rows} == {"gain after a kept token"}
    monkeypatch.setattr(fuzzy_matching, "SHORTEST", N_CTX + 1)
    assert {r.measure for r in tables(trained(blank()), evidence(), HOW)["fuzzy_matching"]} >= {"match score"}
