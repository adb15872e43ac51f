"""Stage `extract@cell`: compute the records of a trained model."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import torch

from pathsum.config import CellConfig, ExtractConfig, load
from pathsum.core.manifest import require_whole
from pathsum.core.storage import read_json, read_lines, read_value
from pathsum.data.tokenizer import load_tokenizer, tokenizer_hash, vocabulary
from pathsum.data.tokens import read_tokens
from pathsum.data.windows import HeldOut
from pathsum.extraction.cell import extract
from pathsum.extraction.inputs import EvalData
from pathsum.ngrams.statistics import CorpusStatistics
from pathsum.probes.evaluation import Device, Evaluation
from pathsum.records.results import write_cell
from pipelines.paths import CIRCUITS, MODELS, STATISTICS, THREADS, TOKENS, model_of, params, section, stage


def require_model(folder: Path, cell: CellConfig) -> None:
    """Raise ValueError unless ``folder`` contains, undamaged, the model that ``cell`` describes."""
    require_whole(folder)
    if load(CellConfig, read_value(folder / "cell.json"), f"{folder}/cell.json") != cell:
        raise ValueError(
            f"{folder}: expected the model that params.yaml describes, got another one, so its entry in dvc.lock is "
            f"wrong; run `dvc repro --force --single-item train@{folder.name}`, and then the same command again"
        )


if __name__ == "__main__":
    with stage(THREADS):
        values = params()
        name = model_of(sys.argv[1:], values)
        cell = load(CellConfig, values["cells"][name], f"cells.{name}")
        config = load(ExtractConfig, section(values, "extract"), "extract")
        require_whole(STATISTICS)
        tokenizer, counts = (
            load_tokenizer(TOKENS / "tokenizer.json"),
            CorpusStatistics.load(STATISTICS / "counts.safetensors"),
        )
        verdict, tuning = (
            HeldOut.of(read_tokens(TOKENS / f"{part}.bin").tokens, cell.model.n_ctx, config.windows_per_document, most)
            for part, most in (("verdict", config.held_out_windows), ("tuning", config.windows))
        )
        data = EvalData(
            held_out=verdict.batch(),
            documents=verdict.documents,
            windows=verdict.batch(config.windows),
            tuning=tuning.batch(),
            bigram_losses=counts.losses(verdict.batch()),
            tuning_bigram_loss=counts.losses(tuning.batch()).mean().item(),
            unigram=torch.from_numpy(counts.unigram_counts).float(),
            bigram_counts=counts.bigram_rows(),
            words=vocabulary(tokenizer),
            tokenizer_hash=tokenizer_hash(tokenizer),
        )
        require_model(MODELS / name, cell)
        log = read_lines(MODELS / name / "log.jsonl", Evaluation)
        checkpoints = sorted((MODELS / name / "checkpoints").iterdir())
        found = extract(name, cell, log, checkpoints, data, config)
        device = read_json(MODELS / name / "device.json", Device)
        summary = replace(found.summary, device=str(device), device_peak_flops=device.peak_flops)
        write_cell(CIRCUITS / name, replace(found, summary=summary))
