"""A new position scheme needs a class and its name. Unsupported combinations are refused by name."""

import pytest
import torch

from pathsum.config import ModelConfig
from pathsum.model.positions import SCHEMES, Rotary, scheme, sinusoids
from pathsum.model.transformer import Transformer
from pathsum.training.optimizer import optimizers
from pathsum.training.step import update
from tests.training.small import D_VOCAB, MODEL, TRAIN, windows

NAMES = ", ".join(sorted(SCHEMES))


class LongRotary(Rotary):
    base = 500_000.0


def test_a_new_scheme_is_a_class_and_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCHEMES, "rotary_500k", LongRotary)
    models = {}
    for positions in ("rotary", "rotary_500k"):
        config = ModelConfig(**{**MODEL.model_dump(), "positions": positions, "d_head": 6})
        model = models[positions] = Transformer(config, D_VOCAB, torch.Generator().manual_seed(0)).double()
        opts = optimizers(model, TRAIN)
        losses = [update(model, opts, windows().batch(torch.arange(5)), autocast=False) for _ in range(5)]
        assert losses[-1] < losses[0]
    tokens = torch.arange(1, 12)[None]
    forward, trace = models["rotary_500k"](tokens), models["rotary_500k"].trace(tokens)
    torch.testing.assert_close(trace.logits, forward, rtol=0, atol=1e-11)
    models["rotary"].load_state_dict(models["rotary_500k"].state_dict())
    assert (models["rotary"](tokens) - forward).abs().max() > 1e-6  # the base matters


def test_a_wave_of_another_base_is_slower() -> None:
    short, long = sinusoids(13, 6), sinusoids(13, 6, 500_000.0)
    torch.testing.assert_close(short[:, 0], long[:, 0])  # one radian per position
    angle = 7 / 500_000 ** (2 / 3)
    torch.testing.assert_close(long[7, 5], torch.tensor(angle, dtype=torch.float64).sin())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positions": "rotry"}, "positions: rotry: no such scheme; did you mean rotary?"),
        ({"positions": "learned"}, f"positions: learned: no such scheme; known: {NAMES}"),
        ({"positions": "rotary"}, "d_head: rotary positions need an even d_head, got 5"),
        ({"positions": "none", "clamp": "previous_token"}, "clamp: expected layers and relative positions, got"),
        ({"n_layers": 0, "clamp": "previous_token"}, "clamp: expected layers and relative positions, got"),
    ],
)
def test_what_no_scheme_can_be_built_with_is_refused(changes: dict[str, object], message: str) -> None:
    config = ModelConfig(**{**MODEL.model_dump(), **changes})
    for build in (scheme, lambda c: Transformer(c, D_VOCAB, torch.Generator())):
        with pytest.raises(ValueError, match=f"^{message}"):
            build(config)
