"""The rules of synthetic text. ``due``, called at each position, returns each next word by a rule, or NONE."""

import torch
from jaxtyping import Int64
from torch import Tensor

NONE = -1  # no word
NOWHERE = -(1 << 40)  # last position of a word that has not occurred


class Draft:
    """``n`` documents of ``length`` words while they are written, with the last position of each word."""

    def __init__(self, n: int, length: int, n_words: int) -> None:
        self.words = torch.full((n, length), NONE)
        self.last = torch.full((n, n_words), NOWHERE)
        self.rows = torch.arange(n)
        self.at = 0  # the position that is written next

    def back(self, steps: int) -> Int64[Tensor, "document"]:
        """Return the word ``steps`` positions before the one written next, or NONE before the beginning."""
        return self.words[:, self.at - steps] if self.at >= steps else torch.full_like(self.rows, NONE)

    def write(self, words: Int64[Tensor, "document"]) -> None:
        self.words[:, self.at] = words
        self.last[self.rows, words] = self.at
        self.at += 1


class SkipTrigrams:
    """``outs[i]`` follows ``destinations[i]`` if ``sources[i]`` is at most ``reach`` words before the latter."""

    def __init__(self, sources: list[int], destinations: list[int], outs: list[int], reach: int, n_words: int) -> None:
        self.reach = reach
        self.source, self.out = torch.full((2, n_words + 1), NONE)  # by destination; the last entry belongs to NONE
        self.source[destinations] = torch.tensor(sources, dtype=torch.long)
        self.out[destinations] = torch.tensor(outs, dtype=torch.long)

    def due(self, draft: Draft) -> Int64[Tensor, "document"]:
        source, out = self.source[draft.back(1)], self.out[draft.back(1)]
        seen = draft.last[draft.rows, source] >= draft.at - 1 - self.reach
        return torch.where((source != NONE) & seen, out, NONE)


class Questions:
    """``asker`` is followed by the word before the latest ``marker``, once per marker."""

    def __init__(self, marker: int, asker: int, n: int) -> None:
        self.marker, self.asker = marker, asker
        self.asked = torch.zeros(n, dtype=torch.long)  # position of the last marker that was asked about, 0 for none

    def due(self, draft: Draft) -> Int64[Tensor, "document"]:
        marked, asks = draft.last[:, self.marker], draft.back(1) == self.asker
        answer = draft.words[draft.rows, (marked - 1).clamp(min=0)]
        ordinary = (answer != self.marker) & (answer != self.asker)
        answers = asks & ordinary & (marked > self.asked)
        self.asked = torch.where(asks, marked, self.asked)
        return torch.where(answers, answer, NONE)


class Lookups:
    """``answers[k]`` follows ``selectors[0][i] selectors[1][j]`` if the last word of ``keys[i][j]`` was its ``[k]``."""

    def __init__(self, selectors: list[list[int]], keys: list[list[list[int]]], answers: list[int], n: int) -> None:
        self.first, self.second, self.keys = *torch.tensor(selectors), torch.tensor(keys)
        self.answers = torch.tensor(answers)
        self.looked_up = torch.full((n, *self.keys.shape[:2]), NOWHERE)  # position of the last key that was looked up

    def due(self, draft: Draft) -> Int64[Tensor, "document"]:
        asks = (draft.back(2)[:, None] == self.first)[:, :, None] & (draft.back(1)[:, None] == self.second)[:, None]
        stood, which = draft.last[:, self.keys].max(-1)
        answers = asks & (stood > self.looked_up)
        self.looked_up = torch.where(asks, stood, self.looked_up)
        answer = torch.where(answers, self.answers[which], NONE)
        return answer.flatten(1).amax(1)


Rule = SkipTrigrams | Questions | Lookups
