"""Exact sums of floats as numbers of a graph: digits of 32 bits in int64, least first, which add
without carries, and are rounded once, to nearest even, when the sum is read.

A float of 24 or 53 bits is a whole number of the least subnormals: its digits reach from there to
the greatest float. Behind them goes the sum of what is not finite. Of 2^31 numbers no digit
overflows."""

from collections.abc import Callable
from typing import NamedTuple

from gpureduce.custom.graph import Graph, Node
from gpureduce.custom.scalars import BOOL, F4, F8, I8, U4, U8, Scalar

_DIGIT = 32


class Exact(NamedTuple):
    """A sum of floats of that type."""

    part: Scalar
    digits: tuple[Node, ...]
    rest: Node  # the sum of infinities and NaN

    def nodes(self) -> tuple[Node, ...]:
        return (*self.digits, self.rest)


class _Format(NamedTuple):
    bits: Scalar
    mantissa: int  # bits that are stored
    exponents: int  # the greatest of finite ones
    least: int  # 2^-least is the least subnormal
    digits: int


_FORMATS = {F4: _Format(U4, 23, 254, 149, 9), F8: _Format(U8, 52, 2046, 1074, 66)}


def slots_of(part: Scalar) -> list[Scalar]:
    return [*[I8] * _FORMATS[part].digits, part]


def made_of(part: Scalar, nodes: list[Node]) -> Exact:
    return Exact(part, tuple(nodes[:-1]), nodes[-1])


class _On:
    """A graph's operations, by short names, on unsigned integers of 64 bits unless they say so."""

    def __init__(self, graph: Graph):
        self.graph = graph

    def u8(self, x: int) -> Node:
        return self.graph.const(x, U8)

    def i8(self, x: int) -> Node:
        return self.graph.const(x, I8)

    def two(self, op: str, x: Node, y: Node | int, type_: Scalar | None = None) -> Node:
        y = self.graph.const(y, x.type) if isinstance(y, int) else y
        return self.graph.binary(op, x, y, type_ or x.type)

    def shift(self, op: str, x: Node, by: Node | int) -> Node:
        return self.graph.node(op, x.type, (x, self.i8(by) if isinstance(by, int) else by))

    def any(self, x: Node) -> Node:
        return self.two("ne", x, 0, BOOL)

    def choose(self, condition: Node, x: Node, y: Node) -> Node:
        return self.graph.select(condition, x, y)


