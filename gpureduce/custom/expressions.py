"""Expressions of an operator's text as nodes of its graph: names and types are told apart here."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gpureduce.custom import grammar as g
from gpureduce.custom.errors import Slip
from gpureduce.custom.functions import CONSTANTS, FLOAT_CONSTANTS, in_c
from gpureduce.custom.graph import Graph, Node
from gpureduce.custom.literals import first_that_holds, number_of
from gpureduce.custom.scalars import ALL, BOOL, F4, F8, I4, I8, U4, U8, Kind, read_as
from gpureduce.custom.scan import Text, Token
from gpureduce.custom.state import Array, Field, Held
from gpureduce.custom.values import Complex, Maker, Value

KINDS = {**{name: Kind(s) for name, s in ALL.items()}, "c8": Kind(F4, True), "c16": Kind(F8, True)}


class Record(NamedTuple):
    """One of the two states."""

    name: str
    fields: Mapping[str, Held]


class Scope(NamedTuple):
    """What a text may know: names that are given, and those that are its results."""

    given: Mapping[str, "Held | Record"]
    results: Sequence[Field] = ()
    field_names: str = ""  # of the state, for messages


class Maybe(NamedTuple):
    """What only one branch assigned."""


class Expressions:
    """What the names of a text stand for, and what its expressions come to."""

    def __init__(self, source: Text, graph: Graph, scope: Scope):
        self.source, self.scope = source, scope
        self.maker = Maker(graph)
        self.graph = graph
        self.results = {field.name: field for field in scope.results}
        self.names: dict[str, Any] = {}
        self.types: dict[str, tuple[Kind, tuple[int, ...]]] = {}
        self.declared: list[list[str]] = [[]]
        self.turns = 0

    def wrong(self, at: Token, message: str) -> Exception:
        return self.source.wrong(at, message)

    def tried(self, at: Token, make: Callable[..., Any], *args: Any) -> Any:
        """make(*args), its slips told at that place."""
        try:
            return make(*args)
        except Slip as slip:
            raise self.wrong(at, str(slip)) from None

    def constant(self, e: g.Expression) -> int:
        node = self.real(e)
        if not isinstance(node, Node) or node.op != "const" or not isinstance(node.detail, int):
            raise self.wrong(e.at, "an index or length is a constant or the variable of a loop")
        return int(node.detail)

    def real(self, e: g.Expression) -> Value:
        value = self.value(e)
        if isinstance(value, Array):
            raise self.wrong(e.at, "this is an array: take one element of it")
        return value  # type: ignore[no-any-return]

    def value(self, e: g.Expression) -> Any:
        method = getattr(self, f"_{type(e).__name__.lower()}")
        return method(e)

    def operand(self, e: g.Expression) -> Value:
        return self.real(e)

    def _number(self, e: g.Number) -> Value:
        try:
            return number_of(self.graph, e.at.text)
        except Slip as slip:
            raise self.wrong(e.at, str(slip)) from None

    def _name(self, e: g.Name) -> Any:
        name = e.at.text
        held = self.names.get(name)
        if isinstance(held, Maybe):
            raise self.wrong(e.at, f"{name} is assigned in one branch alone")
        if held is not None:
            return self.read(held)
        if name in self.results or name in self.types:
            raise self.wrong(e.at, f"{name} is read before it is assigned")
        given = self.scope.given.get(name)
        if isinstance(given, Record):
            raise self.wrong(e.at, f"{name} is a state: its fields are {self.scope.field_names}")
        if given is not None:
            return given
        if name == "I":
            return Complex(self.graph.const(0, F4), self.graph.const(1, F4))
        if name in CONSTANTS:
            return self.named_constant(name)
        is_function = in_c(name) or name in OWN
        message = f"{name} is a function" if is_function else f"there is no {name} here"
        raise self.wrong(e.at, message + ("" if is_function else self.known()))

    def read(self, held: Held) -> Held:
        """A field of 16-bit floats is widened when it is read back."""
        if isinstance(held, Node):
            return self.graph.cast(held, read_as(held.type))
        return held

    def known(self) -> str:
        names = [*self.scope.given, *(n for n, v in self.names.items() if v is not None)]
        return f"; there is {', '.join(names)}" if names else ""

    def named_constant(self, name: str) -> Node:
        value = CONSTANTS[name]
        if isinstance(value, bool):
            return self.graph.const(value, BOOL)
        if isinstance(value, int):
            return self.graph.const(value, first_that_holds(value, [I4, U4, I8, U8]))
        return self.graph.const(value, F4 if name in FLOAT_CONSTANTS else F8)

    def _member(self, e: g.Member) -> Any:
        if isinstance(e.of, g.Name):
            record = self.scope.given.get(e.of.at.text)
            if isinstance(record, Record):
                if e.field in record.fields:
                    return record.fields[e.field]
                raise self.wrong(
                    e.at, f"{record.name} has no field {e.field}; it has {self.scope.field_names}"
                )
            self.value(e.of)
        raise self.wrong(e.at, "only the states a and b have fields")

    def indexed(self, e: g.Expression) -> tuple[g.Expression, list[int]]:
        """What an element is of, and its indices."""
        indices: list[int] = []
        while isinstance(e, g.Element):
            indices.insert(0, self.constant(e.place))
            e = e.of
        return e, indices

    def places(self, e: g.Expression) -> tuple[Token, str, list[int]]:
        """The array's name and the indices of an element of it."""
        e, indices = self.indexed(e)
        if not isinstance(e, g.Name):
            raise self.wrong(e.at, "this cannot be assigned")
        return e.at, e.at.text, indices

    def flat(self, at: Token, name: str, shape: tuple[int, ...], indices: Sequence[int]) -> int:
        if len(indices) != len(shape):
            what = f"{len(shape)} dimensions" if shape else "no dimension: it is a number"
            raise self.wrong(at, f"{name} has {what}, and is given {len(indices)} indices")
        flat = 0
        for index, length in zip(indices, shape, strict=True):
            if not 0 <= index < length:
                raise self.wrong(at, f"{name} has no element {index}: its length is {length}")
            flat = flat * length + index
        return flat

    def _element(self, e: g.Element) -> Value:
        of, indices = self.indexed(e)
        held = self.value(of)
        name = of.field if isinstance(of, g.Member) else of.at.text
        if not isinstance(held, Array):
            raise self.wrong(of.at, f"{name} is no array")
        item = held.items[self.flat(of.at, name, held.shape, indices)]
        if item is None or isinstance(item, Maybe):
            raise self.wrong(of.at, f"this element of {name} is read before it is assigned")
        return self.read(item)  # type: ignore[return-value]

    def _unary(self, e: g.Unary) -> Value:
        x = self.operand(e.operand)
        if e.at.text == "+":
            return x if isinstance(x, Complex) else self.maker.plus(self.maker.real(x, "+"))
        method = {"-": self.maker.negative, "~": self.maker.inverted, "!": self.maker.negated}
        return self.tried(e.at, method[e.at.text], x)  # type: ignore[no-any-return]

    def _binary(self, e: g.Binary) -> Value:
        x, y = self.operand(e.left), self.operand(e.right)
        op = e.at.text
        if op in ("&&", "||"):
            method = self.maker.both if op == "&&" else self.maker.either
            return self.tried(e.at, method, x, y)  # type: ignore[no-any-return]
        return self.tried(e.at, self.maker.binary, op, x, y)  # type: ignore[no-any-return]

    def _choice(self, e: g.Choice) -> Value:
        condition = self.operand(e.condition)
        yes, no = self.operand(e.yes), self.operand(e.no)
        return self.tried(e.at, self.maker.select, condition, yes, no)  # type: ignore[no-any-return]

    def _cast(self, e: g.Cast) -> Value:
        x, kind = self.operand(e.operand), KINDS[e.type]
        if isinstance(x, Complex) and not kind.is_complex:
            x = self.maker.truth(x) if kind.part is BOOL else x.re
        return self.tried(e.at, self.maker.to, x, kind)  # type: ignore[no-any-return]

    def _call(self, e: g.Call) -> Value:
        args = [self.operand(arg) for arg in e.args]
        if e.name in OWN:
            arity, make = OWN[e.name]
            if len(args) != arity:
                raise self.wrong(e.at, f"{e.name} takes {arity} arguments, not {len(args)}")
            return self.tried(e.at, make, self.maker, *args)  # type: ignore[no-any-return]
        named = in_c(e.name)
        if not named:
            known = "it calls itself" if e.name in ("combine", "lift", "finish", "identity") else ""
            message = known or f"there is no function {e.name} here: math.h's are"
            raise self.wrong(e.at, message)
        type_ = F4 if named.is_single else F8
        if named.function.startswith("is") or named.function == "signbit":
            type_ = F4 if args and self.tried(e.at, self.maker.kind, args[0]).part is F4 else F8
        return self.tried(e.at, self.maker.call, named.function, type_, args)  # type: ignore[no-any-return]


# --- functions of the texts' own ------------------------------------------------------------------


def part(place: int) -> Callable[[Maker, Value], Value]:
    def take(maker: Maker, x: Value) -> Value:
        x = maker.strong(x)
        if isinstance(x, Complex):
            return x[place]
        return maker.graph.const(0, x.type) if place else x

    return take


def conjugate(maker: Maker, x: Value) -> Value:
    x = maker.strong(x)
    return Complex(x.re, maker.real(maker.negative(x.im), "conj")) if isinstance(x, Complex) else x


OWN: dict[str, tuple[int, Callable[..., Value]]] = {
    "min": (2, lambda maker, x, y: maker.extreme("<", x, y)),
    "max": (2, lambda maker, x, y: maker.extreme(">", x, y)),
    "abs": (1, Maker.absolute),
    "labs": (1, Maker.absolute),
    "cabs": (1, Maker.absolute),
    "creal": (1, part(0)),
    "cimag": (1, part(1)),
    "conj": (1, conjugate),
}
