"""Messages about a configuration that cannot be run: the place, what was expected, what was given, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails


def missing(values: Any, path: str = "") -> Iterator[str]:
    """Yield the place of each missing value (``???``) in nested mappings, lists and tuples, such as "train.tokens".

    ``path`` is the place of ``values`` itself, with which every place begins.
    """
    if isinstance(values, Mapping | list | tuple):
        for key, value in values.items() if isinstance(values, Mapping) else enumerate(values):
            yield from missing(value, f"{path}.{key}" if path else str(key))
    elif values == "???":
        yield path


def of_error(error: ErrorDetails, kind: type[BaseModel], where: str) -> list[str]:
    """Return the messages for one error that pydantic found when it read values as a ``kind``.

    ``where`` is the name of the values in the messages.
    """
    place = ".".join([where, *(str(p) for p in error["loc"])])
    if error["type"] == "changes":
        return [f"{where}.{complaint}" for complaint in error["ctx"]["complaints"]]
    if error["type"] == "extra_forbidden":
        above = ".".join([where, *(str(p) for p in error["loc"][:-1])])
        return [f"{above}.{unknown(str(error['loc'][-1]), _type(kind, error['loc'][:-1]).model_fields)}"]
    if error["type"] == "missing" and isinstance(error["input"], list | tuple):
        above = ".".join([where, *(str(p) for p in error["loc"][:-1])])
        length = len(get_args(_type(kind, error["loc"][:-1])))
        return [f"{above}: expected a list of {length} values, got {_short(list(error['input']))}"]
    if error["type"] == "missing":
        return [f"{place}: is required and was not given"]
    section = isinstance(error["input"], Mapping | BaseModel) and _is_section(_type(kind, error["loc"]))
    return [f"{place}: {_said(error)}" + ("" if section else f", got {_short(error['input'])}")]


def _said(error: ErrorDetails) -> str:
    """Return what pydantic expected, in the words of the other messages."""
    if error["type"] in ("tuple_type", "dict_type", "model_type", "model_attributes_type"):
        return "expected a list in brackets" if error["type"] == "tuple_type" else "expected settings by name"
    if error["type"] == "bool_type":
        return "expected true or false"
    if error["type"] in ("int_type", "int_from_float"):
        return "expected a whole number"
    if error["type"] == "string_type":
        return "expected a text"
    if error["type"] == "too_long":
        return f"expected a list of {error['ctx']['max_length']} at most"
    if error["type"] == "too_short":
        return f"expected a list of {error['ctx']['min_length']} or more"
    if error["type"] == "string_too_short":
        return "expected a text that is not empty"
    return error["msg"].removeprefix("Value error, ").replace("Input should be", "expected")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 100 else text[:97] + "…"


def unknown(key: str, known: Iterable[str], what: str = "setting") -> str:
    """Return the message that ``key`` is not among the ``known`` keys, which it calls ``what``. It suggests the most
    similar key, or lists all if none is similar."""
    known = sorted(known)
    near = difflib.get_close_matches(key, known, n=1)
    return f"{key}: no such {what}; " + (f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}")


def of_change(
    place: str, change: Mapping[str, Any], known: Mapping[str, Collection[str]], fixed: Mapping[str, str]
) -> Iterator[str]:
    """Yield a message for each section and key in ``change`` that is not ``known``, and for each key that is ``fixed``.

    ``known`` gives the keys of each section, and ``fixed`` the reason why a key cannot be changed. There is also a
    message for each section whose value is not a mapping. ``place`` is the name of ``change`` in the messages.
    """
    for section, settings in change.items():
        if section not in known:
            yield f"{place}.{section}: expected changes of {' and '.join(known)} only, such as train.tokens"
        elif not isinstance(settings, Mapping):
            yield f"{place}.{section}: expected settings by name, such as {{tokens: 9000000}}, got {settings!r}"
        else:
            for key in settings:
                if key in fixed:
                    yield f"{place}.{section}.{key}: {fixed[key]}"
                elif key not in known[section]:
                    yield f"{place}.{section}.{unknown(str(key), known[section])}"


def _type(kind: Any, place: Sequence[int | str]) -> Any:
    """Return the type of the value at ``place`` in a ``kind``. ``place`` is a path of keys and positions."""
    for step in place:
        if _is_section(kind):
            kind = kind.model_fields[str(step)].annotation
        elif inner := [inner for inner in get_args(kind) if inner is not Ellipsis]:
            kind = inner[-1]
    return kind


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
