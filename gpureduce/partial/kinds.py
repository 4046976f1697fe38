"""What partials there are: of each operator and dtype, how many words, and what they answer."""

import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from gpureduce import _core
from gpureduce.bfloat import bfloat16
from gpureduce.lists import name_given

VERSION = 1
OWN_TREE = "along the tree of"  # a user's operator, which a digest follows
# What every partial begins with: number * merged, merged, how many elements counted.
KINDS, MERGED, COUNT, HEADER = range(4)

_OPERATORS = _core.operators()
INDEX = {op["name"]: number for number, op in enumerate(_OPERATORS)}
_NAMES = {
    name: op["name"] for op in _OPERATORS for name in (op["ufunc"], op["alias"], op["name"]) if name
}


class Kind(NamedTuple):
    """op is the operator that the partials are named by, dtype that of the elements. tree: what
    folds and combines them, where they are parts of a tree."""

    op: str
    dtype: np.dtype[Any]
    words: int
    additive: bool
    answers: tuple[str, ...]
    text: str
    tree: Any = None
    number: int = 0  # the CRC-32 of the text, which begins the words

    @property
    def row(self) -> int:
        return INDEX[self.op]

    @property
    def function(self) -> str:
        """What they are finished as, if nobody has asked for another."""
        return self.op if self.op in self.answers else self.answers[0]

    @property
    def is_position(self) -> bool:
        return self.tree is None and _OPERATORS[self.row]["position"]

    def __str__(self) -> str:
        return self.text.partition(": ")[2]


ROWS = {
    (op, dtype): (named, words, additive, tuple(answers))
    for op, dtype, named, words, additive, answers in _core.partials_rows()
}


def name_of(op: Any, function: str) -> str:
    """The function's name, of that name, an alias or a NumPy ufunc."""
    name = _NAMES.get(name_given(op) or "")
    if name is None:
        known = ", ".join(sorted({op for op, _ in ROWS} | {"prod", "nanprod"}))
        raise ValueError(f"gpureduce.{function}: op {op!r} is not known; give one of {known}")
    return name


def text_of(what: str, dtype: np.dtype[Any]) -> str:
    return f"gpureduce partials {VERSION}: {what} of {dtype.name}"


def dtype_of(given: DTypeLike) -> np.dtype[Any]:
    """Native; by name bfloat16 too."""
    if isinstance(given, str) and given == "bfloat16":
        return bfloat16()
    found = np.dtype(given)
    return found if found.isnative else found.newbyteorder("=")


def number_of(text: str) -> int:
    return zlib.crc32(text.encode())


_kinds: dict[tuple[str, np.dtype[Any]], Kind] = {}
_KINDS_MOST = 1000  # times have many units


def kind_of(name: str, dtype: np.dtype[Any], function: str) -> Kind:
    """Of a function's name and the dtype that is folded, which is native."""
    kind = _kinds.get((name, dtype))
    if kind is None:
        kind = _kind_of(name, dtype, function)
        if len(_kinds) > _KINDS_MOST:
            _kinds.clear()
        _kinds[name, dtype] = kind
    return kind


def _kind_of(name: str, dtype: np.dtype[Any], function: str) -> Kind:
    plain = dtype.name.partition("[")[0]
    row = ROWS.get((name, plain))
    if row is None:
        if plain not in {of for _, of in ROWS}:
            raise TypeError(
                f"gpureduce.{function}: {dtype!r} is not supported; gpureduce.dtypes() lists those "
                "that are"
            )
        if name in ("prod", "nanprod"):
            from gpureduce.partial.products import product_kind

            return product_kind(name, dtype, function)
        raise TypeError(
            f"gpureduce.{function}: there are no partials of {name} of {dtype}"
            + (": multiply the matrices of each part" if name == "matmul2x2" else "")
        )
    named, words, additive, answers = row
    text = text_of(named, dtype)
    return Kind(named, dtype, words, additive, answers, text, None, number_of(text))
