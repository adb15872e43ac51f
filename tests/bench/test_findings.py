"""The sentences at the head of the page follow from the stored numbers."""

from __future__ import annotations

from typing import Any

from bench.findings import laws, peak, phase_change, speed

TIME = {"what": "step", "axis": "n_ctx", "of": "seconds", "low": 0.4, "high": 0.6, "exponent": 0.5}
ONSET = {"law": 0.5, "batch": {"exponent": 0.4, "low": 0.3, "high": 0.5}, "context": {"exponent": 0.8, "low": 0.7, "high": 0.9}}  # fmt: skip # noqa: E501


def step(name: str, ratio: float, batch: int = 8) -> dict[str, Any]:
    return {
        f"train_step.L2H4_batch{batch}.{name}": {"ratio": ratio, "theirs": 64, "unit": "GFLOP/s of float32 products"}
    }


def prose(tokens: int) -> dict[str, Any]:
    cell = {"share": 0, "repetitive": 0.05, "tokens": tokens, "tokens_seen": tokens}
    return {"cells": [cell], "chosen": {"0.05": {"tokens": 2e6, "tokens_high": 3e6}}}


def test_speed_names_all_that_were_measured_and_no_other() -> None:
    assert speed({}) == "Not measured yet: `python -m bench.train_step`."
    found = step("compiled", 2.5) | step("plain_loop", 1.5)
    assert "is 2.5 times as fast as `torch.compile`" in speed(found)
    assert "and 1.5 times as fast as a plain PyTorch loop of a simpler model." in speed(found)
    assert "TransformerLens" not in speed(found)
    assert "and 3.0 times as fast as TransformerLens with" in speed(found | step("transformerlens_float32", 3.0))
    assert "compile" not in speed(step("plain_loop", 1.5))


def test_the_peak_has_its_type_and_its_rate() -> None:
    said = peak(step("matmul_peak", 0.56) | step("matmul_peak", 0.62, batch=16))
    assert said.startswith("It reaches 0.56 of the peak of its matrix products, and 0.62 at batch 16;")
    assert "64 and 64 GFLOP/s of float32 products" in said


def test_a_bound_on_the_phase_change_is_said_with_the_tuning_of_each_side() -> None:
    row = {"ours": 30.0, "ratio": 2.6, "lower_bound": True}
    found = {"phase_change_seconds.paper_recipe": row, "phase_change_seconds.plain_loop": row | {"lower_bound": False}}
    said = phase_change(found | {"phase_change_tokens.plain_loop": {"ours": 1_230_000}})
    assert "after 30.0 s and 1.23 million tokens; the paper's recipe takes more than 2.6 times as long" in said
    assert "a plain PyTorch loop takes 2.6 times as long (three learning rates were tried for each" in said
    assert "more settings were tuned for ours" in said


def test_laws_that_did_not_hold_are_counted() -> None:
    other = TIME | {"axis": "d_model", "exponent": 0.9, "low": 0.5, "high": 1.3}
    wide = TIME | {"exponent": 3.0, "low": 0.0, "high": 6.0}
    said = laws([TIME, other, wide], None, None)
    assert said.endswith("grows with n_ctx to the power of 0.5 and d_model to the power of 0.9.")
    shared = ONSET | {"context": {"exponent": 0.5, "low": 0.4, "high": 0.6}}
    assert laws([TIME], shared, prose(1_000_000)).endswith("to the power of 0.5.")
    assert "; one law did not hold: " in laws([TIME], ONSET, prose(1_000_000))
    both = laws([TIME], ONSET, prose(2_500_000))
    assert "; two laws did not hold: " in both
    assert "(0.4 and 0.8)" in both
    assert "(1 of 1 models were late)" in both
