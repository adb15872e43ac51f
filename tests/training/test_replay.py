"""On a GPU, a recorded step does what the step itself does, and a stopped run ends as an unbroken one."""

import copy
from pathlib import Path

import pytest
import torch

from pathsum.config import CellConfig
from pathsum.model.fast import loss
from pathsum.model.transformer import Transformer
from pathsum.training import loop
from pathsum.training.optimizer import optimizers, set_rate
from pathsum.training.replay import RecordedStep
from pathsum.training.step import update
from tests.training.small import D_VOCAB, MODEL, RUN, TRAIN, run, windows

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
POSITIONS = ("relative", "sinusoidal", "rotary", "none")


def model_on(device: str, positions: str) -> Transformer:
    shape = MODEL.model_copy(update={"positions": positions, "d_head": 8, "d_model": 16, "norm": "rms"})
    return Transformer(shape, D_VOCAB, torch.Generator().manual_seed(0)).to(device)


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("positions", POSITIONS)
def test_a_recorded_step_changes_the_weights_to_the_same_bits(positions: str, autocast: bool) -> None:
    model = model_on("cuda", positions)
    other = copy.deepcopy(model)
    ours, theirs = optimizers(model, TRAIN), optimizers(other, TRAIN)
    recorded = RecordedStep(model, ours, autocast)
    for step in range(9):
        batch = windows().batch(torch.arange(5) + step).cuda()
        for opts in (ours, theirs):
            set_rate(opts, 1 / (1 + step))
        assert recorded(batch) == update(other, theirs, batch, autocast), step
    for (name, mine), its in zip(model.named_parameters(), other.parameters(), strict=True):
        assert mine.equal(its), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("d_vocab", [3, 1000, 4096, 50_257])
def test_the_kernel_does_what_the_operations_do(d_vocab: int, dtype: torch.dtype) -> None:
    """Also for a target of probability 0."""
    logits = (30 * torch.randn(65, d_vocab, generator=torch.Generator().manual_seed(1))).to("cuda", dtype)
    targets = logits.argmin(-1, keepdim=True)
    targets[::2] = logits.argmax(-1, keepdim=True)[::2]
    ours, exact = logits.clone(), logits.double()
    ours[3], exact[3] = float("nan"), float("nan")  # training stops at a loss that is not finite
    kernel = loss._fastest(d_vocab, dtype)
    log_p = kernel(ours, targets)
    assert kernel is not loss._one_by_one
    assert log_p[3].isnan()
    rest = torch.arange(65) != 3
    torch.testing.assert_close(log_p.double()[rest], loss._one_by_one(exact, targets)[rest], rtol=1e-5, atol=1e-5)
    error = 4e-3 if dtype == torch.bfloat16 else 1e-4
    torch.testing.assert_close(ours.double()[rest], exact[rest], rtol=error, atol=1e-6)


@pytest.mark.parametrize("positions", POSITIONS)
def test_a_gpu_takes_the_steps_of_a_cpu(positions: str) -> None:
    """With AdamW: Muon computes in bf16 on a GPU."""
    adamw = TRAIN.model_copy(update={"optimizer": "adamw", "lr_attention": 0.003})
    losses = {}
    for device in ("cpu", "cuda"):
        model = model_on(device, positions)
        opts = optimizers(model, adamw)
        losses[device] = [
            update(model, opts, windows().batch(torch.arange(5) + step).to(device), False) for step in range(9)
        ]
    assert losses["cuda"] == pytest.approx(losses["cpu"], abs=1e-4)
    assert losses["cpu"][-1] < losses["cpu"][0] - 0.1


def test_a_run_stopped_three_times_ends_as_an_unbroken_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is saved, in an evaluation, and in a recorded step."""
    cell = CellConfig(seed=3, model=MODEL, train=TRAIN.model_copy(update={"device": "cuda"}))
    run(tmp_path / "whole" / RUN, cell)
    taken, require_finite = 0, loop._require_finite
    for stop in (1, 5, 13):

        def stopped(*args: object, stop: int = stop) -> None:
            nonlocal taken
            taken += 1
            if taken == stop:
                raise KeyboardInterrupt
            require_finite(*args)  # type: ignore[arg-type]

        taken = 0
        monkeypatch.setattr(loop, "_require_finite", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "broken" / RUN, cell)
    monkeypatch.setattr(loop, "_require_finite", require_finite)
    run(tmp_path / "broken" / RUN, cell)
    for path in sorted((tmp_path / "whole" / RUN).rglob("*.*")):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "broken" / path.relative_to(tmp_path / "whole")).read_bytes(), path
