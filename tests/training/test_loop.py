"""Training ends with the same bytes however often it is killed, and states clearly why it stops."""

import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load
from torch.optim import Optimizer

import pathsum.training.loop as loop
from pathsum.config import CellConfig, ModelConfig, TrainConfig
from pathsum.core.storage import read_lines
from pathsum.model.transformer import Transformer
from pathsum.records.evaluation import Evaluation
from pathsum.text.windows import order
from pathsum.training import ranks
from pathsum.training.loop import TrainingDiverged, evaluation_steps, total_steps, update
from pathsum.training.optimizer import optimizers, rate
from pathsum.training.state import STATE
from tests.training.small import CELL, D_VOCAB, LED, MODEL, RUN, TRAIN, contents, run, trained, windows


def test_training_learns_and_leaves_a_checkpoint_at_each_evaluation(tmp_path: Path) -> None:
    told = run(tmp_path)
    assert told == read_lines(tmp_path / "log.jsonl", Evaluation)
    assert [e.step for e in told] == evaluation_steps(24, TRAIN) == [0, 1, 6, 12, 18, 24]
    assert {p.stem for p in (tmp_path / "checkpoints").iterdir()} == {f"{e.step:08d}" for e in told}
    assert told[-1].val_loss_nats < told[0].val_loss_nats - 0.3


def test_two_runs_give_the_same_bytes_and_another_seed_gives_others(tmp_path: Path) -> None:
    run(tmp_path / "a" / RUN)
    run(tmp_path / "b" / RUN)
    run(tmp_path / "c" / RUN, CellConfig(**{**CELL.model_dump(), "seed": 4}))
    assert contents(tmp_path / "a" / RUN) == contents(tmp_path / "b" / RUN)
    assert contents(tmp_path / "a" / RUN) != contents(tmp_path / "c" / RUN)


def test_each_step_tells_tokens_loss_and_learning_rate_and_changes_no_weight(tmp_path: Path) -> None:
    told: list[tuple[int, float, float]] = []
    data = (windows(0), windows(1))
    loop.train(CELL, D_VOCAB, "words", data, tmp_path / "a" / RUN, lambda _: None, "cell", lambda *s: told.append(s))
    trained(tmp_path / "b" / RUN)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    steps = total_steps(CELL)
    assert [tokens for tokens, _, _ in told] == [step * TRAIN.batch * MODEL.n_ctx for step in range(1, steps + 1)]
    assert [share for _, _, share in told] == [rate(step, steps, TRAIN) for step in range(1, steps + 1)]
    assert told[0][1] == pytest.approx(math.log(D_VOCAB), abs=0.5)
    assert told[-1][1] < told[0][1]


@pytest.mark.parametrize("cell", [CELL, LED])
def test_windows_come_in_order_and_the_weight_of_repeats_is_held_and_then_falls_to_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: CellConfig
) -> None:
    """LED has a weight of 3 for 9 of 24 steps, and of 1 from step 16 on."""
    seen: list[torch.Tensor] = []
    weighted: list[float] = []

    def noted(
        model: Transformer, opts: list[Optimizer], batch: torch.Tensor, autocast: bool,
        weights: torch.Tensor | None = None,
    ) -> float:  # fmt: skip
        seen.append(batch)
        weighted.append(1.0 if weights is None else weights[0, 0].item())
        return update(model, opts, batch, autocast, weights)

    monkeypatch.setattr(loop, "update", noted)
    monkeypatch.setattr(loop, "repeat_weights", lambda batch, weight: torch.full((len(batch), MODEL.n_ctx), weight))
    run(tmp_path, cell)
    text = windows(0)
    expected = [text.batch(order(cell.seed, i, TRAIN.batch, len(text))) for i in range(24)]
    assert all(mine.equal(theirs) for mine, theirs in zip(seen, expected, strict=True))
    held = [*[3.0] * 9, *(3 - i / 4 for i in range(1, 8)), *[1.0] * 8] if cell is LED else [1.0] * 24
    assert weighted == held


