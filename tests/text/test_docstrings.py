"""Docstrings of installed distributions are the same documents on every machine."""

import hashlib
import warnings
from pathlib import Path

import pytest

from pathsum.text.corpus import documents, load_corpus
from pathsum.text.docstrings import SHORTEST, DocstringCorpus, docstrings
from pipelines.paths import ROOT, read_yaml
from tests.text.installed import install

LONG = "x" * (SHORTEST + 1)
SOURCE = f'''"""module {LONG}

    indented
"""
class A:
    """class {LONG}"""
    async def f(self):
        """
        method {LONG}
        """
        x = """no docstring {LONG}"""
if x:
    try:
        pass
    except E:
        def g():
            """in handler {LONG}"""
    finally:
        for _ in y:
            def h(): "in loop {LONG}"
        else:
            match z:
                case 1:
                    class B: r"in case \\d {LONG}"
def short():
    """{"x" * (SHORTEST - 20)}"""
'''
FOUND = [
    f"module {LONG}\n\nindented", f"class {LONG}", f"method {LONG}", f"in handler {LONG}", f"in loop {LONG}",
    f"in case \\d {LONG}",
]  # fmt: skip


def test_all_long_docstrings_come_in_order_without_indentation() -> None:
    with warnings.catch_warnings(action="error"):
        assert docstrings(SOURCE.encode()) == FOUND


@pytest.mark.parametrize("source", [f'"""{LONG}"""\ndef f(:', f'"""{LONG}"""\ntype X = int', "\0", ""])
def test_a_file_that_the_oldest_python_cannot_parse_is_left_out(source: str) -> None:
    assert docstrings(source.encode()) == []


def corpus(*names: str) -> DocstringCorpus:
    return DocstringCorpus(source="docstrings", name="d", validation_share=0.1, distributions=names, max_documents=99)


def test_a_file_is_a_document_and_others_than_those_of_the_reference_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "b.py": SOURCE, "a.py": f'"""a \\ud800{LONG}"""', "copy.py": f"{SOURCE}# the same", "none.py": "x = 1",
    }  # fmt: skip
    install(tmp_path, files)
    monkeypatch.syspath_prepend(str(tmp_path))
    expected = [f"a {LONG}", "\n\n".join(FOUND)]
    files_in_order = [*expected, expected[1]]  # the copy, which is yielded once
    hashes = (hashlib.sha256(text.encode()).digest() for text in files_in_order)
    whole = hashlib.sha256(b"".join(hashes)).hexdigest()[:16]
    with warnings.catch_warnings(action="error"):
        assert list(documents(corpus(f"pathsum-fake={whole}"))) == expected
        assert list(documents(corpus("pathsum-fake"))) == expected
    with pytest.warns(
        UserWarning, match=r"docstrings of pathsum-fake \(some of 3 files\) differ from those of the committed"
    ):
        assert list(documents(corpus(f"pathsum-fake={'0' * 16}"))) == expected


@pytest.mark.parametrize("name", ["seaborn", "dvc"])
def test_pure_python_distributions_have_the_documents_of_the_reference(name: str) -> None:
    values = read_yaml(ROOT / "conf" / "corpus" / "docstrings.yaml")
    with warnings.catch_warnings(action="error"):
        stated = [item for item in values["distributions"] if item.startswith(f"{name}=")]
        config = load_corpus({**values, "distributions": stated})
        assert sum(map(len, documents(config))) > 10_000
