"""Values of a calculation and what may be done with them: real numbers are nodes of a graph,
complex ones pairs of them. C's rules of types, or NumPy's for operators written in Python."""

import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from gpureduce.custom import exact
from gpureduce.custom.errors import Slip
from gpureduce.custom.exact import Exact
from gpureduce.custom.functions import FUNCTIONS
from gpureduce.custom.graph import (
    ARITHMETIC,
    BITWISE,
    COMPARISONS,
    SHIFTS,
    Constant,
    Graph,
    Node,
    wrapped,
)
from gpureduce.custom.scalars import (
    BOOL,
    F8,
    I4,
    I8,
    U8,
    Kind,
    Scalar,
    promoted_as_c,
    promoted_as_numpy,
)


class Complex(NamedTuple):
    re: Node
    im: Node


class Weak(NamedTuple):
    """A number of Python, which takes the type of what it meets, as in NumPy 2."""

    number: bool | int | float | complex


WEAK_BITS = 4096  # of an integer


def weak(number: bool | int | float | complex) -> Weak:
    """Integers that grow without end would take all time and memory there are."""
    if isinstance(number, int) and number.bit_length() > WEAK_BITS:
        raise Slip(f"this is an integer of more than {WEAK_BITS} bits")
    return Weak(number)


Value: TypeAlias = Node | Complex | Weak | Exact


