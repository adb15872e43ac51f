"""Tokens are printed so that every character can be seen."""

from __future__ import annotations

from pathsum.report.figures.symbols import drawable, visible


def test_what_cannot_be_seen_is_printed_so_that_it_can() -> None:
    assert visible(" a\n\t") == "␣a↵⇥"
    assert visible("\u202e\x00\u0301") == "\\u{202e}\\x00\\u{301}"
    assert visible("c\u030cas हिन्दी \u030c") == "c\u030cas␣हिन्दी␣\\u{30c}"  # marks are seen on letters
    assert visible(visible(" \u202e")) == visible(" \u202e")
    assert drawable("🙂") in {"🙂", "\\u{1f642}"}
    assert len(visible("x" * 10_000)) == 48
