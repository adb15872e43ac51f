"""Stage `report`: write the report from stored records, and mirror its figures and tables to W&B."""

import dataclasses
import functools
import hashlib
import json
import multiprocessing
import os
from collections.abc import Collection
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch

from pathsum.claims import registry
from pathsum.claims.corpora import FILE, read_onsets, read_rows
from pathsum.claims.metrics import headline
from pathsum.claims.preregistration import Preregistration
from pathsum.config import CellConfig, ExtractConfig, TrackingConfig, load
from pathsum.core.manifest import require_whole
from pathsum.core.storage import read_records, read_value
from pathsum.model.checkpoint import load_checkpoint
from pathsum.records.results import Results
from pathsum.records.verdicts import ClaimResult
from pathsum.report.build import tables, tables_of, write_report
from pathsum.report.compare import MEASURED
from pathsum.report.corpora import row
from pathsum.report.figures.base import in_detail
from pathsum.report.page.lab import export, runs_on_page
from pathsum.report.story import draw_all
from pathsum.text.tokenizer import load_tokenizer, tokenizer_hash
from pathsum.text.tokens import read_tokens
from pathsum.text.windows import HeldOut
from pathsum.training.tracker import Run, mirror, mirror_tables, run_id, tags
from pipelines import grid
from pipelines.handwritten import computed
from pipelines.paths import (
    CIRCUITS,
    CLAIMS,
    JOBS,
    MODELS,
    PREREGISTRATION,
    REFERENCE_RUN,
    REPORTS,
    RUNS,
    THREADS,
    TOKENS,
    params,
    section,
    stage,
)  # fmt: skip
from pipelines.results import read_results

STAGES = (0.75, 1.1, 1.5)  # checkpoints of the deepest model in the lab, in units of the tokens at its onset


def read_lab(text: str, results: Results, depths: Collection[int], config: ExtractConfig) -> dict[str, Any]:
    """Return what the lab runs in the browser on one text: tokenizer, held-out windows, and models shown in detail,
    of the report's own text also checkpoints around the onset."""
    tokenizer, models = load_tokenizer(TOKENS / text / "tokenizer.json"), {}
    for cell in (cell for depth, cell in in_detail(results).items() if depth in depths):
        require_whole(MODELS / cell.name)
        last = max((MODELS / cell.name / "checkpoints").iterdir())
        if runs_on_page((model := load_checkpoint(last, tokenizer_hash(tokenizer))).config):
            models[cell.name] = model
    n_ctx = max((model.config.n_ctx for model in models.values()), default=results.corpus.n_ctx)
    tokens = read_tokens(TOKENS / text / "verdict.bin").tokens
    held_out = HeldOut.of(tokens, n_ctx, config.windows_per_document, config.held_out_windows)
    earlier = {}
    if models and not text and (onset := (deepest := in_detail(results)[max(depths)]).summary.onset_tokens):
        for wanted in STAGES:
            at = min(deepest.log, key=lambda e: abs(e.tokens_seen - wanted * onset))
            file = MODELS / deepest.name / "checkpoints" / f"{at.step:08}.safetensors"
            name = f"{deepest.name} at {at.tokens_seen / 1e6:.2f} M tokens"
            earlier[name] = load_checkpoint(file, tokenizer_hash(tokenizer))
    return export(results.corpus.name, models, tokenizer, held_out.batch(config.windows), earlier)


if __name__ == "__main__":
    with stage(THREADS, arguments=False):
        values, spawn = params(), multiprocessing.get_context("spawn")
        alone = os.environ.get(JOBS) == "1"  # otherwise, a second process draws half of the figures
        with ProcessPoolExecutor(1, spawn, torch.set_num_threads, (THREADS,)) as second:
            if not alone:
                second.submit(int)  # starts the process, which imports what it needs while this one reads the records
            results = read_results()
            about = results.provenance | computed(REFERENCE_RUN, results.provenance["weights"])
            results = dataclasses.replace(results, provenance=about, known=read_onsets(REPORTS / FILE))
            stored = read_records(CLAIMS, ClaimResult)
            named = {
                text: [grid.full_name(text, claim) for claim in registry.claims()] for text in ("", *results.texts)
            }
            if absent := [claim for some in named.values() for claim in some if claim not in stored]:
                raise ValueError(f"{CLAIMS}: expected a verdict on {', '.join(absent)}, got none; run make repro")
            verdicts = {text: [stored[claim] for claim in some] for text, some in named.items()}
            claims = verdicts[""]
            rows = [row(text, found, verdicts[text]) for text, found in results.texts.items()]
            rows += [r for r in read_rows(REPORTS / FILE) if r["corpus"] not in (results.corpus.name, *results.texts)]
            registered = load(Preregistration, read_value(PREREGISTRATION), str(PREREGISTRATION))
            half = None if alone else second.submit(draw_all, results, 1, 2)
            sizes = load(ExtractConfig, section(values, "extract"), "extract")
            exported = [read_lab("", results, results.layer_counts(), sizes)]
            exported += [read_lab(text, found, [1, 2], sizes) for text, found in results.texts.items()]
            figures = draw_all(results) if half is None else draw_all(results, 0, 2) | half.result()
        write_report(results, claims, figures, REPORTS, registered, exported, rows)
        cells = grid.every(values)
        tracking = load(TrackingConfig, section(values, "tracking"), "tracking")
        identity = hashlib.sha256(json.dumps(results.provenance, sort_keys=True).encode()).hexdigest()[:16]
        counts = headline(results, claims)
        said = f"{counts['claims_reproduced']} of {len(claims)} claims reproduced"
        made = Run(f"report: {said}", run_id("report", identity), "report", results.provenance)
        with mirror(tracking, made, RUNS) as wandb:
            for name, figure in figures.items():
                wandb.image(f"figures/{name}", REPORTS / "figures" / f"{name}.png", f"{figure.title}. {figure.caption}")
            wandb.page("report", REPORTS / "index.html")
            wandb.summary(counts)
        mirror_tables(  # the tables of the report as a run of their own, because most new reports change none
            tracking, Run(f"tables: {said}", run_id("tables", identity), "report", results.provenance), RUNS,
            (REPORTS / "tables").iterdir(), functools.partial(tables, results, claims), counts,
        )  # fmt: skip
        tested = [(cell, claims) for cell in (results.cells | results.controls).values()]
        tested += [(cell, verdicts[text]) for text, found in results.texts.items() for cell in found.cells.values()]
        for cell, judged_by in tested:  # one W&B run per model, with its rows of each table
            config = load(CellConfig, cells[cell.name], f"cells.{cell.name}")
            run = Run(
                f"{cell.name} circuits", run_id(cell.name, "circuits", cell.summary.weights_hash[:16]), "circuits",
                {**config.model_dump(), "weights_hash": cell.summary.weights_hash}, tags(cell.name, config.model),
            )  # fmt: skip
            judged = {f"judged/{measure}": getattr(cell.summary, measure) for measure in MEASURED}
            judged["judged/met_claims"] = sum(cell.name in c.values and cell.name not in c.short for c in judged_by)
            judged["judged/missed_claims"] = sum(cell.name in c.short for c in judged_by)
            files = filter(Path.is_file, (CIRCUITS / cell.name).iterdir())
            of_text = tracking.model_copy(update={"corpus": config.text or tracking.corpus})
            mirror_tables(of_text, run, RUNS, files, functools.partial(tables_of, cell), judged)
