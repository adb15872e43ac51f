"""Formatting of numbers, heads and layer counts in verdicts and in the report."""

import re
from collections.abc import Sequence

_MODEL = re.compile(r"(?:\b([A-Za-z]\w*)-)?\bL(\d+)(?:H(\d+))?(?:D(\d+))?S(\d+)\b")
_HEAD = re.compile(r"\bL(\d+)H(\d+)\b")


def layers_label(n_layers: int) -> str:
    return f"{n_layers} layer" if n_layers == 1 else f"{n_layers} layers"


def head_label(layer: int, head: int) -> str:
    """Format a head by its layer and its number, both from 0: L1H3 is the fourth head of the second layer."""
    return f"L{layer}H{head}"


def spelled(text: str) -> str:
    """Spell out the names of models and heads in ``text``: L2H4S3 as "2 layers · 4 heads · seed 3", L1H3 as 1.3."""
    return _HEAD.sub(r"\1.\2", _MODEL.sub(_model, text))


def _model(name: re.Match[str]) -> str:
    text, layers, heads, width, seed = name.groups()
    parts = [text, layers_label(int(layers)), heads and f"{heads} heads", width and f"d_head {width}", f"seed {seed}"]
    return " · ".join(part for part in parts if part)


def millions(tokens: float | int) -> str:
    """Format a number of tokens. Numbers of 100,000 or more are in millions with one decimal."""
    return (f"{tokens / 1e6:.1f} M" if abs(tokens) >= 1e5 else f"{tokens:,.0f}").replace("-", "−")


def number(value: float | int | None, digits: int = 2) -> str:
    """Format a number with ``digits`` decimals and a true minus sign, and None as an en dash."""
    if value is None:
        return "–"
    if abs(value) >= 1e5:
        return millions(value)
    tiny = value != 0 and abs(value) < 0.5 * 10**-digits
    return (f"{value:.1g}" if tiny else f"{value:.{digits}f}").replace("-", "−")


def signed(value: float | int | None, digits: int = 2) -> str:
    """Format a number like ``number``, with a plus sign if it is positive."""
    return ("+" if value is not None and value > 0 else "") + number(value, digits)


def span(values: Sequence[float | int], digits: int = 2) -> str:
    """Format the range of ``values`` as "low to high", as one number if both ends print alike, or as a dash if there
    are no values."""
    if not values:
        return "–"
    low, high = number(min(values), digits), number(max(values), digits)
    return low if low == high else f"{low} to {high}"


def interval(value: float | None, low: float | None, high: float | None, digits: int = 2) -> str:
    """Format a number and the interval around it, or None as an en dash."""
    if value is None:
        return number(value)
    return f"{number(value, digits)} [{number(low, digits)}, {number(high, digits)}]"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