class Maker:
    """Makes nodes of operations on values."""

    def __init__(self, graph: Graph, as_numpy: bool = False):
        self.graph = graph
        self.as_numpy = as_numpy

    # --- types ----------------------------------------------------------------------------------

    def kind(self, x: Value) -> Kind:
        if isinstance(x, Exact):
            return Kind(x.part, is_exact=True)
        x = self.strong(x)
        return Kind(x.re.type, True) if isinstance(x, Complex) else Kind(x.type)

    def strong(self, x: Value) -> Node | Complex:
        """A weak number by itself is int64, double or complex128; an exact sum is rounded."""
        if isinstance(x, Exact):
            return exact.rounded(self.graph, x)
        if not isinstance(x, Weak):
            return x
        if isinstance(x.number, bool):
            return self.graph.const(x.number, BOOL)
        if isinstance(x.number, int):
            if not -(2**63) <= x.number < 2**64:
                raise Slip(f"{x.number} is too large for an integer of 64 bits")
            return self.graph.const(x.number, I8 if x.number < 2**63 else U8)
        if isinstance(x.number, complex):
            parts = (self.graph.const(part, F8) for part in (x.number.real, x.number.imag))
            return Complex(*parts)
        return self.graph.const(x.number, F8)

    def real(self, x: Value, what: str) -> Node:
        x = self.strong(x)
        if isinstance(x, Complex):
            raise Slip(f"{what} is for real numbers, and this one is complex")
        return x

    def to(self, x: Value, kind: Kind) -> Node | Complex | Exact:
        """As an assignment to that type converts it."""
        return self.sum_of(x, kind) if kind.is_exact else self.plain(x, kind)

    def sum_of(self, x: Value, kind: Kind) -> Exact:
        """A number as an exact sum of one."""
        if not isinstance(x, Exact):
            number = self.plain(x, Kind(kind.part))
            assert isinstance(number, Node)
            return exact.deposited(self.graph, number)
        if x.part is not kind.part:
            raise Slip(f"an exact {x.part.name} and an exact {kind.part.name} do not go together")
        return x

    def plain(self, x: Value, kind: Kind) -> Node | Complex:
        if isinstance(x, Weak) and kind.part.kind in "fh" and not isinstance(x.number, complex):
            try:
                node = self.graph.const(float(x.number), F8)
            except OverflowError:
                raise Slip("an integer is too large for a float") from None
            if kind.part.is_float:
                node = self.graph.cast(node, kind.part)
            x = node
        x = self.strong(x)
        if kind.is_complex:
            pair = x if isinstance(x, Complex) else Complex(x, self.graph.const(0, x.type))
            return Complex(*(self.graph.cast(part, kind.part) for part in pair))
        if isinstance(x, Complex):
            raise Slip("a complex number does not fit a real one: take creal() or cimag() of it")
        return self.graph.cast(x, kind.part)

    def _join(self, x: Node, y: Node) -> Scalar:
        if self.as_numpy:
            return promoted_as_numpy(x.type, y.type)
        return promoted_as_c(x.type, y.type)

    def _weak_as(self, x: Weak, other: Kind) -> Node | Complex:
        """The number in the type of the other operand, if that holds numbers of its sort."""
        part, number = other.part, x.number
        if isinstance(number, complex):
            return self.plain(x, Kind(part if part.is_float else F8, True))
        if isinstance(number, bool) or part is BOOL:
            return self.strong(x)
        if isinstance(number, float):
            return self.plain(x, Kind(part)) if part.is_float else self.strong(x)
        if not part.is_float and wrapped(number, part) != number:
            raise Slip(f"{number} does not fit {part.c}, the type that it meets")
        return self.plain(x, Kind(part))

    def pair(self, x: Value, y: Value) -> tuple[Node | Complex, Node | Complex]:
        """Both in their common type."""
        if isinstance(x, Weak) and not isinstance(y, Weak):
            x = self._weak_as(x, self.kind(y))
        elif isinstance(y, Weak) and not isinstance(x, Weak):
            y = self._weak_as(y, self.kind(x))
        x, y = self.strong(x), self.strong(y)
        is_complex = isinstance(x, Complex) or isinstance(y, Complex)
        a, b = (v.re if isinstance(v, Complex) else v for v in (x, y))
        joined = self._join(a, b)
        if is_complex and not joined.is_float:
            joined = F8
        return self.plain(x, Kind(joined, is_complex)), self.plain(y, Kind(joined, is_complex))

    # --- operations -----------------------------------------------------------------------------

    def binary(self, op: str, x: Value, y: Value) -> Value:
        if isinstance(x, Weak) and isinstance(y, Weak):
            folded = _of_weak(op, x.number, y.number)
            if folded is not None:
                return weak(folded)
        if op in ("+", "-") and (isinstance(x, Exact) or isinstance(y, Exact)):
            kind = self.kind(x if isinstance(x, Exact) else y)
            return exact.added(
                self.graph, ARITHMETIC[op], self.sum_of(x, kind), self.sum_of(y, kind)
            )
        if op in SHIFTS:
            return self._shift(op, x, y)
        a, b = self.pair(x, y)
        if isinstance(a, Complex) or isinstance(b, Complex):
            assert isinstance(a, Complex) and isinstance(b, Complex)
            return self._complex(op, a, b)
        if op in COMPARISONS:
            return self.graph.binary(COMPARISONS[op], a, b, BOOL)
        if op in BITWISE:
            if a.type.is_float:
                raise Slip(f"{op} is for integers, and these are {a.type.c}")
            return self.graph.binary(BITWISE[op], a, b, a.type)
        if a.type is BOOL:
            a, b = (self.graph.cast(v, I8 if self.as_numpy else I4) for v in (a, b))
        if op == "/" and self.as_numpy and not a.type.is_float:
            a, b = (self.graph.cast(v, F8) for v in (a, b))
        if op == "%" and a.type.is_float:
            raise Slip("% is for integers: take fmod() of floats")
        return self.graph.binary(ARITHMETIC[op], a, b, a.type)

    def _shift(self, op: str, x: Value, y: Value) -> Node:
        if self.as_numpy:
            a, b = (self.real(v, op) for v in self.pair(x, y))
        else:
            a, b = (self.plus(self.real(v, op)) for v in (x, y))
        if a.type.is_float or b.type.is_float:
            raise Slip(f"{op} is for integers")
        return self.graph.node(SHIFTS[op], a.type, (a, self.graph.cast(b, I8)))

    def _complex(self, op: str, x: Complex, y: Complex) -> Value:
        def two(name: str, a: Node, b: Node) -> Node:
            return self.graph.binary(name, a, b, a.type)

        if op in ("+", "-"):
            return Complex(*(two(ARITHMETIC[op], a, b) for a, b in zip(x, y, strict=True)))
        if op == "*":
            return Complex(
                two("sub", two("mul", x.re, y.re), two("mul", x.im, y.im)),
                two("add", two("mul", x.re, y.im), two("mul", x.im, y.re)),
            )
        if op == "/":
            return self._quotient(x, y)
        if op in ("==", "!="):
            same = [self.binary("==", a, b) for a, b in zip(x, y, strict=True)]
            both = self.both(*same)
            return both if op == "==" else self.negated(both)
        raise Slip(f"{op} is not for complex numbers")

    def _quotient(self, x: Complex, y: Complex) -> Complex:
        """By Smith's method, as NumPy's."""
        g, type_ = self.graph, x.re.type
        flat = g.binary("ge", self.absolute(y.re), self.absolute(y.im), BOOL)
        large, small = g.select(flat, y.re, y.im), g.select(flat, y.im, y.re)
        ratio = g.node("div", type_, (small, large))
        scale = g.node("add", type_, (large, g.node("mul", type_, (small, ratio))))
        first, second = g.select(flat, x.re, x.im), g.select(flat, x.im, x.re)
        re = g.node("add", type_, (first, g.node("mul", type_, (second, ratio))))
        scaled = g.node("mul", type_, (x.re, ratio)), g.node("mul", type_, (x.im, ratio))
        im = g.select(
            flat,
            g.node("sub", type_, (x.im, scaled[0])),
            g.node("sub", type_, (scaled[1], x.re)),
        )
        return Complex(g.node("div", type_, (re, scale)), g.node("div", type_, (im, scale)))

    def plus(self, x: Node) -> Node:
        """C's promotion of what is smaller than int."""
        if not self.as_numpy and not x.type.is_float and (x.type.bits < 32 or x.type is BOOL):
            return self.graph.cast(x, I4)
        return x

    def negative(self, x: Value) -> Value:
        if isinstance(x, Exact):
            return exact.negative(self.graph, x)
        if isinstance(x, Weak):
            return Weak(-x.number)
        if isinstance(x, Complex):
            return Complex(*(self.graph.node("neg", part.type, (part,)) for part in x))
        x = self.plus(x)
        if x.type is BOOL:
            x = self.graph.cast(x, I8)
        if x.op == "const":
            return self.graph.const(-x.detail, x.type)  # type: ignore[operator]
        return self.graph.node("neg", x.type, (x,))

    def inverted(self, x: Value) -> Node:
        node = self.plus(self.real(x, "~"))
        if node.type.is_float:
            raise Slip("~ is for integers")
        if node.type is BOOL:
            return self.negated(node)
        return self.graph.node("not", node.type, (node,))

    # --- truth ----------------------------------------------------------------------------------

    def truth(self, x: Value) -> Node:
        x = self.strong(x)
        if isinstance(x, Complex):
            parts = [self.truth(part) for part in x]
            return self.graph.node("or", BOOL, parts)
        if x.type is BOOL:
            return x
        return self.graph.binary("ne", x, self.graph.const(0, x.type), BOOL)

    def both(self, x: Value, y: Value) -> Node:
        return self._logic("and", x, y)

    def either(self, x: Value, y: Value) -> Node:
        return self._logic("or", x, y)

    def _logic(self, op: str, x: Value, y: Value) -> Node:
        a, b = self.truth(x), self.truth(y)
        for one, other in ((a, b), (b, a)):
            if one.op == "const":
                return other if bool(one.detail) == (op == "and") else one
        return self.graph.node(op, BOOL, (a, b))

    def negated(self, x: Value) -> Node:
        truth = self.truth(x)
        if truth.op == "const":
            return self.graph.const(not truth.detail, BOOL)
        return self.graph.node("lnot", BOOL, (truth,))

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        truth = self.truth(condition)
        if isinstance(x, Exact) or isinstance(y, Exact):
            kind = self.kind(x if isinstance(x, Exact) else y)
            sums = self.sum_of(x, kind), self.sum_of(y, kind)
            return exact.by_parts(self.graph, lambda a, b: self.graph.select(truth, a, b), *sums)
        if isinstance(x, Weak) and isinstance(y, Weak) and repr(x.number) == repr(y.number):
            return x
        if isinstance(x, Node) and isinstance(y, Node) and x.type is y.type:
            return self.graph.select(truth, x, y)
        a, b = self.pair(x, y)
        if isinstance(a, Complex) and isinstance(b, Complex):
            parts = zip(a, b, strict=True)
            return Complex(*(self.graph.select(truth, p, q) for p, q in parts))
        assert isinstance(a, Node) and isinstance(b, Node)
        return self.graph.select(truth, a, b)

    # --- functions ------------------------------------------------------------------------------

    def call(self, name: str, type_: Scalar, args: Sequence[Value]) -> Node:
        """A function of FUNCTIONS on floats of that type."""
        function = FUNCTIONS[name]
        if len(args) != function.arity:
            raise Slip(f"{name} takes {function.arity} arguments, not {len(args)}")
        nodes = []
        for place, arg in enumerate(args):
            node = self.plain(arg, Kind(I4 if place in function.integers else type_))
            assert isinstance(node, Node)
            nodes.append(node)
        if all(map(_is_whole, nodes)):
            if name in _KEEP_WHOLE:
                return nodes[0]
            if name in ("fmin", "fmax"):
                x, y = nodes
                is_more = self.graph.binary("lt" if name == "fmin" else "gt", y, x, BOOL)
                return self.graph.select(is_more, y, x)
        return self.graph.node("call", function.result or type_, nodes, name)

    def absolute(self, x: Value) -> Node:
        x = self.strong(x)
        if isinstance(x, Complex):
            return self.call("hypot", x.re.type, list(x))
        if x.type.is_float:
            return self.call("fabs", x.type, [x])
        x = self.plus(x)
        if x.type.kind != "i":
            return x
        below = self.graph.binary("lt", x, self.graph.const(0, x.type), BOOL)
        return self.graph.select(below, self.real(self.negative(x), "abs"), x)

    def extreme(self, op: str, x: Value, y: Value) -> Value:
        """y if y op x, else x: what stands first of equal ones."""
        return self.select(self.binary(op, y, x), y, x)


_KEEP_WHOLE = ("floor", "ceil", "trunc", "rint", "round")


def _is_whole(node: Node) -> bool:
    """An integer as a float, which is neither NaN nor -0.0: what tells these apart makes branches
    of which no vectors come."""
    if node.op == "cast":
        return not node.args[0].type.is_float
    return node.op == "const" and repr(node.detail) != "-0.0" and _has_no_fraction(node.detail)


def _has_no_fraction(value: object) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


_WEAK: dict[str, Callable[..., Constant | None]] = {
    **{sign: getattr(operator, name) for sign, name in COMPARISONS.items()},
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": lambda x, y: x << y if 0 <= y < 64 else None,
    ">>": lambda x, y: x >> y if 0 <= y < 64 else None,
}


def _of_weak(op: str, x: object, y: object) -> Constant | None:
    """As Python reckons with its own numbers."""
    try:
        return _WEAK[op](x, y)
    except (TypeError, ZeroDivisionError, OverflowError) as error:
        raise Slip(f"{x!r} {op} {y!r}: {error}") from None
