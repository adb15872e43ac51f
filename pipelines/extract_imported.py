"""`make extract WEIGHTS=… TOKENIZER=… TEXT=…`: compute the records of a model that this project did not train."""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from pathsum.config import ExtractConfig, load
from pathsum.core.storage import frame, write_json
from pathsum.imported.extraction import FEWEST, extract_tables
from pathsum.imported.open_weights import open_weights
from pathsum.imported.text import bos_first, bos_id, encode_text, known_ids, read_tokenizer, words
from pathsum.records import registry
from pathsum.text.hub import local_or_hub
from pathsum.text.tokenizer import tokenizer_hash
from pipelines.paths import THREADS, params, section, stage


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", default="", help="a .safetensors file, or a hub id with model.safetensors")
    parser.add_argument("--tokenizer", default="", help="a tokenizers JSON file, or a hub id with tokenizer.json")
    parser.add_argument("--text", default="", help="a text file, folder or glob")
    parser.add_argument("--bos", default="", help="beginning-of-sequence token, if its name is not a common one")
    parser.add_argument("--context", type=int, default=256, help="largest number of tokens per window")
    parser.add_argument("--out", default="", help="output folder; default imported/<name of the weights>")
    found = parser.parse_args(given)
    if absent := [name.upper() for name in ("weights", "tokenizer", "text") if not getattr(found, name)]:
        raise ValueError(f"expected all of WEIGHTS, TOKENIZER and TEXT, got no {' and no '.join(absent)}")
    return found


def extract(given: argparse.Namespace) -> None:
    """Extract the imported model that the arguments name. Write its summary and tables, and print the summary."""
    config = load(ExtractConfig, section(params(), "extract"), "extract")
    weights = local_or_hub(given.weights, "model.safetensors", "config.json")
    with warnings.catch_warnings(record=True, action="always") as warned:
        tokenizer = read_tokenizer(local_or_hub(given.tokenizer, "tokenizer.json"))
        bos = bos_id(tokenizer, given.bos)
        model = open_weights(weights, tokenizer_hash(tokenizer))
        shown, ids = words(tokenizer, model.weights().W_E.shape[1], bos), known_ids(tokenizer, bos)
        model = bos_first(model, bos)
        tokens = encode_text(given.text, tokenizer, bos)
    notes = [str(warning.message) for warning in warned]
    if model.n_ctx < given.context:
        notes.append(f"windows have {model.n_ctx} tokens, the most that the model takes")
    if len(ids) < len(shown):
        notes.append(f"the tokenizer has {len(ids)} of the model's {len(shown)} ids; the others count in losses only")
    downloaded = weights != Path(os.path.expanduser(given.weights))
    name = given.weights.replace("/", "--") if downloaded else weights.stem
    folder = Path(os.path.expanduser(given.out) or f"imported/{name}")
    folder.mkdir(parents=True, exist_ok=True)  # a folder that cannot be made is refused before anything is computed
    ours = {"summary.json", "summary.json.draft", *(f"{table}.csv" for table in registry.tables())}
    if others := sorted(p.name for p in folder.iterdir() if p.name not in ours and not p.name.startswith(".")):
        raise ValueError(f"{folder}: expected an empty folder, or that of an earlier call, got one with {others[0]}")
    if (folder / "summary.json").exists():
        notes.append(f"{folder}: the tables of an earlier call are replaced; give --out to keep them")
    summary, tables = extract_tables(model, name, tokens, shown, config, given.context, ids)
    if summary.pieces:
        notes.append(
            f"TEXT: got {summary.documents} documents, expected {FEWEST} or more of similar length; cut into "
            f"{summary.pieces} pieces, so skip-trigrams are chosen and judged on pieces of the same documents"
        )
    sys.stderr.writelines(f"pathsum: {note}\n" for note in notes)
    write_json(folder / "summary.json", summary)
    for table, rows in tables.items():
        frame(rows, registry.tables()[table]).to_csv(folder / f"{table}.csv", index=False, lineterminator="\n")
    print((folder / "summary.json").read_text(encoding="utf-8") + f"{folder}: summary.json and {len(tables)} tables")


if __name__ == "__main__":
    with stage(THREADS):
        extract(arguments(sys.argv[1:]))
