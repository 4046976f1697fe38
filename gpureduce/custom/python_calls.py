"""Functions of Python's and NumPy's, on values."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from gpureduce.custom.errors import Slip
from gpureduce.custom.exact import Exact
from gpureduce.custom.expressions import conjugate, part
from gpureduce.custom.functions import FUNCTIONS
from gpureduce.custom.graph import Node
from gpureduce.custom.scalars import F8, I8, Kind
from gpureduce.custom.values import WEAK_BITS, Complex, Maker, Value, Weak, weak


def power(maker: Maker, x: Value, y: Value) -> Value:
    """x ** y: roots and squares as such, all others by pow()."""
    if isinstance(x, Weak) and isinstance(y, Weak):
        _check_power(x.number, y.number)
        try:
            return weak(x.number**y.number)
        except (ArithmeticError, TypeError) as error:
            raise Slip(f"{x.number!r} ** {y.number!r}: {error}") from None
    kind = maker.kind(x)
    by_squaring = not kind.part.is_float or kind.is_complex
    if isinstance(y, Weak) and isinstance(y.number, int) and (y.number == 2 or by_squaring):
        if not 0 < y.number <= 64:
            raise Slip(f"** {y.number} is not known of these numbers")
        return _product(maker, x, y.number)
    if isinstance(y, Weak) and y.number == 0.5 and not maker.kind(x).is_complex:
        return call(maker, "sqrt", [x])
    return call(maker, "pow", [x, y])


def _check_power(x: object, y: object) -> None:
    """Before it takes all time and memory there are."""
    if not isinstance(x, int) or not isinstance(y, int) or abs(x) < 2:
        return
    if x.bit_length() * y > 2 * WEAK_BITS:
        raise Slip(f"{x} ** {y} is an integer of more than {WEAK_BITS} bits")


def _product(maker: Maker, x: Value, times: int) -> Value:
    """By squaring."""
    found: Value | None = None
    while times:
        if times & 1:
            found = x if found is None else maker.binary("*", found, x)
        times >>= 1
        x = maker.binary("*", x, x) if times else x
    assert found is not None
    return found


def floor_division(maker: Maker, x: Value, y: Value) -> tuple[Value, Value]:
    """x // y and x % y, as Python has them: the rest has the divisor's sign."""
    if isinstance(x, Weak) and isinstance(y, Weak):
        try:
            return Weak(x.number // y.number), Weak(x.number % y.number)  # type: ignore[operator]
        except (TypeError, ArithmeticError) as error:
            raise Slip(str(error)) from None
    a, b = (maker.real(v, "// and %") for v in maker.pair(x, y))
    if a.type.kind == "b":
        a, b = (maker.graph.cast(v, I8) for v in (a, b))
    if a.type.is_float:
        return _of_floats(maker, a, b)
    graph, type_ = maker.graph, a.type
    quotient = graph.binary("div", a, b, type_)
    rest = graph.binary("rem", a, b, type_)
    if type_.kind == "u":
        return quotient, rest
    zero = graph.const(0, type_)
    is_off = maker.both(
        maker.binary("!=", rest, zero),
        maker.binary("!=", maker.binary("<", rest, zero), maker.binary("<", b, zero)),
    )
    lower = graph.binary("sub", quotient, graph.const(1, type_), type_)
    upper = graph.binary("add", rest, b, type_)
    return graph.select(is_off, lower, quotient), graph.select(is_off, upper, rest)


def _of_floats(maker: Maker, a: Node, b: Node) -> tuple[Value, Value]:
    """As CPython and NumPy reckon it, from fmod()."""
    graph, type_ = maker.graph, a.type

    def two(op: str, x: Node, y: Node) -> Node:
        return graph.binary(op, x, y, type_)

    zero, one, half = (graph.const(v, type_) for v in (0.0, 1.0, 0.5))
    rest = maker.call("fmod", type_, [a, b])
    quotient = two("div", two("sub", a, rest), b)
    is_off = maker.both(
        maker.truth(rest),
        maker.binary("!=", maker.binary("<", rest, zero), maker.binary("<", b, zero)),
    )
    quotient = graph.select(is_off, two("sub", quotient, one), quotient)
    moved = graph.select(is_off, two("add", rest, b), rest)
    signed = maker.call("copysign", type_, [zero, b])
    floor = maker.call("floor", type_, [quotient])
    off = maker.binary(">", two("sub", quotient, floor), half)
    floor = graph.select(maker.truth(off), two("add", floor, one), floor)
    nothing = maker.call("copysign", type_, [zero, two("div", a, b)])
    whole = graph.select(maker.truth(quotient), floor, nothing)
    by_zero = maker.truth(maker.binary("==", b, zero))
    rest = graph.select(maker.truth(moved), moved, signed)
    return graph.select(by_zero, two("div", a, b), whole), rest


def cast(maker: Maker, x: Value, kind: Kind) -> Value:
    x = maker.strong(x)
    if isinstance(x, Complex) and not kind.is_complex:
        if kind.part.kind == "b":
            return maker.truth(x)
        raise Slip("a complex number is no real one: take .real of it")
    return maker.to(x, kind)


def _extreme(op: str) -> Callable[..., Value]:
    def of(maker: Maker, *args: Value) -> Value:
        if len(args) < 2:
            raise Slip("min() and max() take two numbers or more here")
        found = args[0]
        for one in args[1:]:
            found = maker.extreme(op, found, one)
        return found

    return of


def _spoilt(op: str) -> Callable[..., Value]:
    """np.minimum and np.maximum: NaN if one is."""

    def of(maker: Maker, x: Value, y: Value) -> Value:
        a, b = (maker.real(v, "minimum and maximum") for v in maker.pair(x, y))
        keeps = maker.either(maker.binary(op, a, b), maker.binary("!=", a, a))
        return maker.graph.select(keeps, a, b)

    return of


def _nan_skipping(name: str, op: str) -> Callable[..., Value]:
    def of(maker: Maker, x: Value, y: Value) -> Value:
        a, b = (maker.real(v, name) for v in maker.pair(x, y))
        return maker.call(name, a.type, [a, b]) if a.type.is_float else maker.extreme(op, a, b)

    return of


def _to_int(name: str) -> Callable[..., Value]:
    def of(maker: Maker, x: Value) -> Value:
        if isinstance(x, Weak):
            try:
                return weak(getattr(math, name)(x.number))
            except (TypeError, ValueError, OverflowError) as error:
                raise Slip(f"{name}: {error}") from None
        node = maker.real(x, name)
        if not node.type.is_float:
            return maker.graph.cast(node, I8)
        return maker.graph.cast(maker.call(name, node.type, [node]), I8)

    return of


_OWN: dict[str, tuple[int, Callable[..., Value]]] = {
    "abs": (1, lambda maker, x: Weak(abs(x.number)) if isinstance(x, Weak) else maker.absolute(x)),
    "fabs": (1, Maker.absolute),
    "min": (-1, _extreme("<")),
    "max": (-1, _extreme(">")),
    "minimum": (2, _spoilt("<=")),
    "maximum": (2, _spoilt(">=")),
    "fmin": (2, _nan_skipping("fmin", "<")),
    "fmax": (2, _nan_skipping("fmax", ">")),
    "where": (3, Maker.select),
    "square": (1, lambda maker, x: maker.binary("*", x, x)),
    "real": (1, part(0)),
    "imag": (1, part(1)),
    "conjugate": (1, conjugate),
    "int floor": (1, _to_int("floor")),
    "int ceil": (1, _to_int("ceil")),
    "int trunc": (1, _to_int("trunc")),
}


def call(maker: Maker, name: str, args: Sequence[Any]) -> Value:
    """Of floats in the type that the arguments have together; of integers in double."""
    for arg in args:
        if not isinstance(arg, Node | Complex | Weak | Exact):
            raise Slip(f"{name} takes numbers")
    if name in _OWN:
        arity, make = _OWN[name]
        if arity not in (-1, len(args)):
            raise Slip(f"{name} takes {arity} arguments, not {len(args)}")
        return make(maker, *args)
    function = FUNCTIONS.get(name)
    if function is None:
        raise Slip(f"{name} is not known here")
    floats = [arg for n, arg in enumerate(args) if n not in function.integers]
    common: Value = floats[0] if floats else Weak(0.0)
    for other in floats[1:]:
        common = maker.pair(common, other)[0]
    part = maker.real(common, name).type
    return maker.call(name, part if part.is_float else F8, args)
