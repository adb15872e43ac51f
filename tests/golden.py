"""Compare all results of two trees: `python -m tests.golden TAG`, or a folder in place of a tag.

A tag is cloned into .scratch/golden/TAG and its results are made there, on this machine, because weights differ between
instruction sets; the same command continues. Printed is every value that differs from that of this tree: weights,
columns of records and tables, plotted data, metrics, verdicts with their reasons, and the numbers of each section of
the report. Exit code 1 if there is a difference.
"""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from safetensors import safe_open

SCRATCH = Path(".scratch/golden")
NUMBER = re.compile(r"(?<![\w.])[−-]?\d+(?:\.\d+)?(?:e[−-]?\d+)?(?![\w])")
Snapshot = dict[str, Any]  # a digest, a value or a set of numbers, by where it stands


def snapshot(tree: Path) -> Snapshot:
    """Return what ``tree`` holds of results. ValueError if it holds none."""
    found: Snapshot = {}
    for path in sorted(tree.glob("models/*/checkpoints/*.safetensors")):
        found |= {f"{path.relative_to(tree)} {name}": digest for name, digest in _weights(path)}
    for pattern in ("circuits/**/*.parquet", "data/**/*.parquet", "reports/**/*.csv"):
        for path in sorted(tree.glob(pattern)):
            found |= {f"{path.relative_to(tree)} {name}": digest for name, digest in _columns(path)}
    for name in ("reports/metrics.json", "reports/headline.json", "data/claims.json"):
        if (tree / name).exists():
            found |= {f"{name} {key}": value for key, value in _leaves(json.loads((tree / name).read_text("utf-8")))}
    for page in sorted(tree.glob("reports/*.md")):
        found |= {f"{page.relative_to(tree)} {title}": numbers for title, numbers in _sections(page)}
    if not found:
        raise ValueError(f"{tree}: expected models, circuits and reports, found none; run `make repro` there")
    return found


def differences(old: Snapshot, new: Snapshot) -> list[str]:
    """Return one line for each entry that only one of the snapshots has, or that differs."""
    lines = []
    for key in sorted(old.keys() | new.keys()):
        if key not in new:
            lines.append(f"− {key}")
        elif key not in old:
            lines.append(f"+ {key}")
        elif isinstance(old[key], set) and old[key] != new[key]:
            gone, came = (" ".join(sorted(numbers)) for numbers in (old[key] - new[key], new[key] - old[key]))
            lines.append(f"≠ {key}: − {gone or 'nothing'}; + {came or 'nothing'}")
        elif old[key] != new[key]:
            lines.append(f"≠ {key}: {str(old[key])[:60]} → {str(new[key])[:60]}")
    return lines


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _weights(path: Path) -> Iterator[tuple[str, str]]:
    with safe_open(path, framework="np") as file:
        for name in file.keys():  # noqa: SIM118 (not a mapping)
            yield name, _digest(file.get_tensor(name).tobytes())


def _columns(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the digest of each column of a table. In CSV files, the order of rows is no result."""
    if path.suffix == ".parquet":
        table = pd.read_parquet(path)
    else:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        table = table.sort_values(list(table.columns))
    for name in table.columns:
        yield name, _digest(repr(table[name].tolist()).encode())


def _leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict | list) and value:
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(item, f"{at}/{key}")
    else:
        yield at, value


def _sections(page: Path) -> Iterator[tuple[str, set[str]]]:
    parts = re.split(r"^#+ (.+)$", page.read_text("utf-8"), flags=re.MULTILINE)
    found: dict[str, set[str]] = {}
    for title, text in zip(["", *parts[1::2]], parts[::2], strict=True):
        found.setdefault(title, set()).update(NUMBER.findall(text))
    yield from found.items()


def _made(tag: str) -> Path:
    """Return a clone of this repository at ``tag`` with all its results."""
    tree = SCRATCH / tag.replace("/", "_")
    if not tree.exists():
        subprocess.run(["git", "clone", "--quiet", "--branch", tag, Path.cwd(), tree], check=True)
    subprocess.run(["make", "repro"], cwd=tree, check=True, stdout=sys.stderr)
    return tree


def main(given: str) -> int:
    """Compare this tree with the folder or tag ``given``. Return the number of differences."""
    lines = differences(snapshot(Path(given) if Path(given).is_dir() else _made(given)), snapshot(Path()))
    print(*lines, f"{len(lines)} differences", sep="\n")
    return len(lines)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(min(main(sys.argv[1]), 1))
