"""What the report is made from: the records of each declared cell and of the corpus, read once.

``Cell`` is one trained model's folder; the extract stage writes it with ``write_cell`` and the report reads it back.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathsum.core.storage import read_json, read_lines, read_rows, write_json, write_rows, write_whole
from pathsum.probes.evaluation import Evaluation
from pathsum.records.roles import HeadRoles, Place
from pathsum.records.rows import (
    AblationRow,
    AttentionSinkRow,
    BalanceRow,
    BandwidthRow,
    BigramRow,
    CalibrationRow,
    CellSummary,
    ChangePointRow,
    CompositionRow,
    ContentRow,
    ContentScoreRow,
    CorpusSummary,
    DeletingRow,
    DirectionRow,
    DistanceRow,
    EdgeContrastRow,
    EigenvalueRow,
    ExactnessRow,
    FormationRow,
    FuzzyMatchingRow,
    HeadRow,
    JointAblationRow,
    JointCopyingRow,
    LabelRow,
    LensRow,
    MatchingRow,
    NGramRow,
    NormScaleRow,
    OverlapRow,
    PassageRow,
    PatternRow,
    ScorePathRow,
    SkipTrigramBugRow,
    SkipTrigramRow,
    SkipTrigramTallyRow,
    SoftmaxCompetitionRow,
    SplitRow,
    SufficiencyRow,
    SuffixCutRow,
    SuffixMatchRow,
    SuffixPredictionRow,
    TermRow,
    TokenClusterRow,
    TokenLossRow,
    TokenTableRow,
    VirtualHeadRow,
)

TABLES: dict[str, type[Any]] = {
    "heads": HeadRow,
    "eigenvalues": EigenvalueRow,
    "composition": CompositionRow,
    "distances": DistanceRow,
    "skip_trigrams": SkipTrigramRow,
    "skip_trigram_tallies": SkipTrigramTallyRow,
    "skip_trigram_bugs": SkipTrigramBugRow,
    "bigrams": BigramRow,
    "exactness": ExactnessRow,
    "token_clusters": TokenClusterRow,
    "directions": DirectionRow,
    "joint_copying": JointCopyingRow,
    "overlaps": OverlapRow,
    "bandwidth": BandwidthRow,
    "deleting": DeletingRow,
    "virtual_heads": VirtualHeadRow,
    "ablations": AblationRow,
    "edge_contrasts": EdgeContrastRow,
    "terms": TermRow,
    "joint_ablation": JointAblationRow,
    "sufficiency": SufficiencyRow,
    "softmax_competition": SoftmaxCompetitionRow,
    "attention_sinks": AttentionSinkRow,
    "norm_scales": NormScaleRow,
    "score_paths": ScorePathRow,
    "content": ContentRow,
    "content_scores": ContentScoreRow,
    "matching": MatchingRow,
    "balance": BalanceRow,
    "labels": LabelRow,
    "suffix_matches": SuffixMatchRow,
    "suffix_predictions": SuffixPredictionRow,
    "suffix_cuts": SuffixCutRow,
    "fuzzy_matching": FuzzyMatchingRow,
    "lens": LensRow,
    "token_losses": TokenLossRow,
    "formation": FormationRow,
    "changes": ChangePointRow,
    "passages": PassageRow,
    "patterns": PatternRow,
    "splits": SplitRow,
    "token_tables": TokenTableRow,
}  # the field of Cell, which is also the name of its parquet file


FORMED = 0.3  # prefix matching: heads that do induction have more, heads that do not under 0.1


@dataclass(frozen=True)
class Cell:
    """Everything that is known of one trained model."""

    summary: CellSummary
    log: list[Evaluation]
    heads: list[HeadRow]
    eigenvalues: list[EigenvalueRow]
    composition: list[CompositionRow]
    distances: list[DistanceRow]
    bigrams: list[BigramRow]
    exactness: list[ExactnessRow]
    token_clusters: list[TokenClusterRow] = field(default_factory=list)
    directions: list[DirectionRow] = field(default_factory=list)
    joint_copying: list[JointCopyingRow] = field(default_factory=list)
    overlaps: list[OverlapRow] = field(default_factory=list)
    bandwidth: list[BandwidthRow] = field(default_factory=list)
    deleting: list[DeletingRow] = field(default_factory=list)
    virtual_heads: list[VirtualHeadRow] = field(default_factory=list)
    ablations: list[AblationRow] = field(default_factory=list)
    edge_contrasts: list[EdgeContrastRow] = field(default_factory=list)
    terms: list[TermRow] = field(default_factory=list)
    joint_ablation: list[JointAblationRow] = field(default_factory=list)
    sufficiency: list[SufficiencyRow] = field(default_factory=list)
    softmax_competition: list[SoftmaxCompetitionRow] = field(default_factory=list)
    attention_sinks: list[AttentionSinkRow] = field(default_factory=list)
    norm_scales: list[NormScaleRow] = field(default_factory=list)
    score_paths: list[ScorePathRow] = field(default_factory=list)
    content: list[ContentRow] = field(default_factory=list)
    content_scores: list[ContentScoreRow] = field(default_factory=list)
    matching: list[MatchingRow] = field(default_factory=list)
    balance: list[BalanceRow] = field(default_factory=list)
    labels: list[LabelRow] = field(default_factory=list)
    suffix_matches: list[SuffixMatchRow] = field(default_factory=list)
    suffix_predictions: list[SuffixPredictionRow] = field(default_factory=list)
    suffix_cuts: list[SuffixCutRow] = field(default_factory=list)
    fuzzy_matching: list[FuzzyMatchingRow] = field(default_factory=list)
    lens: list[LensRow] = field(default_factory=list)
    token_losses: list[TokenLossRow] = field(default_factory=list)
    formation: list[FormationRow] = field(default_factory=list)
    changes: list[ChangePointRow] = field(default_factory=list)
    passages: list[PassageRow] = field(default_factory=list)
    patterns: list[PatternRow] = field(default_factory=list)
    splits: list[SplitRow] = field(default_factory=list)
    token_tables: list[TokenTableRow] = field(default_factory=list)
    skip_trigrams: list[SkipTrigramRow] = field(default_factory=list)
    skip_trigram_tallies: list[SkipTrigramTallyRow] = field(default_factory=list)
    skip_trigram_bugs: list[SkipTrigramBugRow] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.summary.cell

    def induction_head(self) -> HeadRow | None:
        """The head with the highest prefix-matching score at training's last evaluation. None without heads."""
        return self._at(HeadRoles.of(self.log).induction)

    def formed_induction_head(self) -> HeadRow | None:
        """The same where it does attend there, as induction heads do; None where none has formed."""
        best = self.induction_head()
        return best if best is not None and best.prefix_matching >= FORMED else None

    def previous_token_head(self) -> HeadRow | None:
        """The first-layer head that attends most to the previous token at training's last evaluation. None without
        heads."""
        return self._at(HeadRoles.of(self.log).previous)

    def _at(self, place: Place | None) -> HeadRow | None:
        return next((h for h in self.heads if (h.layer, h.head) == place), None)


