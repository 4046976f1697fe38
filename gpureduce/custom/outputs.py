"""What is asked of several results, and how they are given back."""

import keyword
from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any


def each(name: str, what: str, given: Any, names: tuple[str, ...]) -> list[Any]:
    """What was given for each result: one for all dtypes, or a tuple or dict by results."""
    if given is None:
        return [None] * len(names)
    if isinstance(given, Mapping):
        unknown = set(given) - set(names)
        if unknown:
            raise ValueError(f"{name}: {what} names {sorted(unknown)[0]!r}, which is no result")
        return [given.get(one) for one in names]
    if isinstance(given, tuple):
        if len(given) != len(names):
            raise ValueError(
                f"{name}: {what} has {len(given)} parts, and there are {len(names)} results"
            )
        return list(given)
    if what == "dtype" or len(names) == 1:
        return [given] * len(names)
    raise ValueError(f"{name}: {what} is a tuple of {len(names)}, for {', '.join(names)}")


_types: dict[tuple[str, tuple[str, ...]], Any] = {}


def result_type(name: str, names: tuple[str, ...]) -> Any:
    """The namedtuple of an operator's results, which pickles by its names."""
    made = _types.get((name, names))
    if made is None:
        of: Any = namedtuple
        is_name = name.isidentifier() and not keyword.iskeyword(name)
        made = of(name if is_name else "operator", names)
        made.__reduce__ = lambda self: (_result, (name, names, tuple(self)))
        _types[name, names] = made
    return made


def packed(name: str, results: Sequence[Any], found: Sequence[Any]) -> Any:
    """As the caller gets them: by name, or the one that has none."""
    if not results[0].name:
        return found[0]
    return result_type(name, tuple(r.name for r in results))(*found)


def _result(name: str, names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return result_type(name, names)(*values)
