"""`make report WEIGHTS=…`: take apart models that this project did not train, or trained ad hoc, on a text of your own.

Writes reports/NAME/ with the page, its figures and tables. Several models with one tokenizer share a page:
MODELS=models.yaml, with weights by name or, for checkpoints of one model, weights by the tokens that it had seen.
"""

import argparse
import functools
import shlex
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import BPE

from pathsum.api import CHECKPOINTS, TOKENIZER, WEIGHTS, folder_of, weights_in
from pathsum.claims.metrics import metrics
from pathsum.claims.registry import judge_all
from pathsum.config import CellConfig, ExtractConfig, TrainConfig, load
from pathsum.core.storage import read_lines, read_value, write_json
from pathsum.extraction.cell import extract
from pathsum.extraction.inputs import EvalData, Load
from pathsum.imported.open_weights import open_model
from pathsum.imported.text import read_tokenizer, require_known
from pathsum.model.opened import converted
from pathsum.model.transformer import Transformer
from pathsum.records.evaluation import Evaluation
from pathsum.records.results import Cell, Results
from pathsum.report.build import write_report
from pathsum.report.page.lab import export, runs_on_page
from pathsum.report.story import draw_all
from pathsum.text.bos import BOS, BOS_TEXT
from pathsum.text.hub import local_or_hub
from pathsum.text.statistics import corpus_statistics
from pathsum.text.text_files import TextCorpus, text_documents
from pathsum.text.tokenizer import Codec
from pathsum.text.tokenizing import tokenize_corpus
from pathsum.training.evaluate import evaluate, repeats
from pipelines.handwritten import fingerprint, read_preregistration, read_settings
from pipelines.paths import REPORTS, THREADS, params, section, stage
from pipelines.results import by_size, calibration, provenance
from pipelines.texts import TAKEN, Survey

FROZEN = Path("conf/claims.yaml")
MOST_NUMBERS = 100_000_000  # in the largest trace; this limits the number of windows
LAB_NUMBERS = 10_000_000  # of a model on the page: 20 MB in float16


@dataclass(frozen=True)
class Source:
    """A model in files: its checkpoints by tokens seen, the last of which is taken apart."""

    name: str
    files: Mapping[int, Path]
    folder: Path  # where its tokenizer and its configuration are looked for


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", default="", help="a .safetensors file, the folder of a model, or a hub id")
    parser.add_argument("--models", default="", help="a YAML file with several weights by name")
    parser.add_argument(
        "--tokenizer", default="", help="a tokenizers JSON file, or a hub id; default: beside the weights"
    )
    parser.add_argument("--text", default="", help="a text file, folder or glob")
    parser.add_argument("--separator", default="", help=r"string that separates documents in a file, such as \0")
    parser.add_argument("--bos", default="", help="beginning-of-sequence token, if its name is not a common one")
    parser.add_argument("--context", type=int, default=256, help="largest number of tokens per window")
    parser.add_argument("--name", default="", help="folder in reports/; default: the name of the weights")
    found = parser.parse_args(given)
    if not found.text or bool(found.weights) == bool(found.models):
        raise ValueError("expected TEXT, and one of WEIGHTS and MODELS; see docs/your-weights.md")
    return found


def sources(given: argparse.Namespace) -> list[Source]:
    """Return the models that the arguments name."""
    if not given.models:
        path = local_or_hub(given.weights, "model.safetensors", "config.json")
        return [source(_name(given.weights, path), path)]
    listed = read_settings(Path(given.models).expanduser())
    if not isinstance(listed, dict) or not listed:
        raise ValueError(f"{given.models}: expected weights by name of the model, got another YAML value")
    found = []
    for name, weights in listed.items():
        if isinstance(weights, dict) and all(isinstance(tokens, int) for tokens in weights):
            files = {tokens: Path(path).expanduser() for tokens, path in sorted(weights.items())}
            found.append(Source(str(name), files, next(iter(files.values())).parent))
        elif isinstance(weights, str):
            found.append(source(str(name), local_or_hub(weights, "model.safetensors", "config.json")))
        else:
            raise ValueError(f"{given.models}: {name}: expected weights, or weights by tokens seen, got {weights!r}")
    return found


