"""What an operator's state is made of."""

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from gpureduce.custom.errors import OperatorError
from gpureduce.custom.exact import Exact, made_of, slots_of
from gpureduce.custom.functions import CONSTANTS, in_c
from gpureduce.custom.graph import Node
from gpureduce.custom.scalars import Kind, Scalar, kind_of
from gpureduce.custom.values import Complex, Value

BYTES_MOST, EXACT_MOST = 256, 640  # the latter where there are exact sums: that of f8 takes 536


class Array(NamedTuple):
    """A small array of values; its place in C order is shape's."""

    shape: tuple[int, ...]
    items: "tuple[Value | None, ...]"


Held: TypeAlias = Value | Array


class Field(NamedTuple):
    """name is "" for a state that is one number; shape is () but for arrays."""

    name: str
    kind: Kind
    shape: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype((self.kind.dtype, self.shape)) if self.shape else self.kind.dtype

    def parts(self) -> Iterator[Scalar]:
        one = slots_of(self.kind.part) if self.kind.is_exact else [self.kind.part] * self.kind.parts
        yield from one * self.length


class State(NamedTuple):
    fields: tuple[Field, ...]

    @property
    def is_number(self) -> bool:
        return not self.fields[0].name

    @property
    def slots(self) -> tuple[Scalar, ...]:
        """All numbers of it, one behind the other."""
        return tuple(part for field in self.fields for part in field.parts())

    def described(self) -> str:
        return ", ".join(f.name for f in self.fields) or "a number"


def struct_of(slots: Sequence[Scalar]) -> np.dtype:
    """As C lays numbers out."""
    return np.dtype([(f"s{n}", slot.numpy) for n, slot in enumerate(slots)], align=True)


_WORD = re.compile(
    r"\s*([A-Za-z_]\w*)\s*:\s*([^\s,;\[](?:[^,;\[\n]*[^\s,;\[])?)\s*"
    r"((?:\[\s*\d{1,18}\s*(?:,\s*\d{1,18}\s*)?\]\s*)*)(?:,|;|\n|$)",
    re.ASCII,
)


_EXACT = re.compile(r"\s*exact(?:\s+(\w+))?\s*")


def _kind_of(name: str, described: DTypeLike) -> Kind:
    exact = _EXACT.fullmatch(described) if isinstance(described, str) else None
    dtype = _dtype((exact[1] or "f8") if exact else described)
    kind = kind_of(dtype)
    if kind is None:
        raise OperatorError(f"state: {name or 'it'} is of dtype {dtype}, which is no number's")
    if exact and (not kind.part.is_float or kind.is_complex):
        raise OperatorError(f"state: {name or 'it'} is exact {dtype}: there are exact f4 and f8")
    return kind._replace(is_exact=bool(exact))


def _fields_of_text(text: str) -> list[tuple[str, DTypeLike, tuple[int, ...]]]:
    found, at = [], 0
    text = text.strip().rstrip(",;")
    while at < len(text):
        match = _WORD.match(text, at)
        if not match:
            raise OperatorError(
                f"state: {text[at:].strip()!r} is no field; a field is name: dtype, "
                "or name: dtype[3][3] for an array"
            )
        shape = tuple(int(n) for n in re.findall(r"\d+", match[3]))
        found.append((match[1], match[2], shape))
        at = match.end()
    return found


def state_of(description: DTypeLike) -> State:
    """Of "n: i8, mean: f8", a dtype with fields, or that of one number."""
    if isinstance(description, str) and _EXACT.fullmatch(description):
        return _checked([("", description, ())])
    if isinstance(description, str) and ":" in description:
        found = _fields_of_text(description)
    else:
        dtype = _dtype(description)
        if dtype.fields is None:
            if dtype.subdtype:
                raise OperatorError('state: give an array a name, as in "m: f8[3][3]"')
            return _checked([("", dtype, ())])
        found = []
        for name in dtype.names or ():
            base, shape = dtype.fields[name][0], ()
            if base.subdtype:
                base, shape = base.subdtype
            found.append((name, base, shape))
    return _checked(found)


def _dtype(of: DTypeLike) -> np.dtype:
    if of == "bfloat16":
        from gpureduce.bfloat import bfloat16

        return bfloat16()
    try:
        return np.dtype(of)
    except TypeError as error:
        raise OperatorError(f"state: {of!r} is no dtype: {error}") from None


def _checked(found: Sequence[tuple[str, DTypeLike, tuple[int, ...]]]) -> State:
    fields: list[Field] = []
    for name, described, shape in found:
        kind = _kind_of(name, described)
        if 0 in shape or len(shape) > 2:
            raise OperatorError(f"state: {name} is an array of {len(shape)} dimensions, {shape}")
        if name in {field.name for field in fields}:
            raise OperatorError(f"state: {name} is there twice")
        if name in ("a", "b", "i", "I") or name in CONSTANTS or in_c(name):
            raise OperatorError(
                f"state: {name} means something else in the text, as a, b, i, I, C's words and "
                "math.h's names do: give the field another name"
            )
        fields.append(Field(name, kind, shape))
    if not fields:
        raise OperatorError("state: it has no field")
    state = State(tuple(fields))
    size = sum(field.kind.dtype.itemsize * field.length for field in fields)
    most = EXACT_MOST if any(field.kind.is_exact for field in fields) else BYTES_MOST
    if size <= 1 << 16:
        size = max(size, struct_of(state.slots).itemsize)
    if size > most:
        raise OperatorError(f"state: {size} bytes are more than {most}")
    return state


def packed(values: Sequence[Held]) -> list[Node]:
    """The numbers of a state's fields, in the order of its slots."""
    found: list[Node] = []
    for value in values:
        items = value.items if isinstance(value, Array) else (value,)
        for item in items:
            if isinstance(item, Exact):
                found += item.nodes()
            elif isinstance(item, Complex):
                found += item
            else:
                assert isinstance(item, Node)
                found.append(item)
    return found


def unpacked(fields: Sequence[Field], nodes: Sequence[Node]) -> list[Held]:
    """What the fields hold, of the numbers of their slots."""
    rest = iter(nodes)

    def one(kind: Kind) -> Value:
        if kind.is_exact:
            return made_of(kind.part, [next(rest) for _ in slots_of(kind.part)])
        return Complex(next(rest), next(rest)) if kind.is_complex else next(rest)

    return [
        Array(field.shape, tuple(one(field.kind) for _ in range(field.length)))
        if field.shape
        else one(field.kind)
        for field in fields
    ]
