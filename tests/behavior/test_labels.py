"""Labels of heads: heads get the labels of their own behavior and no others."""

import pytest
import torch
from torch import Tensor

from pathsum.behavior import induction, positional
from pathsum.behavior.labels import (
    MOST,
    Score,
    after_earlier,
    at_offset,
    best_offset,
    by_window,
    duplicate_token,
    followers,
    labels,
    two_back,
    uniform_attention,
)
from pathsum.statistics.bootstrap import Interval, independent, mean_intervals
from tests import handmade

D_VOCAB, BLOCK, BATCH = 23, 11, 5
POS = 1 + 2 * BLOCK


def random_pattern(seed: int, pos: int = POS, heads: int = 3, batch: int = BATCH) -> Tensor:
    """Return attention patterns that are softmax of random scores over past keys."""
    scores = 3 * handmade.normal(torch.Generator().manual_seed(seed), batch, heads, pos, pos)
    return scores.masked_fill(torch.ones(pos, pos, dtype=torch.bool).triu(1), -torch.inf).softmax(-1)


def shifted(distance: int, pos: int = POS) -> Tensor:
    """Return the pattern (query × key) in which every query attends ``distance`` back, and to position 0 if there is no
    such key."""
    pattern = torch.zeros(pos, pos, dtype=torch.float64)
    pattern[torch.arange(pos), (torch.arange(pos) - distance).clamp(min=0)] = 1
    return pattern


def random_text(seed: int, batch: int = BATCH, pos: int = POS, d_vocab: int = 5) -> Tensor:
    """Return windows of BOS and tokens from a small vocabulary, so that tokens repeat."""
    text = torch.randint(1, d_vocab, (batch, pos), generator=torch.Generator().manual_seed(seed))
    text[:, 0] = 0
    return text


def called(pattern: Tensor, copies: Tensor, text: Tensor, on_text: Tensor) -> list[tuple[str, ...]]:
    """Return each head's labels from its patterns on ``copies`` (BOS and a block given twice) and on ``on_text``."""
    chance = uniform_attention(pattern.shape[-1]).double().expand(1, pattern.shape[1], -1, -1)
    offsets = best_offset(on_text[::2])

    def matching(p: Tensor) -> Tensor:
        return induction.prefix_matching(p, BLOCK)

    def duplicate(p: Tensor) -> Tensor:
        return duplicate_token(p, BLOCK)

    keys, random_keys = followers(text), followers(copies)
    measured = {
        "previous token": (by_window(positional.previous_token, on_text), positional.previous_token(chance)),
        "two tokens back": (by_window(two_back, on_text), two_back(chance)),
        "offset": (by_window(lambda p: at_offset(p, offsets), on_text[1::2]), at_offset(chance, offsets)),
        "attends to BOS (attention sink)": (by_window(positional.bos, on_text), positional.bos(chance)),
        "duplicate token": (by_window(duplicate, pattern), duplicate(chance)),
        "induction: uniform": (by_window(matching, pattern), matching(chance)),
        "induction: by frequency": (
            after_earlier(pattern, random_keys),
            after_earlier(chance.expand(len(copies), -1, -1, -1), random_keys).mean(-1),
        ),
        "induction: natural": (
            after_earlier(on_text, keys),
            after_earlier(chance.expand(len(text), -1, -1, -1), keys).mean(-1),
        ),
    }
    generator = torch.Generator().manual_seed(0)
    known = {name: (mean_intervals(v, independent(v), generator), c) for name, (v, c) in measured.items()}
    return [
        labels([Score(name, intervals[h], c[h].item()) for name, (intervals, c) in known.items()])
        for h in range(pattern.shape[1])
    ]


