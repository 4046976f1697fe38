"""What an operator is given names for."""

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpureduce.custom.errors import OperatorError
from gpureduce.custom.functions import CONSTANTS, in_c
from gpureduce.custom.program import Input

_INPUT = re.compile(r"\s*([A-Za-z_]\w*)\s*((?:\[\s*\d{1,9}\s*\])*)\s*$", re.ASCII)


def inputs_of(text: str | None) -> tuple[Input, ...] | None:
    """Of "x, weight, m[3][3]"."""
    if text is None:
        return None
    strings_checked(inputs=text)
    found: list[Input] = []
    for one in text.split(","):
        match = _INPUT.match(one)
        if not match:
            raise OperatorError(f"inputs: {one.strip()!r} is no name, nor a name with [lengths]")
        shape = tuple(int(n) for n in re.findall(r"\d+", match[2]))
        if match[1] in {i.name for i in found}:
            raise OperatorError(f"inputs: {match[1]} is there twice")
        if match[1] in ("i", "I") or match[1] in CONSTANTS or in_c(match[1]):
            raise OperatorError(
                f"inputs: {match[1]} means something else in the text, as i, I, C's words and "
                "math.h's names do: give the input another name"
            )
        if len(shape) > 2 or 0 in shape or (shape and max(shape) > 64):
            raise OperatorError(f"inputs: {one.strip()} has one or two lengths, from 1 to 64")
        found.append(Input(match[1], shape))
    return tuple(found)


def fixed(identity: Any) -> Any:
    """The identity as it is now: what is changed later changes no operator."""
    if isinstance(identity, set | frozenset | Iterator):
        raise OperatorError(f"identity: {identity!r} has no order, or none that can be read again")
    return copy.deepcopy(identity)


def texts_of(combine: Any, finish: Any, **others: Any) -> Any:
    """finish as it is now."""
    strings_checked(**others)
    if not isinstance(combine, str):
        raise TypeError(f"combine is a text, not {type(combine).__name__}")
    if finish is None or isinstance(finish, str):
        return finish
    if not isinstance(finish, Mapping):
        raise TypeError(f"finish is a text, or a dict of them, not {type(finish).__name__}")
    return dict(finish)


def strings_checked(**given: Any) -> None:
    for name, text in given.items():
        if text is not None and not isinstance(text, str):
            raise TypeError(f"{name} is a text, not {type(text).__name__}")
