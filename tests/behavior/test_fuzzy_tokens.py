"""Pairs of tokens that differ by case or a leading space only, windows that contain one of them, and renamed copies."""

import torch

from pathsum.behavior.fuzzy_sequences import FEWEST, NEAREST, RAREST, Alike, draw_trials, rename

LETTERS = [a + b for a in "abcde" for b in "vwxyz"][: FEWEST + 3]
WORDS = ["<|bos|>", *LETTERS, *(w.title() for w in LETTERS), *("␣" + w for w in LETTERS), *map(str, range(31))]
COUNTS = torch.arange(len(WORDS)).float() + RAREST


def alike(counts: torch.Tensor = COUNTS) -> Alike:
    return Alike.of(WORDS, counts, torch.Generator().manual_seed(1))


def test_pairs_differ_by_case_alone_or_by_a_leading_space_alone_and_the_control_by_more() -> None:
    found = alike()
    assert set(found.kinds) == {"case", "leading space"}
    assert len(found.kinds) == 4 * len(LETTERS)
    for kind, *ids, family in zip(
        found.kinds, found.query, found.variant, found.unrelated, found.family.tolist(), strict=True
    ):
        query, variant, unrelated = (WORDS[i] for i in ids)
        same = {"case": str.lower, "leading space": lambda w: w.removeprefix("␣")}[kind]
        assert query != variant
        assert same(query) == same(variant) != same(unrelated)
        assert (variant[0] == "␣", variant.islower()) == (unrelated[0] == "␣", unrelated.islower())
        assert sorted(LETTERS)[family] == query.removeprefix("␣").lower() != unrelated.removeprefix("␣").lower()
        assert 1 <= abs(ids[1] - ids[2]) <= NEAREST  # counts rise with ids: neighbours have near frequencies
    assert len(found.unrelated.unique()) > len(LETTERS)
    assert found.unrelated.bincount().max() <= 2 * NEAREST
    assert [WORDS[i] for i in found.fillers.nonzero().squeeze(-1)] == [*map(str, range(31))]


def test_a_pair_without_a_control_of_the_variant_s_form_is_left_out() -> None:
    """Single letters have no other family to take a control from. With a second family there is exactly one control."""
    words = [*WORDS, "q", "Q", "z", "Z"]
    counts = torch.arange(len(words)).float() + RAREST
    for letters, controls in (("q", {"q": "", "Q": ""}), ("qz", {"q": "z", "Q": "Z"})):
        end = len(WORDS) + 2 * len(letters)
        found = Alike.of(words[:end], counts[:end], torch.Generator().manual_seed(1))
        assert not found.fillers[len(WORDS) :].any()
        drawn = {words[v]: words[u] for v, u in zip(found.variant, found.unrelated, strict=True)}
        assert {letter: drawn.get(letter, "") for letter in controls} == controls


def test_a_kind_with_too_few_frequent_pairs_has_none() -> None:
    rare = COUNTS.clone()
    rare[[WORDS.index(w.title()) for w in LETTERS[:4]]] = RAREST - 1
    found = alike(rare)
    assert set(found.kinds) == {"leading space"}
    assert not found.fillers[WORDS.index(LETTERS[-1].title())]  # alike a token, though not asked about
    rare[[WORDS.index("␣" + w) for w in LETTERS[:4]]] = RAREST - 1
    assert alike(rare).kinds == ()
    assert alike(rare).query.shape == (0,)


def test_only_the_token_before_the_follower_changes_and_nothing_else_is_alike() -> None:
    found = alike()
    trials = draw_trials(found, 17, torch.Generator().manual_seed(2))
    after = trials.after(found.variant)
    rows, differs = (after != trials.tokens).nonzero().unbind(1)
    assert rows.tolist() == [*range(len(after))]
    assert torch.equal(differs, trials.follower - 1)
    assert torch.equal(after[:, -1], found.query)
    assert (after[:, 0] == 0).all()
    assert set(trials.follower.tolist()) == {*range(2, 16)}
    others = found.fillers[trials.tokens[:, 1:-1]]
    assert others.all()
    assert all(len(row.unique()) == 17 for row in after)
    assert torch.equal(trials.followed(), after[torch.arange(len(after)), trials.follower])


def test_names_are_replaced_one_for_one_by_names_of_their_form_that_are_not_there() -> None:
    words = ["<|bos|>", "foo", "bar", "baz", "qux", "␣foo", "␣bar", "return", "ab", "123", "rare"]
    counts = torch.tensor([0, 100, 900, 110, 90, 100, 60, 500, 500, 500, RAREST - 1]).float()
    passage = torch.tensor([[1, 7, 5, 8, 1, 2, 9, 10]])
    (copy,) = rename(passage, words, counts)
    assert [words[i] for i in copy] == ["baz", "return", "␣bar", "ab", "baz", "qux", "123", "rare"]
    assert torch.equal(rename(passage[:, [5, 0]], words[:3], counts[:3]), passage[:, [5, 0]])  # none is left
