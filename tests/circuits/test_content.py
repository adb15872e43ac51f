"""Streams by hops and by offset: an exact regrouping of the path expansion, with values known by hand."""

from collections.abc import Callable, Iterator
from itertools import product

import pytest
import torch
from torch import Tensor

from pathsum.circuits.content import Grouping, by_hops, by_offset, hop_by_hop, reads, write
from pathsum.circuits.paths import exactness, path_sum
from pathsum.circuits.score_paths import contrasted, preference_contrast, stream_paths
from pathsum.core.weights import Weights
from tests import handmade

D_VOCAB, BLOCK, BATCH = 23, 5, 3
POS = 1 + 2 * BLOCK
EXACT = 1e-12  # float64: 2e-16 a rounding, over sums of some hundreds of terms
OWN = torch.eye(POS, dtype=handmade.DTYPE)
ONES = [torch.ones(BATCH, POS, dtype=handmade.DTYPE)] * 4


def frozen(seed: int, n_layers: int) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    g = torch.Generator().manual_seed(seed)
    raw = [handmade.normal(g, BATCH, 3, POS, POS).exp().tril() for _ in range(n_layers)]
    scales = [0.5 + torch.rand(BATCH, POS, generator=g, dtype=torch.float64) for _ in range(n_layers + 1)]
    return torch.randint(D_VOCAB, (BATCH, POS), generator=g), [p / p.sum(-1, keepdim=True) for p in raw], scales


def groupings(n_layers: int) -> tuple[Grouping, Grouping]:
    return by_hops(n_layers, POS), by_offset(POS)


def end(weights: Weights, frozen: tuple[Tensor, list[Tensor], list[Tensor]], grouping: Grouping) -> Tensor:
    """Return the normalized final stream, by group."""
    *_, last = reads(weights, *frozen, grouping)
    return last


@pytest.mark.parametrize("n_layers", [0, 1, 2, 3])
@pytest.mark.parametrize("which", [0, 1])
def test_the_groups_add_up_to_the_sum_of_all_paths(n_layers: int, which: int) -> None:
    weights, given = handmade.random_weights(seed=n_layers, n_layers=n_layers), frozen(n_layers, n_layers)
    logits = end(weights, given, groupings(n_layers)[which]) @ weights.W_U.mT
    assert exactness(logits.sum(0), path_sum(weights, *given)) < EXACT
    assert all(exactness(logits.sum(0) - group, logits.sum(0)) > 1e-4 for group in logits if group.any())


def routes(
    weights: Weights, given: tuple[Tensor, list[Tensor], list[Tensor]]
) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    """Yield every route through two layers to the last position: the positions at each head, and the content it
    carries."""
    tokens, patterns, scales = given
    q = POS - 1
    for first, second in product((None, 0, 1, 2), repeat=2):
        for k, p in product(range(POS), repeat=2):
            if (second is None and p != q) or (first is None and k != p):
                continue
            weight, content = scales[2][:, q], weights.W_E.mT[tokens[:, k]]
            if first is not None:
                weight = weight * patterns[0][:, first, p, k] * scales[0][:, k]
                content = content @ weights.layers[0][first].W_OV.dense().mT
            if second is not None:
                weight = weight * patterns[1][:, second, q, p] * scales[1][:, p]
                content = content @ weights.layers[1][second].W_OV.dense().mT
            yield (k, p, q), weight.unsqueeze(-1) * content


@pytest.mark.parametrize(
    ("which", "group_of"),
    [
        (0, lambda k, p, q: (p > k) + (q > p)),
        (1, lambda k, p, q: 4 if k == 0 else min(q - k, 3)),
    ],
)
def test_a_group_is_the_sum_of_its_routes_one_by_one(which: int, group_of: Callable[[int, int, int], int]) -> None:
    """The recursion equals the definition, which enumerates all routes."""
    weights, given = handmade.random_weights(seed=5, n_layers=2), frozen(5, 2)
    found = end(weights, given, groupings(2)[which])[:, :, -1]
    expected = torch.zeros_like(found)
    for positions, brought in routes(weights, given):
        expected[group_of(*positions)] += brought
    torch.testing.assert_close(found, expected, rtol=0, atol=EXACT)


def test_each_layers_reads_are_the_paths_to_it() -> None:
    """The input of layer 1, group by group, equals the paths to it with patterns restricted to the group."""
    weights, (tokens, patterns, scales) = handmade.random_weights(seed=6, n_layers=2), frozen(6, 2)
    _, read, _ = reads(weights, tokens, patterns, scales, by_hops(2, POS))
    moved = [p * (1 - OWN) for p in patterns]
    paths = [((0, h),) for h in range(3)]
    torch.testing.assert_close(read[1], stream_paths(weights, 1, paths, tokens, moved, scales).sum(0))
    still = stream_paths(weights, 1, [(), *paths], tokens, [p * OWN for p in patterns], scales).sum(0)
    torch.testing.assert_close(read[0], still)


def test_heads_that_attend_to_themselves_move_nothing() -> None:
    """Negative control: all content has 0 hops and offset 0, for any number of heads."""
    weights, (tokens, _, scales) = handmade.random_weights(seed=7, n_layers=3), frozen(7, 3)
    own = [OWN.expand(BATCH, 3, POS, POS)] * 3
    hops, offsets = (end(weights, (tokens, own, scales), grouping) for grouping in groupings(3))
    assert hops[1:].abs().max() == 0
    assert offsets[1:-1].abs().max() == 0
    assert offsets[-1, :, 1:].abs().max() == offsets[0, :, 0].abs().max() == 0  # BOS, at its own position alone


