"""`make extract WEIGHTS=… TOKENIZER=… TEXT=…`: compute the records of a model that this project did not train."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from pathsum.config import ExtractConfig, load
from pathsum.core.storage import frame, write_json
from pathsum.corpora.hub import local_or_hub
from pathsum.corpora.text_files import local_path
from pathsum.data.tokenizer import tokenizer_hash
from pathsum.imported.extraction import FEWEST, extract_tables
from pathsum.imported.open_weights import open_weights
from pathsum.imported.text import bos_id, encode_text, known_ids, read_tokenizer, words
from pathsum.records import registry
from pipelines.paths import THREADS, params, section, stage


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Parse the command line. Raises ValueError if the weights, the tokenizer or the text is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", default="", help="a .safetensors file, or a hub id with model.safetensors")
    parser.add_argument("--tokenizer", default="", help="a tokenizers JSON file, or a hub id with tokenizer.json")
    parser.add_argument("--text", default="", help="a text file, folder or glob")
    parser.add_argument("--bos", default="", help="beginning-of-sequence token, if its name is not a common one")
    parser.add_argument("--context", type=int, default=256, help="largest number of tokens per window")
    parser.add_argument("--out", default="", help="output folder; default imported/<name of the weights>")
    found = parser.parse_args(given)
    if absent := [name.upper() for name in ("weights", "tokenizer", "text") if not getattr(found, name)]:
        raise ValueError(
            f"expected all of WEIGHTS, TOKENIZER and TEXT, got no {' and no '.join(absent)}; for example: make "
            "extract WEIGHTS=model.safetensors TOKENIZER=tokenizer.json TEXT='texts/*.txt'"
        )
    return found


def extract(given: argparse.Namespace) -> None:
    """Extract the imported model that the arguments name. Write its summary and tables, and print the summary."""
    config = load(ExtractConfig, section(params(), "extract"), "extract")
    named = {name: _path(name, getattr(given, name)) for name in ("weights", "tokenizer", "out")}
    weights = local_or_hub(given.weights, "model.safetensors", "config.json")
    with warnings.catch_warnings(record=True, action="always") as warned:
        tokenizer = read_tokenizer(local_or_hub(given.tokenizer, "tokenizer.json"))
        bos = bos_id(tokenizer, given.bos)
        model = open_weights(weights, tokenizer_hash(tokenizer))
        shown, ids = words(tokenizer, model.weights().W_E.shape[1], bos), known_ids(tokenizer, bos)
        model = model.bos_first(bos)
        tokens = encode_text(given.text, tokenizer, bos)
    for warning in warned:
        print(f"pathsum: {warning.message}", file=sys.stderr)
    if model.n_ctx < given.context:
        print(f"pathsum: windows have {model.n_ctx} tokens, the most that the model takes", file=sys.stderr)
    if len(ids) < len(shown):
        print(
            f"pathsum: the tokenizer has {len(ids)} of the model's {len(shown)} ids; the others count in losses only",
            file=sys.stderr,
        )
    name = given.weights.replace("/", "--") if weights != named["weights"] else weights.stem
    if not given.out and not name.strip("."):
        raise ValueError(f"WEIGHTS: expected a file whose name can name a folder, got {weights.name!r}; give --out")
    folder = named["out"] if given.out else Path("imported", name)
    folder.mkdir(parents=True, exist_ok=True)  # a folder that cannot be made is refused before anything is computed
    ours = {"summary.json", "summary.json.draft", *(f"{table}.csv" for table in registry.tables())}
    if others := sorted(p.name for p in folder.iterdir() if p.name not in ours and not p.name.startswith(".")):
        raise ValueError(
            f"{folder}: expected a folder that is empty or that holds only the tables of an earlier call, got one with "
            f"{', '.join(others[:3])}{', …' if len(others) > 3 else ''}; give another --out"
        )
    summary, tables = extract_tables(model, name, tokens, shown, config, given.context, ids)
    if summary.pieces:
        print(
            f"pathsum: TEXT: got {summary.documents} documents, expected {FEWEST} or more of similar length; cut into "
            f"{summary.pieces} pieces, so skip-trigrams are chosen and judged on pieces of the same documents",
            file=sys.stderr,
        )
    if (folder / "summary.json").exists():
        print(f"{folder}: the tables of an earlier call are replaced; give --out to keep them", file=sys.stderr)
    write_json(folder / "summary.json", summary)
    for table, rows in tables.items():
        frame(rows, registry.tables()[table]).to_csv(folder / f"{table}.csv", index=False, lineterminator="\n")
    print((folder / "summary.json").read_text(encoding="utf-8") + f"{folder}: summary.json and {len(tables)} tables")


def _path(name: str, text: str) -> Path:
    """Return the path ``text``, with ~ replaced. Raises ValueError if it begins with the name of an unknown user."""
    path = local_path(text)
    if str(path).startswith("~") and not Path(path.parts[0]).exists():
        raise ValueError(f"{name.upper()}: expected a path, got {text!r}, whose ~ names no user here")
    return path


if __name__ == "__main__":
    with stage(THREADS):
        extract(arguments(sys.argv[1:]))