@pytest.mark.parametrize("killed_after", [0, 7, 12])
def test_a_run_killed_after_any_step_ends_as_an_unbroken_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_after: int
) -> None:
    trained(tmp_path / "whole" / RUN, LED)
    steps, update = 0, loop.update

    def killed(*args: object) -> float:
        nonlocal steps
        if steps == killed_after:
            raise KeyboardInterrupt
        steps += 1
        return update(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "update", killed)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "broken" / RUN, LED)
    monkeypatch.setattr(loop, "update", update)
    with (tmp_path / "broken" / RUN / "log.jsonl").open("a") as log:
        log.write('{"step": 23, "cut sh')  # a line that was being written
    run(tmp_path / "broken" / RUN, LED)
    assert contents(tmp_path / "broken" / RUN) == contents(tmp_path / "whole" / RUN)


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    run(tmp_path)
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    assert run(tmp_path) == []
    assert before == {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}


def test_a_diverged_run_stops_says_where_and_keeps_its_last_good_state(tmp_path: Path) -> None:
    wild = CellConfig(
        seed=3, model=CELL.model, train=TRAIN.model_copy(update={"lr_embedding": 1e30, "warmup_steps": 0})
    )
    with pytest.raises(
        TrainingDiverged, match=r"cell: the loss is (nan|inf) after [\d,]+ tokens; the last finite state"
    ):
        run(tmp_path, wild)
    state = (tmp_path / STATE).read_bytes()[:-32]
    kept = [state, *(path.read_bytes() for path in (tmp_path / "checkpoints").iterdir())]
    assert all(t.isfinite().all() for content in kept for t in load(content).values())


def test_a_batch_that_processes_cannot_share_evenly_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "world_size", lambda: 2)
    odd = CellConfig(seed=3, model=CELL.model, train=TrainConfig(**{**TRAIN.model_dump(), "batch": 5}))
    with pytest.raises(ValueError, match=r"train.batch: expected a multiple of the 2 processes that .*, got 5"):
        run(tmp_path, odd)


def test_evaluation_points_start_dense_and_include_both_ends() -> None:
    points = evaluation_steps(1000, TrainConfig(**{**TRAIN.model_dump(), "n_log_evals": 5, "n_linear_evals": 10}))
    assert points[0] == 0
    assert points[-1] == 1000
    assert points[1:6] == [1, 3, 10, 32, 100]


@pytest.mark.parametrize("smeared", [False, True])
@pytest.mark.parametrize("positions", ["relative", "sinusoidal", "rotary", "none"])
def test_every_kind_of_attention_trains_under_autocast(positions: str, smeared: bool) -> None:
    shape = {**MODEL.model_dump(), "positions": positions, "smeared_keys": smeared, "d_head": 4}
    model = Transformer(ModelConfig(**shape), D_VOCAB, torch.Generator().manual_seed(0))
    opts = optimizers(model, TRAIN)
    batch = windows().batch(torch.arange(5))
    losses = [update(model, opts, batch, autocast=True) for _ in range(8)]
    assert losses[-1] < losses[0]
    assert all(bool((p.grad is None) or p.grad.isfinite().all()) for p in model.parameters())


def test_no_tokens_leave_the_initial_weights_and_one_evaluation(tmp_path: Path) -> None:
    told = run(tmp_path / "none", CellConfig(**{**CELL.model_dump(), "train": {**TRAIN.model_dump(), "tokens": 0}}))
    run(tmp_path / "some")
    assert [e.step for e in told] == [0]
    first = "checkpoints/00000000.safetensors"
    assert contents(tmp_path / "none")[first] == contents(tmp_path / "some")[first]


def test_shuffled_text_teaches_no_order(tmp_path: Path) -> None:
    """The cycle is lost in shuffled text. What remains is the uniform frequency of 18 tokens."""
    told = run(tmp_path, CellConfig(**{**CELL.model_dump(), "train": {**TRAIN.model_dump(), "shuffled": True}}))
    assert told[-1].val_loss_nats > math.log(18) - 0.1


def test_a_golden_step(tmp_path: Path) -> None:
    """The loss after one step in float32. It may change with the recipe or the initialization, never with an
    optimization of speed."""
    plain = CellConfig(seed=3, model=CELL.model, train=TrainConfig(**{**TRAIN.model_dump(), "autocast": False}))
    told = run(tmp_path, plain)
    torch.testing.assert_close(
        torch.tensor([told[0].val_loss_nats, told[1].val_loss_nats]),
        torch.tensor([GOLDEN[0], GOLDEN[1]]),
        rtol=0,
        atol=2e-4,
    )


GOLDEN = (2.93037, 2.92462)