@pytest.mark.parametrize(
    ("distances", "hops", "offset"), [((1, 1), 2, 2), ((0, 2), 1, 2), ((1, 0), 1, 1), ((2, 2), 2, 3)]
)
def test_a_virtual_head_is_filed_by_where_it_moved(distances: tuple[int, int], hops: int, offset: int) -> None:
    """The only route to the output passes through two heads, each of which attends a fixed distance back."""
    weights = handmade.virtual_head(D_VOCAB)
    tokens = handmade.repeated_tokens(8, BATCH, D_VOCAB, BLOCK)
    patterns = [
        handmade.back_pattern(POS, d).expand(BATCH, 1, POS, POS) if d else OWN.expand(BATCH, 1, POS, POS)
        for d in distances
    ]
    inside = slice(sum(distances) + 1, None)  # from where the route does not begin at BOS
    for grouping, group in zip(groupings(2), (hops, offset), strict=True):
        logits = end(weights, (tokens, patterns, ONES[:3]), grouping)[:, :, inside] @ weights.W_U.mT
        assert logits[group].abs().max() == 1
        assert logits[torch.arange(len(logits)) != group].abs().max() == 0


def pairs(weights: Weights, first: list[Tensor], grouping: Grouping) -> Tensor:
    """Return the mean preference of the late head, by group of the query and group of the key."""
    tokens = handmade.repeated_tokens(9, BATCH, D_VOCAB, BLOCK)
    pattern = torch.stack(first).expand(BATCH, -1, -1, -1)
    later = OWN.expand(BATCH, len(first), POS, POS)  # not asked for
    _, parts, _ = reads(weights, tokens, [pattern, later], ONES[:3], grouping)
    head = weights.layers[1][0]
    contrast = preference_contrast(BLOCK).double().expand(BATCH, -1, -1)
    return contrasted(parts @ head.W_QK.left, parts @ head.W_QK.right.mT, contrast).mean(-1)


PREVIOUS = handmade.previous_token_pattern(POS)
N_KEYS = torch.arange(BLOCK + 2, POS + 1, dtype=torch.float64)  # of each query in the second copy


@pytest.mark.parametrize("carried", [False, True])
def test_induction_is_the_current_token_against_the_previous_one_whichever_way_the_query_comes(carried: bool) -> None:
    """In the second circuit, the pair by heads is Q&K and not K, so the names of paths are misleading."""
    make = handmade.self_attending_pair if carried else handmade.induction_pair
    first = [PREVIOUS, OWN] if carried else [PREVIOUS]
    for grouping in groupings(2):
        found = pairs(make(D_VOCAB), first, grouping)
        assert found[0, 1].item() == pytest.approx((30 - 30 / N_KEYS).mean().item(), abs=1e-5)
        rest = found.clone()
        rest[0, 1] = 0
        assert rest.abs().max() == 0


def test_induction_on_the_previous_token_is_offset_one_against_two() -> None:
    """The first query is preceded by BOS, and the first key is not. By hops, query and key both move once."""
    first = [PREVIOUS, handmade.back_pattern(POS, 2), OWN]
    weights = handmade.suffix_matcher(D_VOCAB, current=0, previous=30)
    offsets, hops = pairs(weights, first, by_offset(POS)), pairs(weights, first, by_hops(2, POS))
    whole = offsets.sum()
    assert whole > 20
    assert offsets[1, 2] == pytest.approx(whole.item(), abs=1.5)
    assert offsets[0].abs().max() == 0
    assert hops[1, 1] == pytest.approx(whole.item(), rel=0.1)


def test_random_heads_have_no_group_that_carries_all() -> None:
    """Negative control: the largest share of 25 pairs under uniform attention."""
    weights = handmade.random_weights(seed=10, n_layers=2)
    found = pairs(weights, [handmade.uniform_pattern(POS)] * 3, by_offset(POS))
    assert found.abs().max() < 0.5 * found.abs().sum()


def test_hop_by_hop_is_the_running_sum_of_the_groups_and_under_a_norm_begins_and_ends_at_models() -> None:
    weights, (tokens, patterns, _) = handmade.random_weights(seed=11, n_layers=3), frozen(11, 3)
    ends = hop_by_hop(weights, tokens, patterns, lambda x: x)
    groups = end(weights, (tokens, patterns, ONES), by_hops(3, POS))
    torch.testing.assert_close(torch.stack(ends), groups.cumsum(0), rtol=0, atol=EXACT)
    weights, (tokens, patterns, _) = handmade.random_weights(seed=12, n_layers=2), frozen(12, 2)

    def normalise(x: Tensor) -> Tensor:
        return x * x.square().mean(-1, keepdim=True).rsqrt()

    def run(patterns: list[Tensor]) -> Tensor:
        x = weights.W_E.mT[tokens]
        for heads, pattern in zip(weights.layers, patterns, strict=True):
            x = x + write(heads, pattern, normalise(x))
        return normalise(x)

    first, second, last = hop_by_hop(weights, tokens, patterns, normalise)
    torch.testing.assert_close(last, run(patterns), rtol=0, atol=EXACT)
    torch.testing.assert_close(first, run([p * OWN for p in patterns]), rtol=0, atol=EXACT)
    assert exactness(second, last) > 0.01


def test_a_layers_writes_are_the_sum_over_its_heads() -> None:
    weights, (tokens, patterns, _) = handmade.random_weights(seed=13, n_layers=1), frozen(13, 1)
    x = weights.W_E.mT[tokens]
    expected = sum(patterns[0][:, h] @ x @ head.W_OV.dense().mT for h, head in enumerate(weights.layers[0]))
    torch.testing.assert_close(write(weights.layers[0], patterns[0], x), expected, rtol=0, atol=EXACT)