def planted(seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return patterns of the hand-made previous-token head and induction head on repeated random tokens and on text."""
    weights = handmade.induction_pair(D_VOCAB)
    (early,), (late,) = weights.layers
    copies, text = handmade.repeated_tokens(seed, BATCH, D_VOCAB, BLOCK), random_text(seed)
    patterns = []
    for tokens in (copies, text):
        x = weights.W_E.mT[tokens]
        first = handmade.previous_token_pattern(POS).expand(BATCH, POS, POS)
        patterns.append(torch.stack([first, handmade.content_pattern(late, x + first @ x @ early.W_OV.dense().mT)], 1))
    return patterns[0], copies, text, patterns[1]


def test_the_hand_made_pair_gets_its_own_labels() -> None:
    previous, matching = called(*planted(1))
    assert previous == ("previous token", "offset")
    assert matching == ("induction",)


def test_a_head_that_looks_back_by_a_block_s_length_is_no_induction_head() -> None:
    """Negative control: on repeated random tokens alone, this head would score as a perfect induction head."""
    copies, text = handmade.repeated_tokens(2, BATCH, D_VOCAB, BLOCK), random_text(2, d_vocab=D_VOCAB)
    pattern = shifted(BLOCK - 1).expand(BATCH, 1, POS, POS)
    assert induction.prefix_matching(pattern, BLOCK).item() == 1
    assert "induction" not in called(pattern, copies, text, pattern)[0]


def test_a_previous_token_head_is_no_induction_head_though_text_repeats() -> None:
    """Negative control: in a b a b …, the previous token is also the token after the earlier occurrence of the current
    token."""
    copies = handmade.repeated_tokens(3, BATCH, D_VOCAB, BLOCK)
    text = torch.tensor([0, *[1, 2] * BLOCK]).expand(BATCH, POS)
    pattern = handmade.previous_token_pattern(POS).expand(BATCH, 1, POS, POS)
    assert after_earlier(pattern, followers(text)).mean() == pytest.approx(1)
    assert called(pattern, copies, text, pattern) == [("previous token", "offset")]


def test_a_head_that_looks_two_back_is_called_so_and_others_are_not() -> None:
    copies, text = handmade.repeated_tokens(3, BATCH, D_VOCAB, BLOCK), random_text(3)
    pattern = torch.stack([shifted(1), shifted(2), shifted(3)]).expand(BATCH, 3, POS, POS)
    found = called(pattern, copies, text, pattern)
    assert found == [("previous token", "offset"), ("two tokens back", "offset"), ("offset",)]


def test_untrained_weights_have_no_label() -> None:
    """Negative control: two random layers without positions; the second layer reads what the first one writes."""
    weights = handmade.random_weights(4, n_layers=2, d_vocab=D_VOCAB)
    copies, text = handmade.repeated_tokens(4, 17, D_VOCAB, BLOCK), random_text(4, 17, d_vocab=D_VOCAB)
    seen = []
    for tokens in (copies, text):
        x, patterns = weights.W_E.mT[tokens], []
        for layer in weights.layers:
            here = torch.stack([handmade.content_pattern(head, x) for head in layer], 1)
            x = x + sum(here[:, h] @ x @ head.W_OV.dense().mT for h, head in enumerate(layer))
            patterns.append(here)
        seen.append(torch.cat(patterns, 1))
    found = called(seen[0], copies, text, seen[1])
    assert {"previous token", "induction", "duplicate token"} & {name for head in found for name in head} == set()


def test_a_duplicate_token_head_is_called_so() -> None:
    pattern = handmade.same_token_pattern(BLOCK).expand(BATCH, 1, POS, POS)
    assert duplicate_token(pattern, BLOCK).item() == 1
    copies, text = handmade.repeated_tokens(5, BATCH, D_VOCAB, BLOCK), random_text(5)
    resting = torch.zeros(POS, POS, dtype=torch.float64)
    resting[:, 0] = 1
    assert called(pattern, copies, text, resting.expand(BATCH, 1, POS, POS)) == [
        ("attends to BOS (attention sink)", "duplicate token")
    ]


def test_the_mean_over_windows_is_the_score_itself() -> None:
    tokens, pattern = handmade.repeated_tokens(7, BATCH, D_VOCAB, BLOCK), random_pattern(7)
    generator, distances = torch.Generator().manual_seed(8), torch.tensor([4, 0, 9])
    output, W_U = handmade.normal(generator, BATCH, 3, POS, 13), handmade.normal(generator, D_VOCAB, 13)
    for score, *given in (
        (positional.previous_token, pattern),
        (positional.bos, pattern),
        (lambda p: at_offset(p, distances), pattern),
        (lambda p: induction.prefix_matching(p, BLOCK), pattern),
        (lambda o, t: induction.copying(o, t, W_U, BLOCK), output, tokens),
    ):
        torch.testing.assert_close(by_window(score, *given).mean(-1), score(*given), rtol=0, atol=1e-12)
    by_distance = positional.attention_by_distance(pattern)[range(3), distances]
    torch.testing.assert_close(at_offset(pattern, distances), by_distance, rtol=0, atol=1e-12)


def test_attention_after_an_earlier_occurrence_is_what_a_look_at_each_token_finds() -> None:
    """Identity: the score equals a loop over all tokens. A window in which no token repeats is left out."""
    tokens, pattern = random_text(9), random_pattern(9)
    tokens[2] = torch.arange(POS)
    expected = []
    for b in [0, 1, 3, 4]:
        text, masses = tokens[b].tolist(), []
        for q in range(1, POS):
            keys = [j + 1 for j in range(1, q - 1) if text[j] == text[q]]
            if keys:
                masses.append(pattern[b, :, q, keys].sum(-1))
        expected.append(torch.stack(masses).mean(0))
    found = after_earlier(pattern, followers(tokens))
    torch.testing.assert_close(found, torch.stack(expected, -1), rtol=0, atol=1e-12)


def test_the_even_pattern_scores_chance() -> None:
    """Known values: uniform causal attention gives 1 / (query + 1) to each key."""
    even = uniform_attention(POS).double()
    torch.testing.assert_close(even[0, 0], handmade.uniform_pattern(POS), rtol=0, atol=1e-7)
    second = sum(1 / (p + 1) for p in range(BLOCK + 1, POS)) / BLOCK
    assert duplicate_token(even, BLOCK).item() == pytest.approx(second, abs=1e-7)
    keys = followers(torch.tensor([[0, 1, 2, 1, 1]]))
    assert keys[0].nonzero().tolist() == [[3, 2], [4, 2]]  # after 1 2, not 1 1: the query itself is no key
    assert after_earlier(uniform_attention(5), keys).item() == pytest.approx((1 / 4 + 1 / 5) / 2, abs=1e-7)


def test_the_best_offset_is_where_a_head_looks() -> None:
    pattern = torch.stack([shifted(3), shifted(0), shifted(7)])[None]
    assert best_offset(pattern).tolist() == [3, 0, 7]
    assert at_offset(pattern, torch.tensor([3, 0, 6])).tolist() == [1, 1, 0]
    assert at_offset(pattern, torch.tensor([1, 1, 1])).tolist() == positional.previous_token(pattern).tolist()


def test_an_interval_that_reaches_below_its_threshold_gives_no_label() -> None:
    assert labels([Score("previous token", Interval(0.7, MOST + 0.01, 0.9), 0.02)]) == ("previous token",)
    assert labels([Score("previous token", Interval(0.7, MOST, 0.9), 0.02)]) == ()
    assert labels([Score("previous token", Interval(0.7, 0.6, 0.9), 0.2)]) == ()  # three times chance
    assert labels([Score("BOS, value-weighted", Interval(0.9, 0.9, 0.9), 0.0)]) == ()


def test_a_window_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="1 \\+ 2·block positions, got 23 for block = 10"):
        duplicate_token(random_pattern(10), BLOCK - 1)
