"""What was asked for, and who answers."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn

import numpy as np

from gpureduce import functions
from gpureduce.lists import Operator, operators

_NO = np._NoValue


def asked(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that were given."""
    return {name: one for name, one in given.items() if one is not None and one is not _NO}


def function_of(name: str) -> Callable[..., Any]:
    return functions.PUBLIC.get(name) or partial(functions.reduce, op=name)


def row_of(name: str) -> Operator:
    return next(op for op in operators() if op["name"] == name)


def without(name: str, a: Any, rest: Mapping[str, Any], *arguments: str) -> None:
    """Refuses what this kind of array is not reduced with."""
    for argument in arguments:
        if rest.get(argument, False) is not False:
            raise TypeError(f"gpureduce.{name}: {kind(a)} takes no {argument}=")


def kind(a: Any) -> str:
    return f"{type(a).__module__}.{type(a).__qualname__}"


def refused(name: str, a: Any, why: str, instead: str) -> NoReturn:
    raise TypeError(f"gpureduce.{name}: {kind(a)} {why}: give {instead}")


def each(function: Callable[[Any], Any], result: Any) -> Any:
    """Of the result, or of both of them."""
    return tuple(map(function, result)) if isinstance(result, tuple) else function(result)
