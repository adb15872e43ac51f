"""A whole report, written once for all files that read one."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pathsum.claims.corpora import Row
from pathsum.claims.registry import judge_all
from pathsum.records.composition import CompositionRow
from pathsum.records.results import Results
from pathsum.report.build import write_report
from pathsum.report.corpora import row
from pathsum.report.page.lab import export
from pathsum.report.story import draw_all
from tests.report import synthetic
from tests.report.page.small import HOSTILE, documents, other_tokenizer, random_model, tokenizer, windows
from tests.report.page.watched import NAME, with_torch_patterns

OTHER = "prose-L2H2S1"
EARLIER = "L2H2S0 at 0.30 M tokens"


def exported_models() -> list[dict[str, Any]]:
    """The lab of random models with the names of three of theirs, and of one that was trained on another text."""
    models = {name: random_model(n, n_layers=n, n_heads=2) for n, name in enumerate(("L0S0", "L1H2S0", "L2H2S0"))}
    passages = (*documents()[:3], HOSTILE[4])
    words = other_tokenizer()
    other = {OTHER: random_model(9, words.get_vocab_size(), n_heads=2)}
    return [
        export("python", models, tokenizer(), windows(passages), {EARLIER: random_model(8, n_heads=2)}),
        export("prose", other, words, windows(passages[::-1], words)),
    ]


def made_up_results() -> Results:
    """Return made-up results of models of every depth. One model is missing. One guesses repeated tokens, and its
    induction head composes with another head than the previous-token head."""
    made = synthetic.results(heads=(2,), seeds=(0,), missing=("L2H9S9",))
    drawn = with_torch_patterns(made.cells[NAME])
    guesses = replace(drawn.summary, repeat_second_loss_nats=drawn.summary.repeat_guessing_nats, repeat_top1=0.07)
    moved = [replace(edge, early_head=1 - edge.early_head) for edge in drawn.rows(CompositionRow)]
    cells = {**made.cells, NAME: replace(drawn, summary=guesses).having(composition=moved)}
    return replace(made, cells=cells, texts={"prose": prose()})


def rows_of_others() -> list[Row]:
    """Return the row of the results on another text."""
    return [row("prose", prose(), judge_all(prose()))]


def prose() -> Results:
    """Return made-up results on another text: one model of each depth, in which no claim holds."""
    made = synthetic.results(heads=(2,), seeds=(1,), works=False)
    cells = {
        f"prose-{name}": replace(c, summary=replace(c.summary, cell=f"prose-{name}")) for name, c in made.cells.items()
    }
    return replace(made, cells=cells, controls={}, corpus=replace(made.corpus, name="prose"))


@pytest.fixture(scope="session")
def results() -> Results:
    return made_up_results()


@pytest.fixture(scope="session")
def full(results: Results, made_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """Return the folder of their report."""

    def write(folder: Path) -> None:
        write_report(
            results, judge_all(results), draw_all(results), folder, exported=exported_models(), texts=rows_of_others()
        )

    return made_once("reports", write)
