"""Models that were led to induction by weights of repeats in the loss, an experiment of 2026 (docs/log/prose.md)."""

import csv
from pathlib import Path

from pydantic import TypeAdapter

from pathsum.records.registry import record


@record(
    "dose_response",
    "see §5.8 and §6.3; the script is at the tag experiments-2026",
    "records/doses.py",
    stored="reports/dose_response.csv",
    stage="an experiment",
)
class DoseRow:
    """Onset, prefix matching, loss and cost of cutting the key edge, by weight of repeats in the training loss. The
    weight was held for a third of training, and 1 in the last third."""

    weight: float  # in the loss, of tokens that complete a pair seen before in the window, at first
    seed: int
    tokens: int  # seen in training
    onset_tokens: int | None  # docs/framework.md §6.3, up to the highest prefix matching; None without an onset
    matching_led: float  # prefix matching of the best head at the end of the first third, 0..1
    matching: float  # the same at the end of training
    previous_token: float  # of the best first-layer head at the end of training, 0..1
    loss_nats: float  # held-out loss at the end of training, without weights
    cut_on_repeats_nats: float  # rise of the loss without the key edge, on tokens that complete a repeat
    cut_elsewhere_nats: float  # the same on all other tokens


def read_doses(path: Path) -> list[DoseRow]:
    """Return the rows of dose_response.csv at ``path``; none if there is no such file."""
    if not path.exists():
        return []
    rows, typed = csv.DictReader(path.read_text().splitlines()), TypeAdapter(DoseRow)
    return [typed.validate_python({name: value or None for name, value in row.items()}) for row in rows]
