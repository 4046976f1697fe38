"""A program by NumPy: the same tree, level by level, where there is no compiler."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpureduce.custom.functions import FUNCTIONS
from gpureduce.custom.graph import Node, in_order
from gpureduce.custom.program import Program
from gpureduce.custom.scalars import F4, F8, Scalar

Numbers = NDArray[Any]
BLOCK = 1 << 15  # leaves at a time


def numbers(nodes: Sequence[Node], given: Callable[[Node], Numbers]) -> list[Numbers]:
    """What the nodes come to; given() has inputs, states and the index."""
    found: dict[Node, Numbers] = {}
    with np.errstate(all="ignore"):
        for node in in_order(nodes):
            args = [found[arg] for arg in node.args]
            found[node] = _one(node, args, given)
    return [found[node] for node in nodes]


def _one(node: Node, args: list[Numbers], given: Callable[[Node], Numbers]) -> Numbers:
    op, type_ = node.op, node.type
    if op in ("input", "index", "a", "b"):
        return given(node)
    if op == "const":
        return np.asarray(node.detail, dtype=type_.numpy)
    if op == "cast":
        return _cast(args[0], node.args[0].type, type_)
    if op == "select":
        return np.where(args[0], args[1], args[2])
    if op == "call":
        return np.asarray(_call(str(node.detail), args))
    if op in ("bits", "float"):
        return np.asarray(args[0]).view(type_.numpy)
    if op == "widen":
        return _widened(args[0], node.args[0].type)
    if op == "narrow":
        return _narrowed(args[0], type_)
    return _operation(op, type_, args)


def _operation(op: str, type_: Scalar, args: list[Numbers]) -> Numbers:
    if op in ("div", "rem", "shl", "shr") and not type_.is_float:
        x, y = args
        return _INTEGERS[op](x, y, type_)
    ufunc = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lt": "less",
             "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
             "ne": "not_equal", "add": "add", "sub": "subtract", "mul": "multiply",
             "div": "divide", "neg": "negative", "not": "invert",
             "lnot": "logical_not"}  # fmt: skip
    return np.asarray(getattr(np, ufunc[op])(*args))


def _quotient(x: Numbers, y: Numbers, type_: Scalar) -> Numbers:
    """Towards zero, as C's; of a division by 0 it is 0."""
    safe = np.where(y == 0, 1, y).astype(y.dtype)
    quotient = x // safe
    up = (x % safe != 0) & ((x < 0) != (safe < 0))
    return np.where(y == 0, 0, quotient + up).astype(x.dtype)


def _rest(x: Numbers, y: Numbers, type_: Scalar) -> Numbers:
    return np.where(y == 0, 0, x - _quotient(x, y, type_) * y).astype(x.dtype)


def _left(x: Numbers, by: Numbers, type_: Scalar) -> Numbers:
    fits = (by >= 0) & (by < type_.bits)
    return np.where(fits, x << np.where(fits, by, 0).astype(x.dtype), 0).astype(x.dtype)


def _right(x: Numbers, by: Numbers, type_: Scalar) -> Numbers:
    fits = (by >= 0) & (by < type_.bits)
    beyond = x >> x.dtype.type(type_.bits - 1) if type_.kind == "i" else np.zeros_like(x)
    return np.where(fits, x >> np.where(fits, by, 0).astype(x.dtype), beyond).astype(x.dtype)


_INTEGERS = {"div": _quotient, "rem": _rest, "shl": _left, "shr": _right}


def _cast(x: Numbers, of: Scalar, to: Scalar) -> Numbers:
    if to.kind == "b":
        return np.asarray(x != 0)
    if not of.is_float or to.is_float:
        return x.astype(to.numpy)
    wide = x.astype(np.float64)
    fits = (wide >= -(2.0**63)) & (wide < 2.0**63)
    signed = np.where(fits, wide, 0).astype(np.int64)
    signed = np.where(fits, signed, np.int64(-(2**63)))
    if to.name == "u8":
        large = (wide >= 2.0**63) & (wide < 2.0**64)
        unsigned = np.where(large, wide, 0).astype(np.uint64)
        return np.where(large, unsigned, signed.astype(np.uint64))
    return signed.astype(to.numpy)


