"""The record of one evaluation in training, a line of log.jsonl."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Evaluation:
    """A model after ``tokens_seen`` tokens, on held-out text and on repeated random tokens.

    Head scores are nested ``[layer][head]`` and empty for zero layers.
    """

    step: int
    tokens_seen: int
    val_loss_nats: float
    in_context_loss_drop_nats: float  # early − late in the window; positive = learns from context
    repeat_first_loss_nats: float  # on the first copy of repeated random tokens
    repeat_second_loss_nats: float  # on the second copy
    prefix_matching: list[list[float]]  # mean attention to the token after the first occurrence, 0..1
    previous_token: list[list[float]]  # mean attention to the previous token, 0..1
    copying: list[list[float]]  # share of repeated tokens that the head's own output raises above the mean, −1..1
    loss_by_position_nats: list[float]


@dataclass(frozen=True)
class Device:
    """The device that a model was trained on."""

    name: str
    processes: int  # that trained it together
    peak_flops: float | None  # of bf16 matrix products, measured when training began; None for a processor

    def __str__(self) -> str:
        return f"{self.processes} × {self.name}" if self.processes > 1 else self.name