@dataclass(frozen=True)
class Results:
    """All that the report may say. ``missing`` names declared cells that have no records."""

    cells: dict[str, Cell]  # the grid
    controls: dict[str, Cell]  # beside it, with something taken away or put in: no claim on the grid counts them
    corpus: CorpusSummary
    ngrams: list[NGramRow]
    provenance: dict[str, Any]
    missing: tuple[str, ...]
    calibration: list[CalibrationRow]  # what the detectors are worth on planted truth

    def with_layers(self, n_layers: int) -> list[Cell]:
        return [c for c in self.cells.values() if c.summary.n_layers == n_layers]

    def layer_counts(self) -> list[int]:
        return sorted({c.summary.n_layers for c in self.cells.values()})


def write_cell(folder: Path, cell: Cell) -> None:
    """``cell`` as summary.json, log.jsonl and one parquet file a table; equal cells give equal bytes."""
    write_json(folder / "summary.json", cell.summary)
    lines = (json.dumps(dataclasses.asdict(e), sort_keys=True, allow_nan=False) + "\n" for e in cell.log)
    write_whole(folder / "log.jsonl", "".join(lines).encode())
    for name, kind in TABLES.items():
        write_rows(folder / f"{name}.parquet", getattr(cell, name), kind)


def read_cell(folder: Path) -> Cell:
    """The cell in ``folder``. FileNotFoundError names each absent file; ValueError another version's records."""
    expected = ["summary.json", "log.jsonl", *(f"{name}.parquet" for name in TABLES)]
    absent = [name for name in expected if not (folder / name).is_file()]
    if absent:
        raise FileNotFoundError(
            f"{folder}: expected the records of an extracted cell; missing {', '.join(absent)}. Run `dvc repro`."
        )
    tables = {name: read_rows(folder / f"{name}.parquet", kind) for name, kind in TABLES.items()}
    return Cell(
        summary=read_json(folder / "summary.json", CellSummary),
        log=read_lines(folder / "log.jsonl", Evaluation),
        **tables,
    )
