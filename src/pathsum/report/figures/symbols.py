"""Conventions of figures and tables: colors by number of layers, symbols, axis labels, and printable tokens."""

import functools
import unicodedata
from pathlib import Path

import matplotlib
from matplotlib.ft2font import FT2Font

LAYER_COLOURS = ("#6e6e6e", "#d55e00", "#0072b2", "#009e73", "#cc79a7")  # Okabe–Ito; gray for zero layers
ACCENT = "#000000"  # highlighted marks
FAINT = "#9a9a9a"  # reference lines and bands: chance, thresholds, corpus models

DIRECT_PATH = r"$W_U W_E$"
OV_CIRCUIT = r"$W_U W_{OV} W_E$"
PAIR_CIRCUIT = r"$(M_q W_E)^\top W_{QK} M_k W_E$"
POSITIVITY = r"$\sum\mathrm{Re}\,\lambda\,/\,\sum|\lambda|$"

TOKENS_SEEN = "tokens seen (millions)"
PREFIX_MATCHING = "prefix matching, best head\n(mean attention, 0..1)"
LOSS_DROP = "in-context loss drop\n(nats per token)"
REPEAT_LOSS = "loss on repeated random tokens\n(nats per token)"
LOSS = "held-out loss (nats per token)"
POSITION = "position in the window (tokens)"
DISTANCE = "distance from query to key (tokens)"
ATTENTION = "mean attention (0..1)"


def layer_colour(n_layers: int) -> str:
    """Return the color of models with ``n_layers`` layers. Models with four or more layers share one color."""
    return LAYER_COLOURS[min(n_layers, len(LAYER_COLOURS) - 1)]


def visible(token: str, longest: int = 48) -> str:
    """Return ``token`` with every character visible, cut to ``longest`` characters."""
    signs, shown, seen = {" ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍"}, "", False
    for c in token:
        kind = unicodedata.category(c)[0]
        seen = kind not in "CZ" and (kind != "M" or seen)  # a mark is seen on the character before it
        shown += signs.get(c) or (c if seen else _escape(c))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def drawable(token: str, longest: int = 14) -> str:
    """Return ``visible(token)`` with escapes for characters that the font of the figures lacks, cut to ``longest``
    characters."""
    glyphs = _glyphs()
    shown = "".join(c if ord(c) in glyphs else _escape(c) for c in visible(token))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def _escape(c: str) -> str:
    return f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{{{ord(c):x}}}"


@functools.cache
def _glyphs() -> frozenset[int]:
    font = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    return frozenset(FT2Font(str(font)).get_charmap())
