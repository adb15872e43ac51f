"""The record of one evaluation during training: a line of log.jsonl."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Evaluation:
    """Losses and head scores at every evaluation of training. Prefix matching, copying and the ``repeat`` losses are
    measured on repeated random tokens, the others on held-out text. Head scores are nested as ``[layer][head]``."""

    step: int
    tokens_seen: int
    val_loss_nats: float
    in_context_loss_drop_nats: float  # loss early in the window minus late; positive if the model learns from context
    repeat_first_loss_nats: float  # on the first copy of repeated random tokens
    repeat_second_loss_nats: float  # on the second copy
    prefix_matching: list[list[float]]  # mean attention to the token after the earlier occurrence, 0..1
    previous_token: list[list[float]]  # mean attention to the previous token, 0..1
    copying: list[list[float]]  # mean sign of the head's effect on (next token's logit − mean logit), −1..1
    loss_by_position_nats: list[float]  # entry i is the mean loss of predicting the token at position i + 1


@dataclass(frozen=True)
class Device:
    """The device on which a model was trained."""

    name: str
    processes: int  # number of processes that trained the model together
    peak_flops: float | None  # FLOP/s of bf16 matrix products, measured when training began; None for a CPU

    def __str__(self) -> str:
        return f"{self.processes} × {self.name}" if self.processes > 1 else self.name
