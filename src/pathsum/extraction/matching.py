"""Whether heads match tokens, on the pair of paths that carries their scores."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from pathsum.circuits.eigenvalues import positivity
from pathsum.circuits.matching import pair_matching_eigenvalues, scale_as_read
from pathsum.circuits.paths import all_paths, path_name
from pathsum.extraction.inputs import TrainedModel
from pathsum.extraction.pairs import POSITION, Pair
from pathsum.records.score_paths import MatchingRow


def matching_rows(trained: TrainedModel, found: Sequence[Pair], unigram: Float[Tensor, "vocab"]) -> list[MatchingRow]:
    """A row for every head of ``found``. One half of the repeated windows chooses the pair; the weights judge it."""
    heads: dict[tuple[int, int], list[Pair]] = {}
    for pair in found:
        heads.setdefault((pair.layer, pair.head), []).append(pair)
    return [_row(trained, mine, unigram) for mine in heads.values()]


def _row(trained: TrainedModel, mine: Sequence[Pair], unigram: Float[Tensor, "vocab"]) -> MatchingRow:
    weights = trained.model.weights()
    paths = {path_name(path): path for path in all_paths(weights)}
    best = max((p for p in mine if POSITION not in (p.query, p.key)), key=lambda p: _halves(p)[0])
    both = (paths[best.query], paths[best.key])
    readers = [path[0][0] if path else best.layer for path in both]  # where either path reads the embedding
    query, key = (
        scale_as_read(trained.repeated.scales[reader], trained.repeated_tokens, len(unigram)) for reader in readers
    )
    head = weights.layers[best.layer][best.head]
    eigenvalues = pair_matching_eigenvalues(weights, head, both, (query, key), unigram)
    whole = [sum(_halves(p)[half] for p in mine) for half in (0, 1)]
    chosen, judged = (nats / total if total > 0 else None for nats, total in zip(_halves(best), whole, strict=True))
    return MatchingRow(best.layer, best.head, best.query, best.key, chosen, judged, positivity(eigenvalues))


def _halves(pair: Pair) -> tuple[float, float]:
    """Preference on the half of the windows that chooses, and on the other."""
    half = len(pair.nats) // 2
    return pair.nats[:half].mean().item(), pair.nats[half:].mean().item()
