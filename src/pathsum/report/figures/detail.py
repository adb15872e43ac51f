"""The models that figures and the page show in detail."""

from __future__ import annotations

from pathsum.records.results import Cell, Results


def in_detail(results: Results) -> dict[int, Cell]:
    """Return, by number of layers, the model to show in detail: of the models with the middle number of heads (the
    larger of two), the one with the lowest held-out loss."""
    found = {}
    for n_layers in results.layer_counts():
        cells = results.with_layers(n_layers)
        counts = sorted({c.summary.n_heads for c in cells})
        middle = [c for c in cells if c.summary.n_heads == counts[len(counts) // 2]]
        found[n_layers] = min(middle, key=lambda c: c.summary.val_loss_nats)
    return found
