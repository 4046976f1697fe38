"""What type checkers read, made from the list of operators: FILES."""

import textwrap
from typing import NamedTuple

import gpureduce
from gpureduce.functions import signature
from gpureduce.lists import Operator, operators

_HEAD = """\
from gpureduce import arithmetic_signatures, signatures
from gpureduce import array_api as array_api
from gpureduce import warp as warp
from gpureduce import work_queue as work_queue
from gpureduce._core import DeviceArray, DeviceError
"""
_SIGNATURES = '''\
# fmt: off
"""The functions as type checkers see them, made by `make stubs`. Nothing imports it at run time.

An array of NumPy gives a scalar of its dtype's kind, or an array where axes are left; an array of
another library gives one of its own; of what has no dtype, lists and the like, scalars are Any.
"""

from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any, Literal, Protocol, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

Axes = SupportsIndex | tuple[SupportsIndex, ...]
Progress = bool | Callable[[int, int], object]
Place = str | Sequence[str]
Integer = np.bool_ | np.integer[Any]
Signed = np.bool_ | np.signedinteger[Any]
Unsigned = np.unsignedinteger[Any]


class DLPack(Protocol):
    """An array of a library, such as a tensor of PyTorch."""

    @property
    def shape(self) -> Any: ...
    def __dlpack__(self) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, Any]: ...


S = TypeVar("S", bound=np.generic)
Kept = TypeVar("Kept", bound=np.inexact[Any] | np.timedelta64)
Real = TypeVar("Real", bound=np.floating[Any])
Tensor = TypeVar("Tensor", bound=DLPack)
Out = TypeVar("Out", bound=DLPack | tuple[DLPack, DLPack])
'''
_ARITHMETIC = '''\
# fmt: off
"""Sums, products, means and variances as type checkers see them, made by `make stubs`."""

from types import EllipsisType
from typing import Any, Literal, Protocol, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from gpureduce.signatures import (
    Axes,
    DLPack,
    Integer,
    Kept,
    Out,
    Place,
    Progress,
    Real,
    S,
    Signed,
    Tensor,
    Unsigned,
)
'''
_LINE = 100
_TYPES = {
    "axis": "Axes | None = None",
    "dtype": "DTypeLike | None = None",
    "out": "None = None",
    "ddof": "float = 0",
    "keepdims": "bool = ...",
    "initial": "Any = ...",
    "where": "ArrayLike = ...",
    "mean": "ArrayLike = ...",
    "correction": "float = ...",
    "device": "Place = ...",
    "kernel": "str | None = ...",
    "progress": "Progress = ...",
}
_MANY = "type[S] | np.dtype[S]"
_INTEGERS = [("NDArray[Signed]", "np.int64"), ("NDArray[Unsigned]", "np.uint64")]


class _Case(NamedTuple):
    """One overload: what it takes in place of the usual types, and what it gives."""

    a: str
    result: str
    given: dict[str, str]


def text() -> str:
    """The package's __init__.pyi."""
    names = "".join(f'    "{name}",\n' for name in sorted(gpureduce.__all__))
    lines = []
    for op in operators():
        if op["function"]:
            module = "arithmetic_signatures" if _is_arithmetic(op) else "signatures"
            lines += [f"{name}: {module}.{_family(op)}\n" for name in _names(op)]
    head = f"{_HEAD}{_imports()}\n__version__: str\n"
    return f"{head}__all__ = [\n{names}]\n\n" + "".join(lines)


def _imports() -> str:
    """All but the functions that are made from the list of operators, each from its module."""
    modules: dict[str, list[str]] = {}
    for name in sorted(gpureduce.__all__):
        modules.setdefault(getattr(gpureduce, name).__module__, []).append(name)
    del modules["gpureduce"]
    lines = []
    for module, names in sorted(modules.items()):
        line = f"from {module} import {', '.join(names)}\n"
        several = "".join(f"    {name},\n" for name in names)
        lines.append(line if len(line) <= _LINE else f"from {module} import (\n{several})\n")
    return "".join(lines)


def signatures() -> str:
    """Protocols of the functions that give back elements, indices and truth."""
    return _SIGNATURES + _protocols(False)


def arithmetic_signatures() -> str:
    """Protocols of sums, products, means and variances."""
    return _ARITHMETIC + _protocols(True)


def _protocols(arithmetic: bool) -> str:
    every = {_family(op): op for op in reversed(operators()) if op["function"]}
    return "".join(
        _protocol(op) for op in [*every.values()][::-1] if _is_arithmetic(op) == arithmetic
    )


def _is_arithmetic(op: Operator) -> bool:
    return op["takes_dtype"]


