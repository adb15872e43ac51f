"""Measure what the K-edges of induction save on names that repeat in text (docs/framework.md §5.16)."""

from typing import Any

import torch
import torch.nn.functional as F

from pathsum.behavior.repeated_names import repeated_names
from pathsum.config import ExtractConfig
from pathsum.extraction.circuit import CHUNK, Edge, Roles, cut
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.extraction.joint_ablation import induction_heads
from pathsum.interventions.run import Run
from pathsum.records.ablations import CONTRASTED
from pathsum.records.registry import intervals
from pathsum.records.repeated_names import ALL, CONTROL, NAME, RepeatedNameRow
from pathsum.statistics.bootstrap import NO_INTERVAL, share_interval
from pathsum.text.repeats import completes_a_repeat

TOP = 10  # names of largest total cost that are listed
_SEED = 2027


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the record ``repeated_names``; no rows without an induction head past the first layer."""
    windows, roles, generator = data.windows, Roles.of(trained), torch.Generator().manual_seed(_SEED)
    by_window = [repeated_names([data.words[token] for token in row]) for row in windows.tolist()]
    numbers = {name: i for i, name in enumerate(dict.fromkeys(name for found in by_window for name in found))}
    names = [*numbers]
    if not names or roles is None or roles.induction not in induction_heads(trained.log[-1]):
        return {"repeated_names": []}
    window, number, occurrence, position = torch.tensor(
        [
            (w, numbers[name], n, position)
            for w, found in enumerate(by_window)
            for name, places in found.items()
            for n, positions in enumerate(places)
            for position in positions
        ]
    ).mT
    at = window, position - 1
    target, again = windows[window, position], completes_a_repeat(windows)[at]
    later, first, new = (occurrence > 0) & again, occurrence == 0, (occurrence == 0) & ~again
    loss = F.cross_entropy(trained.natural.logits[at], target, reduction="none").double()
    edges = [Edge("K", early, late) for late in roles.inductions for early in roles.previous]
    runs = (Run(trained.model, part) for part in windows[:, :-1].tensor_split(max(1, len(windows) // CHUNK)))
    reads = zip(*([cut(run, edges, method).read for method in CONTRASTED] for run in runs), strict=True)
    rows = []
    for method, parts in zip(CONTRASTED, reads, strict=True):
        logits = F.linear(torch.cat(parts)[at], trained.model.W_U, trained.model.b_U)
        without = F.cross_entropy(logits, target, reduction="none").double()
        cost = without - loss
        total = cost.new_zeros(len(names)).index_add_(0, number[later], cost[later])
        groups = [(ALL, "", later, first), (CONTROL, "", new, new)]
        for i in total.argsort(descending=True, stable=True)[:TOP].tolist():
            groups.append((NAME, names[i], later & (number == i), first & (number == i)))
        for kind, name, some, before in groups:
            if not some.any():
                continue
            part, whole = torch.stack([cost * some, some.double()]) @ F.one_hot(window, len(windows)).double()
            _, *ends = NO_INTERVAL if name else share_interval(part, whole, data.window_documents, generator)
            rows.append(
                RepeatedNameRow(
                    kind=kind,
                    method=method,
                    name=name,
                    windows=len(window[some].unique()),
                    occurrences=len(torch.stack([window, number, occurrence])[:, some].unique(dim=1).mT),
                    tokens=int(some.sum()),
                    first_nats=loss[before].mean().item(),
                    loss_nats=loss[some].mean().item(),
                    cut_nats=without[some].mean().item(),
                    **intervals(cost_nats=(cost[some].mean().item(), *ends)),
                )
            )
    return {"repeated_names": rows}
