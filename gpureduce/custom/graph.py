"""Calculations as a graph: each node is one operation on numbers, without loops, branches or
effects, so that C, C++ and NumPy can make the same of it. Equal nodes are one."""

import operator
from collections.abc import Callable, Iterable, Sequence

from gpureduce.custom.errors import Slip
from gpureduce.custom.scalars import BOOL, F4, Scalar

NODES_MOST = 20_000

Constant = bool | int | float


class Node:
    """op is "const", "input" (a leaf's number), "index", "a" or "b" (a state's), "cast", "select",
    "call", "bits" and "float" (of the same width), or an operator's name; detail is a constant, a
    place, or a function's name."""

    __slots__ = ("args", "detail", "op", "type")

    def __init__(
        self, op: str, type_: Scalar, args: tuple["Node", ...], detail: "Constant | str | None"
    ):
        self.op, self.type, self.args, self.detail = op, type_, args, detail


class Graph:
    """Makes nodes, each once."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Node] = {}

    def node(
        self,
        op: str,
        type_: Scalar,
        args: Iterable[Node] = (),
        detail: Constant | str | None = None,
    ) -> Node:
        operands = tuple(args)
        # repr: 0.0 is not -0.0, and NaN is itself
        key = (op, type_.name, tuple(map(id, operands)), repr(detail))
        if key not in self._known:
            if len(self._known) >= NODES_MOST:
                raise Slip(f"this is too long: more than {NODES_MOST} operations")
            self._known[key] = Node(op, type_, operands, detail)
        return self._known[key]

    def const(self, value: Constant, type_: Scalar) -> Node:
        if type_.kind == "b":
            return self.node("const", type_, (), bool(value))
        if type_.kind == "f":
            return self.node("const", type_, (), float(value))
        return self.node("const", type_, (), wrapped(int(value), type_))

    def cast(self, x: Node, type_: Scalar) -> Node:
        if x.type is type_:
            return x
        if x.type.kind == "h":
            return self.cast(self.node("widen", F4, (x,)), type_)
        if type_.kind == "h":
            return self.node("narrow", type_, (self.cast(x, x.type if x.type.is_float else F4),))
        if x.op == "const" and isinstance(x.detail, int) and type_.kind != "f":
            return self.const(x.detail, type_)
        if x.op == "const" and isinstance(x.detail, int) and abs(x.detail) <= 1 << 24:
            return self.const(float(x.detail), type_)
        return self.node("cast", type_, (x,))

    def select(self, condition: Node, x: Node, y: Node) -> Node:
        if x is y:
            return x
        if condition.op == "const":
            return x if condition.detail else y
        return self.node("select", x.type, (self.cast(condition, BOOL), x, y))

    def binary(self, op: str, x: Node, y: Node, type_: Scalar) -> Node:
        """Of operands of one type; of integer constants the constant."""
        if x.op == y.op == "const" and op in _FOLDED and not x.type.is_float:
            assert x.detail is not None and y.detail is not None
            return self.const(_FOLDED[op](int(x.detail), int(y.detail)), type_)
        return self.node(op, type_, (x, y))


COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "rem"}
BITWISE = {"&": "and", "|": "or", "^": "xor"}
SHIFTS = {"<<": "shl", ">>": "shr"}
_FOLDED: dict[str, Callable[[int, int], int]] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", *COMPARISONS.values())},
    "div": lambda x, y: (abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)) if y else 0,
    "rem": lambda x, y: (abs(x) % abs(y) * (-1 if x < 0 else 1)) if y else 0,
}


def wrapped(value: int, type_: Scalar) -> int:
    """As integers of that type wrap around."""
    value &= (1 << type_.bits) - 1
    return value - (1 << type_.bits) if type_.kind == "i" and value >> (type_.bits - 1) else value


def in_order(outputs: Sequence[Node]) -> list[Node]:
    """All nodes that the outputs need, operands first."""
    found: dict[Node, None] = {}
    waiting = [(node, False) for node in reversed(outputs)]
    while waiting:
        node, is_ready = waiting.pop()
        if is_ready:
            found[node] = None
        elif node not in found:
            waiting.append((node, True))
            waiting += [(arg, False) for arg in reversed(node.args)]
    return list(found)


# What nodes cost beside an addition, or so.
_COST = {"div": 12, "rem": 30, "call": 40}


def cost_of(outputs: Sequence[Node]) -> int:
    return sum(_COST.get(node.op, 1) for node in in_order(outputs))