def _widened(x: Numbers, of: Scalar) -> Numbers:
    if of.name == "e2":
        return x.astype(np.float32)
    return (x.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _narrowed(x: Numbers, to: Scalar) -> Numbers:
    if to.name == "e2":
        return np.where(x != x, np.float16(math.nan), x.astype(np.float16))
    odd = _to_odd(x) if x.dtype == np.float64 else x
    bits = odd.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    return np.where(odd != odd, np.uint32(0x7FC0), rounded).astype(np.uint16)


def _to_odd(x: Numbers) -> Numbers:
    """As arithmetic.h's gpr_to_odd()."""
    near = x.astype(np.float32)
    back = near.astype(np.float64)
    bits = near.view(np.uint32) - (np.abs(back) > np.abs(x)).astype(np.uint32)
    exact = (back == x) | (x != x)
    return np.where(exact, near, (bits | np.uint32(1)).view(np.float32))


# --- functions ------------------------------------------------------------------------------------


def _signbit(x: Numbers) -> Numbers:
    return np.asarray(np.signbit(x) & (x == x))


def _copysign(x: Numbers, y: Numbers) -> Numbers:
    return np.where(_signbit(y), -np.abs(x), np.abs(x))


def _fmin(x: Numbers, y: Numbers) -> Numbers:
    return np.where((x < y) | (y != y) | ((x == y) & _signbit(x)), x, y)


def _fmax(x: Numbers, y: Numbers) -> Numbers:
    return np.where((x > y) | (y != y) | ((x == y) & ~_signbit(x)), x, y)


def _fdim(x: Numbers, y: Numbers) -> Numbers:
    return np.where((x > y) | (x != x) | (y != y), x - y, x.dtype.type(0))


def _round(x: Numbers) -> Numbers:
    whole = np.trunc(x)
    away = np.abs(whole) + (np.abs(x - whole) >= 0.5)
    return _copysign(away.astype(x.dtype), x)


def _one_by_one(function: Callable[..., float]) -> Callable[..., Numbers]:
    def all_of(*args: Numbers) -> Numbers:
        out = np.frompyfunc(function, len(args), 1)(*args)
        return np.asarray(out, dtype=args[0].dtype)

    return all_of


def _fma(x: Numbers, y: Numbers, z: Numbers) -> Numbers:
    from fractions import Fraction

    type_ = x.dtype.type

    def one(a: Any, b: Any, c: Any) -> Any:
        a, b, c = float(a), float(b), float(c)
        if not all(map(math.isfinite, (a, b, c))) or 0 in (a, b):
            return type_(a * b + c) if math.isfinite(c) or not math.isfinite(a * b) else c
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        if exact == 0:
            return type_(a * b + c)
        return _rounded(exact, type_)

    return np.asarray(np.frompyfunc(one, 3, 1)(x, y, z), dtype=x.dtype)


def _rounded(exact: Any, type_: Any) -> Any:
    try:
        near = float(exact)
    except OverflowError:
        return type_(math.copysign(math.inf, exact))
    if type_ is np.float64:
        return near
    from fractions import Fraction

    if near and Fraction(near) != exact:
        toward = math.inf if exact > Fraction(near) else -math.inf
        last = int(np.float64(near).view(np.uint64)) & 1
        near = near if last else math.nextafter(near, toward)
    return type_(near)


_FUNCTIONS: Mapping[str, Callable[..., Numbers]] = {
    "signbit": _signbit,
    "copysign": _copysign,
    "fmin": _fmin,
    "fmax": _fmax,
    "fdim": _fdim,
    "round": _round,
    "fma": _fma,
    "erf": _one_by_one(math.erf),
    "erfc": _one_by_one(math.erfc),
    "tgamma": _one_by_one(math.gamma),
    "lgamma": _one_by_one(math.lgamma),
}


def _call(name: str, args: list[Numbers]) -> Numbers:
    own = _FUNCTIONS.get(name)
    if own:
        return own(*args)
    made: Numbers = getattr(np, FUNCTIONS[name].numpy)(*args)
    return made


# --- the tree -------------------------------------------------------------------------------------


def combined(program: Program, a: Sequence[Numbers], b: Sequence[Numbers]) -> list[Numbers]:
    sides = {"a": a, "b": b}
    made = numbers(program.combine, lambda node: sides[node.op][int(node.detail or 0)])
    shape = np.shape(a[0])
    return [np.broadcast_to(one, shape) for one in made]


def lifted(program: Program, inputs: Sequence[Numbers], first: int) -> list[Numbers]:
    """Leaves along the first axis of the inputs, one of each stream."""
    shape = inputs[0].shape
    index = np.arange(first, first + shape[0]).reshape(-1, *[1] * (len(shape) - 1))
    made = numbers(
        program.lift, lambda node: index if node.op == "index" else inputs[int(node.detail or 0)]
    )
    return [np.broadcast_to(one, shape) for one in made]


def _halved(program: Program, states: list[Numbers]) -> list[Numbers]:
    """The next level: an odd last one passes through."""
    while (n := len(states[0])) > 1:
        even = n - n % 2
        pairs = combined(program, [s[:even:2] for s in states], [s[1:even:2] for s in states])
        rest = [s[even:] for s in states]
        states = [np.concatenate(both) for both in zip(pairs, rest, strict=True)]
    return states


def fold(program: Program, streams: Sequence[Numbers]) -> list[Numbers]:
    """The root of the tree along the first axis, which is not empty."""
    count, nodes = len(streams[0]), []
    for first in range(0, count, BLOCK):
        leaves = lifted(program, [s[first : first + BLOCK] for s in streams], first)
        nodes.append(_halved(program, leaves))
    whole = [np.concatenate(slot) for slot in zip(*nodes, strict=True)]
    return [slot[0] for slot in _halved(program, whole)]


def neutral(program: Program, shape: tuple[int, ...]) -> list[Numbers]:
    assert program.identity is not None
    made = numbers(program.identity, lambda node: np.asarray(0))
    return [np.broadcast_to(one, shape) for one in made]


def finished(program: Program, root: Sequence[Numbers]) -> list[list[Numbers]]:
    """Of each result its numbers, NaN as the one of this library."""
    found = []
    for result in program.results:
        made = numbers(result.nodes, lambda node: root[int(node.detail or 0)])
        shape = np.shape(root[0])
        plain = [
            np.where(one != one, n.type.numpy.type(math.nan), one) if n.type in (F4, F8) else one
            for n, one in zip(result.nodes, made, strict=True)
        ]
        found.append([np.broadcast_to(one, shape) for one in plain])
    return found
