"""The first screen of the report: the question, its answer, and what was trained. The words are in chapters/answer.md
and chapters/trained.md."""

from collections.abc import Sequence
from typing import Any

from pathsum.claims.controls import NOT_FORMED
from pathsum.claims.corpora import Row
from pathsum.claims.zero_layers import TOLERANCE
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.themes import one_layer, suffixes
from pathsum.report.told import Frames

TITLE = "What zero, one and two layers of attention learn"
QUESTION = (
    "Do small attention-only transformers, trained on real text, learn the circuits that A Mathematical Framework for "
    "Transformer Circuits describes?"
)
OPENED = "Do these models have the circuits that A Mathematical Framework for Transformer Circuits describes?"


def heading(results: Results) -> tuple[str, str]:
    """Return the title of the report and the question that it answers."""
    if "opened" not in results.provenance:
        return TITLE, QUESTION
    return f"{', '.join(results.cells)}, taken apart", OPENED


def facts(results: Results, texts: Sequence[Row] = ()) -> dict[str, Any]:
    """Return the summaries of models and controls, by number of layers, and what else the first screen says."""
    cells, about = Frames(results.cells).cells.astype({"onset_tokens": float}), results.provenance
    zero, one, two = (cells.loc[[cell.name for cell in results.of_depth(n)]] for n in range(3))
    having = {cell.name: cell for cell in results.of_depth(2) if cell.has_induction_head()}
    weights = cells.query("n_layers > 0 and repeat_weight > 1").groupby(["repeat_weight", "repeat_tokens"])
    sources = f" (source code of {about['corpus_sources']})" if about.get("corpus_sources") else ""
    return {
        "cells": cells,
        "zero": zero,
        "one": one,
        "two": two,
        "controls": Frames(results.controls).cells,
        "excess": zero["bigram_excess_nats"].dropna().astype(float).sort_values(key=abs),
        "tolerance": TOLERANCE,
        "heads": one_layer.facts(results),
        "not_formed": NOT_FORMED,
        "suffix": suffixes.facts(Frames(having)),
        "led": {weight: list(models.index) for weight, models in weights},
        "opened": "opened" in about,
        "curves": results.has_curves,
        "corpus": results.corpus,
        "text": f"corpus “{results.corpus.name}”{sources}",
        "when": f"computed {about['computed']}" if "computed" in about else about.get("trained_on", "unknown machine"),
        "elsewhere": [
            {"corpus": row["corpus"], "profiled": bool(profile), "onsets": row["onsets"]}
            for row, (name, _, profile) in ((row, row["corpus"].partition("@")) for row in texts)
            if name != results.corpus.name
        ],
    }


def answer(results: Results, texts: Sequence[Row] = ()) -> tuple[str, ...]:
    """Answer the question in one sentence, if all models agree, and for zero, one and two layers."""
    return tuple(told.paragraphs("chapters/answer", facts(results, texts)))


def setup(results: Results) -> str:
    """Describe in one line what was trained, on what text, on what machine and, if it is known, when."""
    return " ".join(told.paragraphs("chapters/trained", facts(results)))
