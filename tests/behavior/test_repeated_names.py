"""Names are words of several tokens with a capital letter, and those that occur once are left out."""

import pytest

from pathsum.behavior.repeated_names import repeated_names


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ("␣D urs ley ␣and ␣D urs ley ,", {"D␟urs␟ley": [(1, 2), (5, 6)]}),
        ("<|bos|> D urs ↵ ␣D urs", {"D␟urs": [(2,), (5,)]}),  # a space is no part of the name
        ("␣D urs ␣D ursley", {}),  # other tokens
        ("␣D urs ␣D urs ley", {}),  # another word
        ("D urs", {}),  # once
        ("D urs . D urs D urs", {}),  # "DursDurs" is one word
        ("Durs ␣Durs ␣Durs", {}),  # one token
        ("d urs ␣d urs", {}),  # no capital letter
        ("(._ X 1) ._ X 1.", {"_␟X␟1": [(1, 2), (4, 5)]}),  # tokens that hold other signs as well
        ("A _ B_,C d ␣A _ B_ ␣C d", {"A␟_␟B_": [(1, 2), (5, 6)], "C␟d": [(3,), (8,)]}),  # "B_,C" is in two names
        ("É l ␣É l", {"É␟l": [(1,), (3,)]}),
        ("N\\xc3 \\xa9 e ␣N\\xc3 \\xa9 e", {}),  # the bytes of a letter in two tokens
        ("", {}),
    ],
)
def test_names(tokens: str, expected: dict[str, list[tuple[int, ...]]]) -> None:
    found = repeated_names(tokens.split())
    assert {name: [tuple(places) for places in all_of] for name, all_of in found.items()} == expected