def source(name: str, path: Path) -> Source:
    """Return the model in a file, or in a folder with all its checkpoints if there is a log of its training."""
    file = path if path.is_file() else weights_in(path, None)
    folder = folder_of(file)
    if path.is_file() or not (folder / "log.jsonl").is_file():
        return Source(name, {0: file}, folder)
    log = read_lines(folder / "log.jsonl", Evaluation)
    return Source(name, {at.tokens_seen: folder / CHECKPOINTS / f"{at.step:08d}.safetensors" for at in log}, folder)


def _name(weights: str, path: Path) -> str:
    if path != Path(weights).expanduser():
        return weights.replace("/", "--")
    named = path if path.is_dir() or path.name == WEIGHTS else path.with_suffix("")
    return named.absolute().parent.name if named.name == WEIGHTS else named.absolute().name


def reported(given: argparse.Namespace) -> Path:
    """Write the report on the models that the arguments name, and return its folder."""
    found = sources(given)
    name = given.name or (Path(given.models).stem if given.models else found[0].name)
    if not name or name in (*TAKEN, "calibration") or "/" in name or name.startswith("."):
        raise ValueError(f"--name: expected the name of a new folder in {REPORTS}/, got {name!r}")
    tokenizer = local_or_hub(given.tokenizer, "tokenizer.json") if given.tokenizer else found[0].folder / TOKENIZER
    if not tokenizer.is_file():
        raise FileNotFoundError(f"{tokenizer}: expected the tokenizer of the model, found none; give TOKENIZER=…")
    read, paths = read_tokenizer(tokenizer), (str(Path(given.text).expanduser()),)
    with warnings.catch_warnings(record=True, action="always") as warned:
        opened = [open_model(last(of), read, given.bos) for of in found]
        require_known(read, "\n".join(text_documents(paths, given.separator, "TEXT")))
    (largest, codec), *_ = sorted(opened, key=lambda made: -numbers_of(made[0], given.context))
    n_ctx, text = min(given.context, *(model.n_ctx for model, _ in opened)), Survey.of(paths, given.separator)
    del opened  # each is read again when it is taken apart, so that one is in memory at a time
    notes = [str(w.message) for w in warned]
    if n_ctx < given.context:
        notes.append(f"windows have {n_ctx} tokens, the most that every model takes")
    if (REPORTS / name / "index.html").exists():
        notes.append(f"the report in {REPORTS / name} will be replaced; ARGS='--name OTHER' keeps it")
    if n_ctx < 8:
        raise ValueError(f"--context: expected at least 8 tokens per window, got {n_ctx}")
    config = affordable(load(ExtractConfig, section(params(), "extract"), "extract"), largest, n_ctx)
    sys.stderr.writelines(f"pathsum: {note}\n" for note in [*notes, f"TEXT: {text.told()}"])
    corpus = TextCorpus(
        source="text", name=name, paths=paths, separator=given.separator, validation_share=text.share,
        max_documents=text.documents,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        tokens = Path(scratch)
        tokenize_corpus(corpus, codec, n_ctx, tokens)
        summary, ngrams, counts = corpus_statistics(tokens, name, n_ctx, config, codec=codec)
        data = EvalData.read(tokens, counts, codec, n_ctx, config)
        made = {of.name: taken_apart(of, codec, n_ctx, data, config, given.bos) for of in found}
    cells = by_size({of: cell for of, (cell, _) in made.items()})
    files = {f"{of.name} {seen}": str(path) for of in found for seen, path in of.files.items()}
    positions = {of.name: {"model": {"positions": cells[of.name].summary.positions}} for of in found}
    about = provenance(summary, cells, positions, {"corpus": {}, "extract": config.model_dump()})
    asked = [f"--{option}={value}" for option, value in vars(given).items() if value]
    about |= {"command": shlex.join(["python", "-m", "pipelines.opened", *asked]), "opened": files}
    about |= {"weights_fingerprint": fingerprint(about["weights"])}
    results = Results(cells, {}, summary, ngrams, about, missing=(), **calibration())
    claims, folder = judge_all(results), REPORTS / name
    lab = {of: made[of][1] for of in cells if fits_page(made[of][1], read)}
    exported = [export(name, lab, read, data.windows)] if lab else []
    folder.mkdir(parents=True, exist_ok=True)
    write_report(results, claims, draw_all(results), folder, read_preregistration(FROZEN), exported)
    write_json(folder / "metrics.json", metrics(results, claims, {}))
    return folder


def last(of: Source) -> Path:
    return of.files[max(of.files)]


def taken_apart(
    of: Source, codec: Codec, n_ctx: int, data: EvalData, config: ExtractConfig, bos: str
) -> tuple[Cell, Transformer]:
    """Return all records of a model, and the model after its last checkpoint."""

    @functools.lru_cache(maxsize=1)  # the last checkpoint is asked for twice
    def read(path: Path) -> Transformer:
        with warnings.catch_warnings(action="ignore"):  # the first model's have been told
            model, found = open_model(path, codec.tokenizer, bos)
        if found.words != codec.words:
            raise ValueError(f"{path}: expected a model for the tokenizer of the first one, got other ids")
        model.config = model.config.model_copy(update={"n_ctx": n_ctx})
        return model

    @functools.lru_cache(maxsize=2)
    def rounded(path: Path) -> Transformer:
        return converted(read(path), torch.float32)

    checkpoints: list[Load] = [functools.partial(rounded, path) for path in of.files.values()]
    repeated, block = repeats(n_ctx, data.present)
    log = [
        evaluate(load(), data.tuning, repeated, block, step, seen)
        for step, (seen, load) in enumerate(zip(of.files, checkpoints, strict=True))
    ]
    model = checkpoints[-1]()
    return extract(of.name, about(of, model), log, checkpoints, data, config, read(last(of))), model


def about(of: Source, model: Transformer) -> CellConfig:
    """Return the configuration of a model, with which it was trained if that is known."""
    if (of.folder / "cell.json").is_file():
        cell = load(CellConfig, read_value(of.folder / "cell.json"), str(of.folder / "cell.json"))
        return cell.model_copy(update={"model": model.config})
    unknown: dict[str, Any] = {"batch": 0, "shuffled": False, "repeat_weight": 1.0, "repeat_tokens": 0}
    train = TrainConfig.model_construct(**unknown)
    return CellConfig.model_construct(seed=0, model=model.config, train=train)


def affordable(config: ExtractConfig, model: Transformer, n_ctx: int) -> ExtractConfig:
    """Return ``config`` with as many windows as fit into memory."""
    most = max(8, MOST_NUMBERS // numbers_of(model, n_ctx))
    fewer: dict[str, Any] = {
        "windows": min(config.windows, most),
        "repeated_windows": min(config.repeated_windows, most),
    }
    return config.model_copy(update=fewer | {"held_out_windows": min(config.held_out_windows, 20 * most)})


def numbers_of(model: Transformer, n_ctx: int) -> int:
    """Return the number of numbers in the trace of one window."""
    heads = model.config.n_layers * model.config.n_heads
    return n_ctx * (len(model.W_U) + heads * (n_ctx + model.config.d_model))


def fits_page(model: Transformer, tokenizer: Tokenizer) -> bool:
    """Return whether the lab can run a model with its tokenizer, and they are small enough for a page."""
    ours = isinstance(tokenizer.model, BPE) and tokenizer.id_to_token(BOS) == BOS_TEXT
    small = sum(p.numel() for p in model.parameters()) <= LAB_NUMBERS
    return ours and small and runs_on_page(model.config)


if __name__ == "__main__":
    with stage(THREADS):
        print(
            f"pathsum: the report is {(reported(arguments(sys.argv[1:])) / 'index.html').absolute()}", file=sys.stderr
        )
