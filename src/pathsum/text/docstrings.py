"""Docstrings of installed distributions: technical English without a download."""

import ast
import hashlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Literal

from pathsum.text.corpus import Source
from pathsum.text.python_sources import Distributions, recorded_sources

OLDEST = (3, 11)  # version of Python; files that it cannot parse are left out on all versions
SHORTEST = 80  # characters; shorter docstrings are left out
HOLDERS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")  # parts of a statement that hold statements


class DocstringCorpus(Distributions):
    """The docstrings of installed distributions, those of a file as one document. NAME=HASH has the hash of the
    documents where the committed report was made."""

    reference = "(=[0-9a-f]{16})?"
    source: Literal["docstrings"]


def docstring_documents(config: DocstringCorpus) -> Iterator[str]:
    """Yield one document for each Python file of the distributions that has docstrings. Warns if a distribution has
    another hash than it should, as wheels for another platform may."""
    seen: set[bytes] = set()
    differing = []
    for name, _, reference in (item.partition("=") for item in config.distributions):
        whole, found = hashlib.sha256(), 0
        for _, data, _ in recorded_sources([name]):
            document = "\n\n".join(docstrings(data)).encode(errors="ignore").decode()  # without lone surrogates
            key = hashlib.sha256(document.encode()).digest()
            if document:
                whole.update(key)
                found += 1
                if key not in seen:
                    seen.add(key)
                    yield document
        if reference not in ("", whole.hexdigest()[:16]):
            differing.append(f"{name} (some of {found} files)")
    if differing:
        warnings.warn(
            f"corpus.distributions: docstrings of {', '.join(differing)} differ from those of the committed report",
            stacklevel=1,
        )


def docstrings(source: bytes) -> list[str]:
    """Return the docstrings of a Python file in their order, without indentation. Short ones are left out."""
    with warnings.catch_warnings(action="ignore"):  # about escapes
        try:
            tree = ast.parse(source, feature_version=OLDEST)
        except (SyntaxError, ValueError):
            return []
    found = (ast.get_docstring(node) or "" for node in (tree, *_holders(tree.body)))
    return [text for text in found if len(text) > SHORTEST]


def _holders(body: Sequence[ast.AST]) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the classes and functions in a block of code, those in others, too."""
    for node in body:
        if isinstance(node, HOLDERS):
            yield node
        for block in BLOCKS:
            yield from _holders(getattr(node, block, ()))


SOURCE = Source(DocstringCorpus, docstring_documents)
