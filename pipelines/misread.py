"""Find what YAML or Hydra would ignore in conf/ without a word, or read as something else than it looks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import yaml

from pipelines.paths import YAML

OTHER_NUMBER = re.compile(r"[-+]?(0[0-9_]+|0[bx][0-9a-fA-F_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)")
GLOBAL = "# @package _global_"  # without this line, Hydra would put the settings of a profile into a section `profile`
ORDER = "expected `{}` after `{}` in `defaults`, because later lines override earlier ones; move it down"
TEXT, NULL, MERGE = (f"tag:yaml.org,2002:{kind}" for kind in ("str", "null", "merge"))
MOST_VALUES = 2_000  # of one file; OmegaConf copies each for every model, which takes a minute for a thousand
Default = tuple[str, yaml.Node | None]  # a line of `defaults`: a folder of conf/, and the file that it names


def misread(conf: Path) -> Iterator[str]:
    """Yield a complaint for each such place in the files of the folder ``conf``. Files that cannot be read are left
    out."""
    for path in sorted(conf.rglob("[!.]*.yaml")):  # without the locks of editors, .#NAME.yaml
        try:
            text = path.read_text(encoding="utf-8")
            document = yaml.compose(text, Loader=YAML)
            if (size := _size(document, {})) > MOST_VALUES:
                yield (
                    f"{path.relative_to(conf.parent)}: expected at most {MOST_VALUES:,} keys and values, got {size:,} "
                    "with those that aliases (*NAME) repeat; remove some"
                )
                continue
            defaults, in_profile = list(_defaults(document)), "profile" in path.relative_to(conf).parent.parts
            complaints = chain(
                _header(text) if in_profile else (),
                _lines(defaults),
                _order(defaults) if path == conf / "config.yaml" else _own_last(defaults),
                _values(document, overrides=in_profile or bool(defaults)),
            )
            yield from (f"{path.relative_to(conf.parent)}: {complaint}" for complaint in complaints)
        except yaml.MarkedYAMLError as error:
            if "Unicode character escape" in str(error.problem) and error.problem_mark:  # Hydra would read it
                yield (
                    f"{path.relative_to(conf.parent)}, line {error.problem_mark.line + 1}: expected characters, got "
                    "half of one, such as \\ud83d; write the character itself"
                )
        except (OSError, ValueError, RecursionError, yaml.YAMLError):
            pass


def _size(node: yaml.Node | None, known: dict[int, int]) -> int:
    """Return how many keys and values a YAML document has after aliases are replaced. ``known`` are counted nodes."""
    if not isinstance(node, yaml.CollectionNode):
        return 1
    if id(node) not in known:
        parts = chain.from_iterable(node.value) if isinstance(node, yaml.MappingNode) else node.value
        known[id(node)] = 1 + sum(_size(part, known) for part in parts)
    return known[id(node)]


def _defaults(document: yaml.Node | None) -> Iterator[Default]:
    for key, lines in document.value if isinstance(document, yaml.MappingNode) else ():
        if key.tag == MERGE:
            for merged in lines.value if isinstance(lines, yaml.SequenceNode) else (lines,):
                yield from _defaults(merged)
        elif key.value == "defaults" and isinstance(lines, yaml.SequenceNode):
            for line in lines.value:
                yield from (
                    ((k.value, name) for k, name in line.value) if line.id == "mapping" else ((line.value, None),)
                )


def _header(text: str) -> Iterator[str]:
    if not re.match(r"\s*#\s*@package _global_\s*?(\n|$)", text):
        yield f"expected the first line `{GLOBAL}`, got {text[:40]!r}; put it first"


def _lines(defaults: list[Default]) -> Iterator[str]:
    for folder, name in defaults:
        if folder.startswith("optional "):
            plain = folder.removeprefix("optional ").strip()
            yield f"expected `{plain}: NAME`, got `{folder}`, which ignores a misspelt name; correct it"
        elif name is not None and (name.tag == NULL or isinstance(name, yaml.CollectionNode)):
            yield f"expected `{folder}: NAME`, got {'no name' if name.tag == NULL else 'a list'}; name one file"


def _order(defaults: list[Default]) -> Iterator[str]:
    plain = [re.split("[/@]", folder.lstrip("/"))[0] for folder, _ in defaults]  # /profile, profile/smoke, profile@x
    for name in ("profile", "_self_"):
        later = plain[plain.index(name) + 1 :] if name in plain else []
        later = [folder for folder in later if folder.isidentifier() and folder not in ("profile", name)]
        if later:
            yield ORDER.format(name, later[-1])


def _own_last(defaults: list[Default]) -> Iterator[str]:
    files = [folder for folder, _ in defaults if not folder.startswith("override ")]
    if "_self_" in files[:-1]:
        yield ORDER.format("_self_", files[-1])


def _values(document: yaml.Node | None, overrides: bool) -> Iterator[str]:
    """Yield a complaint for each key that occurs twice as a number, and each value that is read as another one.

    ``overrides`` says whether the file overrides another one, so that ``???`` and ``{}`` would keep the other's value.
    """
    for node in _nodes(document, set()):
        if isinstance(node, yaml.MappingNode):
            keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            values = [as_compared(key.value) for key in keys]
            pairs = reversed(list(zip(keys, values, strict=True)))  # of each number, the first notation is shown
            twice = {value: key.value for key, value in pairs if values.count(value) > 1 and key.tag != TEXT}
            for key in twice.values():
                yield f"expected different keys, got {key} more than once; remove one"
            if overrides and not node.value:
                yield "expected settings, got {}, which keeps the settings of another file; remove it, or write some"
        elif node.value == "???" and overrides:
            yield "expected a value, got ???, which keeps the value of another file; write one"
        elif OTHER_NUMBER.fullmatch(node.value) and node.tag != TEXT:
            yield (
                f"expected a decimal number, got {node.value}, which YAML reads as "
                f"{yaml.load(node.value, Loader=YAML)}; write it in decimal digits, without a leading zero"
            )


def as_compared(key: str) -> str | float:
    """Return a key as Python compares it: 2, 2.0, +2 and 2_ are the same number."""
    try:
        return float(key.replace("_", ""))
    except ValueError:
        return key


def _nodes(node: yaml.Node | None, seen: set[int]) -> Iterator[yaml.MappingNode | yaml.ScalarNode]:
    """Yield each mapping and each scalar of a YAML document once, although aliases may repeat it."""
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode | yaml.ScalarNode):
        yield node
    for inner in node.value if isinstance(node, yaml.CollectionNode) else ():
        for each in inner if isinstance(inner, tuple) else (inner,):
            yield from _nodes(each, seen)
