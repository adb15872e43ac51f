"""Find tokens that are similar but not equal, and build sequences and renamed passages to test whether heads match such
tokens (docs/framework.md §5.13).

Similar tokens consist of letters and differ only in case (``Self``, ``self``) or only in a leading space.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from pathsum.records.fuzzy_matching import FuzzyKind
from pathsum.text.bos import BOS

SPACE = "␣"  # a space as the vocabulary prints it
KEYS = {FuzzyKind.CASE: str.lower, FuzzyKind.SPACE: lambda word: word.removeprefix(SPACE)}  # equal for similar tokens
FEWEST, RAREST = 20, 50  # fewest unordered pairs of a kind, and fewest occurrences of a token in the training text
MOST, NEAREST = 96, 5  # largest number of ordered pairs of a kind, and of tokens that a control is sampled from
_LETTERS, _NAME = re.compile(rf"{SPACE}?[^\W\d_]+"), re.compile(rf"({SPACE}?)([^\W\d_]{{3,}})")


@dataclass(frozen=True)
class Alike:
    """Ordered pairs of similar tokens (a query and a variant of it), each pair with an unrelated token as a control."""

    kinds: tuple[str, ...]  # kind of each pair, from ``FuzzyKind.VARIANTS``
    query: Int64[Tensor, "n"]
    variant: Int64[Tensor, "n"]
    unrelated: Int64[Tensor, "n"]
    family: Int64[Tensor, "n"]  # shared by tokens that differ in case or space; intervals resample families
    fillers: Bool[Tensor, "vocab"]  # tokens of the text that are in no similar pair

    @staticmethod
    def of(words: Sequence[str], counts: Float[Tensor, "vocab"], generator: torch.Generator) -> Alike:
        """Find the similar pairs of a vocabulary with the printable tokens ``words``.

        Both tokens of a pair must occur at least ``RAREST`` (50) times in the training text, by ``counts``. A kind of
        variant with fewer than 2 · ``FEWEST`` (40) ordered pairs is left out; of the other kinds, at most ``MOST`` (96)
        pairs each are sampled. The unrelated token is the variant of another pair of the same kind, from another
        family. It has the form of this pair's variant: lower case or not, leading space or not, one letter or more. It
        is sampled from the ``NEAREST`` (5) such tokens that are closest to the variant in log frequency. Pairs without
        such a token are left out and do not count. Without pairs, all fields but ``fillers`` are empty.
        """
        common = [i for i, word in enumerate(words) if counts[i] >= RAREST and _LETTERS.fullmatch(word)]
        forms, logs = {i: _form(words[i]) for i in common}, counts.clamp(min=1).log().tolist()
        families = {i: words[i].removeprefix(SPACE).lower() for i in common}
        numbers = {name: n for n, name in enumerate(sorted(set(families.values())))}
        rows: list[tuple[str, int, int, int, int]] = []
        fillers = counts > 0
        fillers[BOS] = False
        for kind, key in KEYS.items():
            groups: dict[str, list[int]] = {}
            for i in common:
                groups.setdefault(key(words[i]), []).append(i)
            pairs = [pair for group in groups.values() for pair in permutations(group, 2)]
            fillers[[i for pair in pairs for i in pair]] = False
            same: dict[tuple[bool, bool, bool], list[int]] = {}
            for u in sorted({b for _, b in pairs}):
                same.setdefault(forms[u], []).append(u)
            pairs = [(a, b) for a, b in pairs if any(families[u] != families[a] for u in same[forms[b]])]
            if len(pairs) < 2 * FEWEST:
                continue
            for n in torch.randperm(len(pairs), generator=generator)[:MOST].tolist():
                a, b = pairs[n]
                others = [u for u in same[forms[b]] if families[u] != families[a]]
                near = sorted(others, key=lambda u: abs(logs[u] - logs[b]))[:NEAREST]
                control = near[int(torch.randint(len(near), (), generator=generator))]
                rows.append((kind, a, b, control, numbers[families[a]]))
        ids = torch.tensor([row[1:] for row in rows], dtype=torch.int64).view(-1, 4)
        query, variant, unrelated, family = ids.unbind(1)
        return Alike(tuple(row[0] for row in rows), query, variant, unrelated, family, fillers)


def _form(word: str) -> tuple[bool, bool, bool]:
    bare = word.removeprefix(SPACE)
    return bare == word, bare.islower(), len(bare) == 1


@dataclass(frozen=True)
class Trials:
    """Windows that end in a query, and the position of one token in each, the follower. The token before the follower
    can be set (``after``)."""

    tokens: Int64[Tensor, "n pos"]
    follower: Int64[Tensor, "n"]

    def after(self, earlier: Int64[Tensor, "n"]) -> Int64[Tensor, "n pos"]:
        """Return the windows with each ``earlier`` token directly before the follower."""
        return self.tokens.scatter(1, self.follower[:, None] - 1, earlier[:, None])

    def followed(self) -> Int64[Tensor, "n"]:
        """Return the token at each follower's position."""
        return self.tokens.gather(1, self.follower[:, None])[:, 0]


def draw_trials(alike: Alike, pos: int, generator: torch.Generator) -> Trials:
    """Sample a window for each query: BOS, ``pos`` − 2 different fillers, and the query.

    The follower is a random filler, but never the first one, because the token before it is replaced and must not be
    BOS. ``pos`` must be at least 4, and ``alike`` must have at least ``pos`` − 2 fillers; the latter is not checked.
    """
    n = len(alike.query)
    drawn = torch.multinomial(alike.fillers.double().expand(n, -1), pos - 2, generator=generator)
    tokens = torch.cat([torch.full((n, 1), BOS), drawn, alike.query[:, None]], 1)
    return Trials(tokens, torch.randint(2, pos - 1, (n,), generator=generator))


def rename(
    passages: Int64[Tensor, "n pos"], words: Sequence[str], counts: Float[Tensor, "vocab"]
) -> Int64[Tensor, "n pos"]:
    """Replace each name in each passage by the name of nearest frequency that is not in the passage.

    Different names get different replacements. Names are tokens of three letters or more that are not keywords of
    Python and occur at least ``RAREST`` (50) times in the training text, by ``counts``. ``words`` are the printable
    tokens by id. A leading space is kept. A name stays if no replacement is left.
    """
    matches = [_NAME.fullmatch(word) for word in words]
    names = torch.tensor([1 + len(m[1]) if m and not keyword.iskeyword(m[2]) else 0 for m in matches])
    names[counts < RAREST] = 0
    found, logs = [], counts.clamp(min=1).log()
    for passage in passages:
        become, free = torch.arange(len(words)), names.clone()
        free[passage] = 0
        for token in passage.unique().tolist():
            fits = (free == names[token]) & (free > 0)
            if fits.any():
                become[token] = torch.where(fits, (logs - logs[token]).abs(), torch.inf).argmin()
                free[become[token]] = 0
        found.append(become[passage])
    return torch.stack(found)
