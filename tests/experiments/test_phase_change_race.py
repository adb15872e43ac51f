"""When a recipe counts as changed, how recipes take turns, and what a bound is. No training and no clock."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from bench.contenders import PlainTransformer
from bench.shapes import Shape
from experiments.curves import band, draw
from experiments.phase_change import ours, paper_recipe, plain_loop, race, rows, table
from experiments.runs import Point, Run, Text
from tests.training.small import D_VOCAB, windows


class Scripted(Run):
    """A run with scripted clock and scores: ``pace`` seconds per evaluation, induction from evaluation ``nth`` on."""

    def __init__(self, recipe: str, pace: float, nth: float, seed: int = 0, steps: float = math.inf) -> None:
        about = {"recipe": recipe, "seed": seed}
        super().__init__(about, lambda i: None, lambda: 0.0, tokens_per_step=1000, steps=steps, every=1000)
        self.pace, self.nth = pace, nth

    def advance(self) -> None:
        super().advance()
        self.at, self.seconds = len(self.curve), len(self.curve) * self.pace
        score = 0.5 if len(self.curve) >= self.nth else 0.1
        self.curve[-1] = Point(1000 * self.at, self.seconds, score)


def test_a_change_must_last() -> None:
    runner = Scripted("ours", 1.0, math.inf)
    scores = [0.1, 0.31, 0.32, 0.2, 0.4, 0.4, 0.4]
    for i, score in enumerate(scores):
        assert runner.change() is None
        runner.curve.append(Point(i, float(i), score))
    found = runner.change()
    assert found is not None
    assert found.tokens == 4


def test_others_get_their_multiple_of_our_seconds_spread_over_all_of_them() -> None:
    first, other = Scripted("ours", 2.0, 8), Scripted("paper_recipe", 3.0, math.inf)
    shares = []

    def watch() -> None:
        Scripted.advance(first)
        shares.append(other.seconds / first.seconds)

    first.advance = watch  # type: ignore[method-assign]
    race(first, [other], times=4)
    assert first.change() is not None
    assert other.change() is None
    assert 4 * first.seconds <= other.seconds < 4 * first.seconds + other.pace
    assert all(share == pytest.approx(4, abs=2.5) for share in shares[1:])


def test_one_that_changes_or_ends_is_left_alone() -> None:
    first, soon = Scripted("ours", 1.0, 5, steps=6), Scripted("plain_loop", 1.0, 2)
    race(first, [soon], times=10)
    assert (len(first.curve), len(soon.curve)) == (6, 4)
    assert first.done
    assert first.change() is None  # its recipe ended before it had lasted


def test_rows_are_medians_and_one_seed_without_a_change_makes_them_a_bound() -> None:
    races = []
    for seed, (mine, theirs) in enumerate([(2, 10), (4, 12), (5, math.inf)]):
        pair = Scripted("ours", 1.0, mine, seed), Scripted("paper_recipe", 2.0, theirs, seed)
        race(pair[0], [pair[1]], times=8)
        races.append((pair[0], [pair[1]]))
    found = rows(races)
    seconds = found["phase_change_seconds.paper_recipe"]
    end = races[2][1][0].seconds
    assert (seconds["ours"], seconds["theirs"]) == (4, 24)
    assert seconds["ratio_range"] == [6.0, max(10.0, round(end / 5, 2))]
    assert seconds["lower_bound"]
    assert found["phase_change_tokens.paper_recipe"]["ratio"] == pytest.approx(5.0)
    assert not rows(races[:2])["phase_change_seconds.paper_recipe"]["lower_bound"]


def test_where_ours_has_not_changed_nothing_is_compared() -> None:
    assert rows([(Scripted("ours", 1.0, 9), [Scripted("paper_recipe", 1.0, 9)])]) == {}


@pytest.mark.parametrize("recipe", [ours, paper_recipe, plain_loop])
def test_every_recipe_trains_and_is_asked(recipe: object) -> None:
    held = np.tile(np.arange(1, D_VOCAB, dtype=np.uint16), 300)
    text = Text(type(windows())(held, 256), D_VOCAB)
    runner = recipe(0, text)  # type: ignore[operator]
    runner.every = 2 * runner.tokens_per_step
    runner.advance()
    assert runner.curve[0].tokens == 2 * runner.tokens_per_step
    assert 0 < runner.curve[0].prefix_matching < 1
    assert runner.seconds > 0


def test_the_plain_models_patterns_are_those_that_it_mixes_by() -> None:
    """The logits of two layers from the model's own patterns equal those from torch's fused attention."""
    torch.manual_seed(0)
    model = PlainTransformer(Shape("", 2, 2, n_heads=2, d_head=5, d_model=10, n_ctx=13, d_vocab=D_VOCAB)).double()
    tokens = torch.randint(D_VOCAB, (2, 11))
    x = model.embedding(tokens) + model.positions[:11]
    for pattern, read, write in zip(model.patterns(tokens), model.read, model.write, strict=True):
        assert (pattern.triu(1) == 0).all()
        x = x + write((pattern @ model.heads(read, x)[2]).transpose(1, 2).flatten(2))
    ours = model.unembedding(torch.nn.functional.rms_norm(x, x.shape[-1:]))
    torch.testing.assert_close(ours, model(tokens))


def test_the_band_is_students_interval_where_all_seeds_are() -> None:
    x, mean, half = band([(np.array([0.0, 10.0]), np.array([1.0, 1.0])), (np.array([2.0, 8.0]), np.array([3.0, 3.0]))])
    assert (x[0], x[-1]) == (2.0, 8.0)
    assert mean == pytest.approx(2.0)
    assert half == pytest.approx(12.7062 * 2**0.5 / 2**0.5, rel=1e-4)


def test_curves_are_written_and_drawn(tmp_path: Path) -> None:
    first, again, other = Scripted("ours", 1 / 7, 9), Scripted("ours", 2 / 7, 9, seed=1), Scripted("plain_loop", 1.0, 9)
    for run in (first, first, again, again, other):
        run.advance()
    points = table([(first, [other]), (again, [])])
    assert points.to_csv(index=False).splitlines()[:2] == [
        "recipe,seed,tokens,seconds,prefix_matching",
        "ours,0,1000,0.14,0.1",
    ]
    draw(points, tmp_path / "phase_change.png")
    assert (tmp_path / "phase_change.png").stat().st_size > 0
