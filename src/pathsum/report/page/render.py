"""The two renderings of a ``Document``: Markdown, and one HTML page.

Both have the same text, figures and tables; only the page has the widgets. Text from a corpus is an entry of kind
``token``, which both escape completely. Names of models and heads are spelled out in everything else (``spelled``).
"""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from pathsum.claims.formatting import spelled
from pathsum.report.figures.base import Figure
from pathsum.report.page.document import (
    APPENDIX,
    MARKS,
    ORIGINS,
    PAPERS,
    TERM,
    Claims,
    Document,
    Entry,
    Table,
    Widget,
    anchor,
    slug,
)

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("pieces.js", "tables.js", "figures.js")
WIDGETS = {  # their scripts
    "lab": (
        "lab/tokenizer.js",
        "lab/model.js",
        "lab/paths.js",
        "lab/flow.js",
        "live/live.js",
        "lab/tour.js",
        "lab/lab.js",
    ),
    "heads_and_edges": ("heads_and_edges/heads.js",),
    "watch_it_learn": ("watch_it_learn/watch.js",),
    "explorers": ("explorers/explorer.js",),
}
OWN_STYLES = ("live/live", "lab/lab", "heads_and_edges/heads", "watch_it_learn/watch")
STYLES = ("style.css", "widgets.css", *(f"{name}.css" for name in OWN_STYLES))


def markdown(document: Document) -> str:
    """Render ``document`` as Markdown. Figures are links to files under figures/."""
    environment = _environment(autoescape=False)
    environment.filters |= {"text": markdown_text, "field": _markdown_field}
    return environment.get_template("README.md.j2").render(document=document)


def html(document: Document) -> str:
    """Render ``document`` as one HTML file that contains its style, scripts and figures."""
    shown = {block.name for section in document.sections for block in section.blocks if isinstance(block, Widget)}
    names = [*SCRIPTS, *(name for widget, files in WIDGETS.items() if widget in shown for name in files)]
    environment = _environment(autoescape=True)
    environment.finalize = lambda value: spelled(value) if type(value) is str else value  # text marked as safe stays
    environment.filters |= {
        "as_it_is": escape,
        "data_uri": _data_uri,
        "size": _size,
        "data_block": _data_block,
        "digest": _digest,
        "unbroken": _unbroken,
        **_explained(document),
        "points": _points_of,
    }
    style = Markup("").join(map(_read, STYLES))
    return environment.get_template("index.html.j2").render(
        document=document, style=style, scripts=[*map(_read, names)]
    )


def _environment(*, autoescape: bool) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["slug"] = slug
    environment.globals |= {
        "marks": MARKS,
        "anchor": anchor,
        "ORIGINS": ORIGINS,
        "APPENDIX": APPENDIX,
        "PAPERS": PAPERS,
    }
    environment.tests |= {
        "figure": lambda block: isinstance(block, Figure),
        "widget": lambda block: isinstance(block, Widget),
        "claims": lambda block: isinstance(block, Claims),
    }
    return environment


def _explained(document: Document) -> dict[str, Callable[[Any], Any]]:
    """Return filters for texts, and for the paragraphs of a section, in which the first use of a term is a link to its
    definition."""
    tables = (block for section in document.sections for block in section.blocks if isinstance(block, Table))
    rows = [row for table in tables for row in table.rows if row and row[0].anchor.startswith(TERM)]
    terms = {term.lower(): row for row in rows for term in row[0].text.split(", ")}
    pattern = re.compile(rf"\b({'|'.join(sorted(map(re.escape, terms), key=len, reverse=True))})\b", re.I)

    def with_terms(texts: Iterable[str]) -> list[Markup]:
        seen: set[str] = set()

        def link(found: re.Match[str]) -> str:
            term, meaning, *_ = terms[found[0].lower()]
            known = term.anchor in seen
            seen.add(term.anchor)
            say = '<a class="term" href="#{}" title="{}">{}</a>'
            return found[0] if known else Markup(say).format(term.anchor, meaning.text, found[0])

        escaped = [str(escape(spelled(text))) for text in texts]
        return [Markup(pattern.sub(link, text) if terms else text) for text in escaped]

    return {"terms": lambda text: with_terms([text])[0], "explained": lambda section: with_terms(section.paragraphs)}


def _points_of(figure: Figure) -> dict[str, Any]:
    """Return the points of models in a figure, for figures.js."""
    return {"points": [[p.model, spelled(p.model), p.label, p.at] for p in figure.points]}


def _read(name: str) -> Markup:
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))


def _digest(inline: str) -> Markup:
    """Return the SHA-256 of an inline style or script, as a content security policy lists it."""
    return Markup(f"'sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}'")


def _unbroken(number: str) -> str:
    """Replace spaces by no-break spaces, except before a bracket, so that a line breaks only before brackets."""
    return re.sub(r" (?![(\[])", "\u00a0", number)


def _data_block(data: Mapping[str, Any]) -> Markup:
    """Return ``data`` as ASCII JSON without <, > and &, so that no token in it can end its script block."""
    text = json.dumps(data, separators=(",", ":"), sort_keys=True, allow_nan=False, default=packed)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def packed(numbers: npt.NDArray[Any]) -> str:
    """Return an array for ``unpack`` in pieces.js: all first bytes, all second bytes, …, deflated, in base64."""
    planes = numbers.reshape(-1, 1).view(np.uint8).T
    return base64.b64encode(zlib.compress(planes.tobytes(), 9)).decode()


def _data_uri(svg: bytes) -> Markup:
    """Return a drawing as a data URI, with coordinates cut to hundredths of a point, those of glyphs to less."""
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg.decode(), flags=re.S)
    text = re.sub(r"\s+", " ", text)
    for long, short in (("> <", "><"), ("; ", ";"), (": ", ":"), ('"', "'")):
        text = text.replace(long, short)
    text = re.sub(r"\b(?:d|x|y)='[^']*'", lambda shape: re.sub(r"(\.\d\d)\d+", r"\1", shape[0]), text)
    text = re.sub(r"translate\((\d+)\.\d+ 0\)", r"translate(\1 0)", text).replace("DejaVuSans-", "D")
    text = re.sub(r"\bd='[^']*'", lambda path: re.sub(r" ?([A-Za-z]) ?", r"\1", path[0]), text)
    return Markup("data:image/svg+xml," + text.replace("%", "%25").replace("#", "%23").replace("&", "&amp;"))


def _size(svg: bytes) -> Markup:
    """Return the attributes of a drawing's width and height, so that the page reserves its place."""
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg.decode())
    assert found
    return Markup('width="{:.0f}" height="{:.0f}"').format(*map(float, found.groups()))


def markdown_text(text: str) -> str:
    """Spell out names in ``text`` and escape it, so that Markdown shows it unchanged."""
    return "".join(f"&#{ord(c)};" if c in "&<>|`*_[]\\$~#" else c for c in " ".join(spelled(text).split()))


def _markdown_field(entry: Entry) -> str:
    if entry.kind == "token":  # ASCII punctuation becomes entities, so that it cannot act as markup, mention or formula
        return "<code>" + "".join(c if c.isalnum() or ord(c) > 127 else f"&#{ord(c)};" for c in entry.text) + "</code>"
    text = markdown_text(MARKS.get(entry.text, entry.text) if entry.kind == "verdict" else entry.text)
    address = f"#{slug(entry.target)}" if entry.target else entry.link
    return f"[{text}]({address})" if address else text