def deposited(graph: Graph, x: Node) -> Exact:
    """A float as a sum of one."""
    on, f = _On(graph), _FORMATS[x.type]
    bits = graph.cast(graph.node("bits", f.bits, (x,)), U8)
    exponent = on.two("and", on.shift("shr", bits, f.mantissa), f.exponents + 1)
    is_finite = on.two("le", exponent, f.exponents, BOOL)
    is_normal = on.any(exponent)
    hidden = on.choose(is_normal, on.u8(1 << f.mantissa), on.u8(0))
    mantissa = on.two("or", on.two("and", bits, (1 << f.mantissa) - 1), hidden)
    mantissa = on.choose(is_finite, mantissa, on.u8(0))
    shift = on.two("sub", exponent, graph.cast(is_normal, U8))
    is_negative = on.any(on.shift("shr", bits, f.bits.bits - 1))
    first, within = (
        graph.cast(on.two(op, shift, n), type_)
        for op, n, type_ in (("div", _DIGIT, U4), ("rem", _DIGIT, I8))
    )
    pieces = []  # of two digits that follow each other, or three
    for k in range(-(-(f.mantissa + _DIGIT) // _DIGIT)):
        by = on.two("sub", on.i8(_DIGIT * k), within)
        moved = on.shift("shr", mantissa, by) if k else on.shift("shl", mantissa, within)
        piece = graph.cast(on.two("and", moved, (1 << _DIGIT) - 1), I8)
        pieces.append(on.choose(is_negative, graph.node("neg", I8, (piece,)), piece))
    digits = []
    for k in range(f.digits):
        digit = on.i8(0)
        for n, piece in enumerate(pieces[: k + 1]):
            digit = on.choose(on.two("eq", first, k - n, BOOL), piece, digit)
        digits.append(digit)
    return Exact(x.type, tuple(digits), on.choose(is_finite, graph.const(0.0, x.type), x))


def by_parts(graph: Graph, make: Callable[..., Node], *sums: Exact) -> Exact:
    """What make() gives of each of their numbers."""
    nodes = [make(*parts) for parts in zip(*(x.nodes() for x in sums), strict=True)]
    return made_of(sums[0].part, nodes)


def added(graph: Graph, op: str, x: Exact, y: Exact) -> Exact:
    return by_parts(graph, lambda a, b: graph.binary(op, a, b, a.type), x, y)


def negative(graph: Graph, x: Exact) -> Exact:
    return by_parts(graph, lambda a: graph.node("neg", a.type, (a,)), x)


def _magnitude(on: _On, x: Exact) -> tuple[list[Node], Node]:
    """Digits below 2^32, and whether the sum is negative."""
    carry, plain = on.i8(0), []
    for digit in x.digits:
        value = on.two("add", digit, carry)
        plain.append(on.graph.cast(on.two("and", value, (1 << _DIGIT) - 1), U8))
        carry = on.shift("shr", value, _DIGIT)
    is_negative = on.two("lt", carry, 0, BOOL)
    plain.append(on.two("and", on.graph.cast(carry, U8), (1 << _DIGIT) - 1))
    turn = on.choose(is_negative, on.u8((1 << _DIGIT) - 1), on.u8(0))
    borrow, found = on.graph.cast(is_negative, U8), []
    for digit in plain:
        value = on.two("add", on.two("xor", digit, turn), borrow)
        found.append(on.two("and", value, (1 << _DIGIT) - 1))
        borrow = on.shift("shr", value, _DIGIT)
    return found, is_negative


class _Top(NamedTuple):
    """The first digit that is not 0, the two behind it, whether more follow, and its place."""

    high: Node
    middle: Node
    low: Node
    more: Node
    place: Node


def _top(on: _On, digits: list[Node]) -> _Top:
    none = on.u8(0)
    found = _Top(none, none, none, on.graph.const(False, BOOL), on.i8(0))
    more = on.graph.const(False, BOOL)
    for k, digit in enumerate(digits):
        middle, low = (digits[k - n] if k >= n else none for n in (1, 2))
        if k > 2:
            more = on.graph.node("or", BOOL, (more, on.any(digits[k - 3])))
        here = on.any(digit)
        mine = _Top(digit, middle, low, more, on.i8(k))
        found = _Top(*(on.choose(here, a, b) for a, b in zip(mine, found, strict=True)))
    return found


def _scaled(on: _On, x: Node, exponent: Node) -> Node:
    """x · 2^exponent in two steps, of which neither leaves what a double holds, but at the end."""
    half = on.shift("shr", exponent, 1)
    for by in (half, on.two("sub", exponent, half)):
        bits = on.shift("shl", on.graph.cast(on.two("add", by, 1023), U8), 52)
        x = on.graph.node("mul", F8, (x, on.graph.node("float", F8, (bits,))))
    return x


def rounded(graph: Graph, x: Exact) -> Node:
    on, f = _On(graph), _FORMATS[x.part]
    digits, is_negative = _magnitude(on, x)
    top = _top(on, digits)
    high_bits = graph.node("bits", U8, (graph.cast(top.high, F8),))
    length = on.two("sub", graph.cast(on.shift("shr", high_bits, 52), I8), 1022)
    by = on.two("sub", on.i8(_DIGIT), length)  # to the left, until the first bit is the 64th
    pair = on.two("or", on.shift("shl", top.high, _DIGIT), top.middle)
    word = on.two("or", on.shift("shl", pair, by), on.shift("shr", top.low, length))
    lost = on.two("and", on.shift("shl", top.low, by), (1 << _DIGIT) - 1)
    more = graph.node("or", BOOL, (top.more, on.any(lost)))
    cut = 64 - (f.mantissa + 1)
    kept = on.shift("shr", word, cut)
    rest, half = on.two("and", word, (1 << cut) - 1), 1 << (cut - 1)
    is_odd = on.any(on.two("and", kept, 1))
    tie = graph.node("or", BOOL, (more, is_odd))
    up = graph.node("and", BOOL, (on.two("eq", rest, half, BOOL), tie))
    up = graph.node("or", BOOL, (up, on.two("gt", rest, half, BOOL)))
    kept = on.two("add", kept, graph.cast(up, U8))
    place = on.two("mul", on.two("sub", top.place, 1), _DIGIT)
    exponent = on.two("add", on.two("sub", place, by), cut - f.least)
    size = _scaled(on, graph.cast(kept, F8), exponent)
    size = on.choose(on.any(top.high), size, graph.const(0.0, F8))
    signed = on.choose(is_negative, graph.node("neg", F8, (size,)), size)
    is_plain = on.two("eq", graph.node("sub", x.part, (x.rest, x.rest)), x.rest, BOOL)
    is_plain = graph.node("and", BOOL, (is_plain, on.two("eq", x.rest, x.rest, BOOL)))
    return on.choose(is_plain, graph.cast(signed, x.part), x.rest)