def _names(op: Operator) -> list[str]:
    return [op["name"], *([op["alias"]] if op["alias"] else [])]


def _kind(op: Operator) -> str:
    """What an operator makes of a dtype."""
    name = op["name"].removeprefix("nan")
    if op["position"] or name == "count_nonzero":
        return "index"
    return {"prod": "sum", "std": "var", "any": "truth", "all": "truth"}.get(
        name, name if name in ("sum", "mean", "var", "ptp") else "same"
    )


def _shape(op: Operator) -> tuple[object, ...]:
    return _kind(op), op["results"], op["takes_kernel"], *signature(op)


def _family(op: Operator) -> str:
    """Named after the first operator of these parameters and results."""
    first = next(one for one in operators() if _shape(one) == _shape(op))
    return "".join(word.title() for word in first["name"].split("_")) + "Function"


def _pairs(kind: str) -> list[tuple[str, str]]:
    """Arrays of NumPy and the scalars that they give."""
    if kind == "index":
        return [("NDArray[Any]", "np.int64")]
    if kind == "truth":
        return [("NDArray[Any]", "np.bool_")]
    if kind == "same":
        return [("NDArray[S]", "S")]
    if kind == "sum":
        return [("NDArray[Kept]", "Kept"), *_INTEGERS]
    if kind == "ptp":
        return [("NDArray[Kept]", "Kept"), ("NDArray[np.integer[Any]]", "np.integer[Any]")]
    real = "Real" if kind == "var" else "Kept"
    return [(f"NDArray[{real}]", real), ("NDArray[Integer]", "np.float64")]


def _cases(op: Operator) -> list[_Case]:
    whole, part = {"axis": "None = None", "keepdims": "Literal[False] = ..."}, {"axis": "Axes"}
    no_dtype = {"dtype": "None = None"}
    pairs, cases = _pairs(_kind(op)), []
    results = {"index": "np.int64", "truth": "np.bool_"}.get(_kind(op), "Any")
    if op["takes_out"]:
        cases.append(_Case("ArrayLike | DLPack", "Out", {"out": "Out"}))
        cases.append(_Case("NDArray[Any]", "NDArray[Any]", {"out": "EllipsisType"}))
    if op["takes_dtype"]:
        cases.append(_Case("ArrayLike | DLPack", "S", {**whole, "dtype": _MANY}))
        cases.append(_Case("ArrayLike", "NDArray[S]", {**part, "dtype": _MANY}))
    for a, scalar in pairs:
        if scalar != results:  # which any array gives
            cases.append(_Case(a, scalar, {**whole, **no_dtype}))
    for a, scalar in pairs:
        cases.append(_Case(a, f"NDArray[{scalar}]", {**part, **no_dtype}))
    many = f"NDArray[{results}]"
    cases.append(_Case("NDArray[Any]", many, {"keepdims": "Literal[True]"}))
    if results != "Any":
        cases.append(_Case("ArrayLike | DLPack", results, whole))
    cases.append(_Case("Tensor", "Tensor", part))
    cases.append(_Case("ArrayLike", many, part))
    cases.append(_Case("ArrayLike | DLPack", "Any", {}))
    return cases


def _parameters(op: Operator, case: _Case) -> list[str]:
    """In the functions' order; after one that must be given by name all are."""
    names = [*signature(op), "device"]
    names += ["kernel"] * op["takes_kernel"] + ["progress"]
    found, starred = [f"self, a: {case.a}"], False
    for name in names:
        kind = case.given.get(name, _TYPES.get(name, ""))
        must = name in case.given and "=" not in kind and name != "axis"
        if name == "*" and starred:
            continue
        if must and not starred:
            found.append("*")
        starred = starred or must or name == "*"
        found.append(f"{name}: {kind}" if kind else name)
    return found


def _protocol(op: Operator) -> str:
    lines = [f"\n\nclass {_family(op)}(Protocol):"]
    for case in _cases(op):
        result = case.result
        if op["results"] > 1 and result not in ("Out", "Any"):
            result = f"tuple[{result}, {result}]"
        lines += ["    @overload", _wrapped(_parameters(op, case), result)]
    return "\n".join(lines) + "\n"


def _wrapped(parameters: list[str], result: str) -> str:
    """With line breaks between parameters alone."""
    line = ", ".join(one.replace(" ", "\0") for one in parameters)
    end = f") -> {result}: ...".replace(" ", "\0")
    text = textwrap.fill(
        f"def\0__call__({line}{end}",
        _LINE,
        initial_indent=" " * 4,
        subsequent_indent=" " * 8,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return text.replace("\0", " ")


FILES = {
    "__init__.pyi": text,
    "signatures.py": signatures,
    "arithmetic_signatures.py": arithmetic_signatures,
}
