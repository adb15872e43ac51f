"""Stage `extract`: compute the records of every trained model that the store lacks, and link all to circuits/."""

import functools
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from pathsum.config import CellConfig, ExtractConfig, load
from pathsum.core import store
from pathsum.core.manifest import MANIFEST, damage, require_whole
from pathsum.core.memory import keep_freed
from pathsum.core.storage import read_json, read_lines, read_value
from pathsum.core.threads import use_threads
from pathsum.extraction.cell import extract
from pathsum.extraction.inputs import EvalData
from pathsum.model.checkpoint import load_checkpoint
from pathsum.records.evaluation import Device, Evaluation
from pathsum.records.results import write_cell
from pathsum.text.statistics import CorpusStatistics
from pathsum.text.tokenizer import Codec, load_tokenizer
from pipelines import grid, pool
from pipelines.paths import CIRCUITS, MODELS, RECORDS, STATISTICS, TOKENS, params, section, stage
from pipelines.progress import HEADING, row_of

CODE = ("pathsum.extraction.cell", "pathsum.text.statistics", "pathsum.text.tokenizer")


def records_of(name: str, text: str, config: ExtractConfig) -> Path:
    """Return the folder in the store of the records of the model in models/, whether or not they have been computed."""
    own = [(folder / MANIFEST).read_text() for folder in (MODELS / name, STATISTICS / text)]
    tokens = [read_value(TOKENS / text / f"{part}.json") for part in ("tuning", "verdict")]
    facts = {"name": name, "config": config.model_dump(), "inputs": own, "tokens": tokens}
    return RECORDS / store.fingerprint(*CODE, **facts)


@functools.cache
def inputs(text: str, n_ctx: int, config: ExtractConfig) -> EvalData:
    """Return the held-out windows and the statistics of a text."""
    require_whole(STATISTICS / text)
    codec = Codec.own(load_tokenizer(TOKENS / text / "tokenizer.json"))
    counts = CorpusStatistics.load(STATISTICS / text / "counts.safetensors")
    return EvalData.read(TOKENS / text, counts, codec, n_ctx, config)


def make(name: str) -> None:
    """Compute the records of the model ``name`` in the store, unless they are there, and link them to circuits/."""
    use_threads(pool.threads())
    keep_freed(2**28)
    values, model = params(), MODELS / name
    config = load(ExtractConfig, section(values, "extract"), "extract")
    text = grid.models(values)[name].text
    folder = records_of(name, text, config)
    with store.locked(folder):
        if not store.finished(folder):
            require_whole(model)
            cell = load(CellConfig, read_value(model / "cell.json"), f"{model}/cell.json")
            log = read_lines(model / "log.jsonl", Evaluation)
            data = inputs(text, cell.model.n_ctx, config)
            saved = sorted((model / "checkpoints").iterdir())
            checkpoints = [functools.partial(load_checkpoint, path, data.tokenizer_hash) for path in saved]
            found = extract(name, cell, log, checkpoints, data, config)
            device = read_json(model / "device.json", Device)
            summary = replace(found.summary, device=str(device), device_peak_flops=device.peak_flops)
            write_cell(folder, replace(found, summary=summary), folder.name)
    store.link(folder, CIRCUITS / name)
    print(row_of(CIRCUITS / name / "summary.json"), file=sys.stderr, flush=True)


if __name__ == "__main__":
    with stage(threads=0, arguments=False):
        values = params()
        config = load(ExtractConfig, section(values, "extract"), "extract")
        models = grid.models(values)
        made = [name for name in models if not damage(MODELS / name)]
        records = {name: records_of(name, models[name].text, config) for name in made}
        shutil.rmtree(CIRCUITS, ignore_errors=True)
        if left := [name for name, folder in records.items() if not store.finished(folder)]:
            print(HEADING, file=sys.stderr, flush=True)
            pool.for_each("pipelines.extract", left)
        store.publish(CIRCUITS, {name: records.get(name, RECORDS / name) for name in models})
