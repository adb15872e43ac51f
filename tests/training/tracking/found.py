"""An evaluation that the tests of the mirror send to Weights & Biases, and a run that keeps what it gets."""

from typing import Any

from pathsum.records.evaluation import Evaluation

FOUND = Evaluation(
    7, 91, 2.5, 0.25, 3.5, 1.5, [[0.1, 0.2], [0.6, 0.3]], [[0.9, 0.0], [0.1, 0.2]], [[0.0, 0.0], [1.0, 0.0]], [2.5]
)


class Recorded:
    """A W&B run that keeps what is logged."""

    def __init__(self) -> None:
        self.logged: list[dict[str, Any]] = []

    def log(self, values: dict[str, Any]) -> None:
        self.logged.append(values)
