"""Python's expressions on values: what may stand in an operator, and what is refused by name."""

import ast
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpureduce.custom import python_calls as calls
from gpureduce.custom.errors import OperatorError, Slip
from gpureduce.custom.exact import Exact
from gpureduce.custom.expressions import Maybe, Record, conjugate
from gpureduce.custom.graph import Graph, Node
from gpureduce.custom.python_source import Meaning, Source, meaning_of
from gpureduce.custom.scalars import kind_of
from gpureduce.custom.state import Array
from gpureduce.custom.values import Complex, Maker, Weak, weak

TURNS_MOST = 10_000
CHOICES_MOST = 100_000
_SAID = {
    ast.Import: "an import", ast.ImportFrom: "an import", ast.While: "a while loop",
    ast.Try: "try", ast.With: "with", ast.FunctionDef: "a function inside", ast.Lambda: "a lambda",
    ast.ClassDef: "a class", ast.Global: "global", ast.Nonlocal: "nonlocal", ast.Raise: "raise",
    ast.Assert: "assert", ast.Delete: "del", ast.Yield: "yield", ast.YieldFrom: "yield",
    ast.Await: "await", ast.JoinedStr: "a string", ast.Set: "a set", ast.DictComp: "a dict",
    ast.SetComp: "a set", ast.Starred: "a star", ast.NamedExpr: ":=", ast.Slice: "a slice",
    ast.AsyncFor: "async", ast.AsyncWith: "async", ast.Break: "break", ast.Continue: "continue",
}  # fmt: skip
_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&",
           ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"}  # fmt: skip
_COMPARED = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


class Tuple(tuple[Any, ...]):
    """Several values: a state that is given back, or the elements of an array."""

    __slots__ = ()


class Expressions:
    """What the names of a function stand for, and what its expressions come to."""

    def __init__(self, source: Source, graph: Graph, names: dict[str, Any]):
        self.source, self.names = source, names
        self.maker = Maker(graph, as_numpy=True)
        self.turns = self.steps = self.choices = 0

    def tried(self, node: ast.AST, make: Callable[..., Any], *args: Any) -> Any:
        try:
            return make(*args)
        except Slip as slip:
            raise self.source.wrong(node, str(slip)) from None

    def refused(self, node: ast.AST) -> OperatorError:
        said = _SAID.get(type(node), type(node).__name__)
        return self.source.wrong(node, f"{said} has no place in an operator")

    def assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            parts = self.parts(target, value)
            if len(parts) != len(target.elts):
                raise self.source.wrong(target, f"{len(parts)} values for {len(target.elts)} names")
            for one, part in zip(target.elts, parts, strict=True):
                self.assign(one, part)
        else:
            raise self.source.wrong(target, "only names can be assigned: states do not change")

    def parts(self, node: ast.AST, value: Any) -> tuple[Any, ...]:
        if isinstance(value, Tuple):
            return value
        if isinstance(value, Record):
            return tuple(value.fields.values())
        if isinstance(value, Array):
            return tuple(_rows(value))
        if not _is_number(value):
            raise self.source.wrong(node, "this is no tuple of numbers")
        raise self.source.wrong(node, "this is one number, and cannot be taken apart")

    def merged(self, node: ast.AST, condition: Node, yes: Any, no: Any) -> Any:
        if yes is no:
            return yes
        self.choices += 1
        if self.choices > CHOICES_MOST:
            raise self.source.wrong(node, f"more than {CHOICES_MOST} numbers to choose from")
        if yes is None or no is None or isinstance(yes, Maybe) or isinstance(no, Maybe):
            return Maybe()
        if isinstance(yes, dict) and isinstance(no, dict) and list(yes) == list(no):
            return {name: self.merged(node, condition, yes[name], no[name]) for name in yes}
        if isinstance(yes, Tuple | Record | Array) or isinstance(no, Tuple | Record | Array):
            a, b = self.parts(node, yes), self.parts(node, no)
            if len(a) != len(b):
                raise self.source.wrong(node, "the two ways give different numbers of values")
            pairs = zip(a, b, strict=True)
            return Tuple(self.merged(node, condition, x, y) for x, y in pairs)
        if not _is_number(yes) or not _is_number(no):
            raise self.source.wrong(
                node, "the two ways give what cannot be chosen from: no numbers"
            )
        return self.tried(node, self.maker.select, condition, yes, no)

    def turned(self, e: ast.expr) -> Sequence[Any]:
        """What a loop goes over: all of it is known."""
        items = self.parts(e, self.value(e))
        self.turns += len(items)
        if self.turns > TURNS_MOST:
            raise self.source.wrong(e, f"more than {TURNS_MOST} turns of loops")
        return items

    def number(self, e: ast.expr) -> Any:
        value = self.value(e)
        if not _is_number(value):
            raise self.source.wrong(e, "a number is expected here")
        return value

    def constant(self, e: ast.expr) -> int:
        value = self.value(e)
        if isinstance(value, Weak) and type(value.number) is int:
            return value.number
        raise self.source.wrong(e, "an index or a length is a whole number that is known")

    def value(self, e: ast.expr) -> Any:
        method = getattr(self, f"_{type(e).__name__.lower()}", None)
        if method is None:
            raise self.refused(e)
        return method(e)

    def _constant(self, e: ast.Constant) -> Weak:
        if not isinstance(e.value, bool | int | float | complex):
            raise self.source.wrong(e, f"{e.value!r} is no number")
        return self.tried(e, weak, e.value)  # type: ignore[no-any-return]

    def _name(self, e: ast.Name) -> Any:
        if e.id in self.names:
            value = self.names[e.id]
            if isinstance(value, Maybe):
                raise self.source.wrong(e, f"{e.id} is assigned on one way alone")
            return value
        return self.meant(e, self.source.names.get(e.id), e.id)

    def meant(self, e: ast.AST, meaning: Meaning | None, name: str) -> Any:
        if meaning is None:
            raise self.source.wrong(e, f"there is no {name} here")
        if meaning.sort == "itself":
            raise self.source.wrong(e, f"{name} calls itself: an operator cannot")
        if meaning.sort == "unknown":
            raise self.source.wrong(e, f"{name} is a {meaning.of}, which an operator cannot use")
        if meaning.sort == "number":
            return self.tried(e, self.literal, meaning.of)
        if meaning.sort == "array":
            return self.tried(e, self.held, meaning.of)
        return meaning

    def literal(self, number: Any) -> Any:
        """A number of NumPy's has its type; one of Python's has none of its own."""
        if not isinstance(number, np.generic):
            return weak(number)
        kind = kind_of(number.dtype)
        assert kind
        plain = float(number) if kind.part.name == "bf16" else number.item()
        return self.maker.to(Weak(plain), kind._replace(part=kind.part))

    def held(self, values: Any) -> Tuple:
        return Tuple(self.literal(v) if np.ndim(v) == 0 else self.held(v) for v in values)

    def _attribute(self, e: ast.Attribute) -> Any:
        of = self.value(e.value)
        if isinstance(of, Record):
            if e.attr in of.fields:
                return of.fields[e.attr]
            known = ", ".join(of.fields)
            raise self.source.wrong(e, f"{of.name} has no field {e.attr}; it has {known}")
        if isinstance(of, Meaning) and of.sort == "module":
            module = np if of.of == "numpy" else __import__("math")
            if not hasattr(module, e.attr):
                raise self.source.wrong(e, f"{of.of} has no {e.attr}")
            meaning = meaning_of(getattr(module, e.attr))
            if meaning is None:
                raise self.source.wrong(e, f"{of.of}.{e.attr} is not known in operators")
            return self.meant(e, meaning, e.attr)
        if _is_number(of) and e.attr in ("real", "imag"):
            return self.tried(e, calls.call, self.maker, e.attr, [of])
        raise self.source.wrong(e, f".{e.attr} is not known here")

    def _subscript(self, e: ast.Subscript) -> Any:
        of: Any = self.value(e.value)
        inner = e.slice.elts if isinstance(e.slice, ast.Tuple) else [e.slice]
        for one in inner:
            at, items = self.constant(one), self.parts(e.value, of)
            if not -len(items) <= at < len(items):
                raise self.source.wrong(
                    one, f"there is no element {at}: the length is {len(items)}"
                )
            of = items[at]
        return of

    def _tuple(self, e: ast.Tuple | ast.List) -> Tuple:
        return Tuple(self.value(one) for one in e.elts)

    _list = _tuple

    def _dict(self, e: ast.Dict) -> dict[str, Any]:
        found = {}
        for key, value in zip(e.keys, e.values, strict=True):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                raise self.source.wrong(e, "the names of results are strings")
            found[key.value] = self.value(value)
        return found

    def _listcomp(self, e: ast.ListComp | ast.GeneratorExp) -> Tuple:
        if len(e.generators) != 1 or e.generators[0].ifs:
            raise self.source.wrong(e, "one for, without if")
        found, before = [], dict(self.names)
        for item in self.turned(e.generators[0].iter):
            self.assign(e.generators[0].target, item)
            found.append(self.value(e.elt))
        self.names = before
        return Tuple(found)

    _generatorexp = _listcomp

    def _ifexp(self, e: ast.IfExp) -> Any:
        condition = self.tried(e.test, self.maker.truth, self.number(e.test))
        if condition.op == "const":
            return self.value(e.body if condition.detail else e.orelse)
        return self.merged(e, condition, self.value(e.body), self.value(e.orelse))

    def _unaryop(self, e: ast.UnaryOp) -> Any:
        x = self.number(e.operand)
        if isinstance(e.op, ast.UAdd):
            return x
        if isinstance(x, Weak) and isinstance(e.op, ast.Not | ast.Invert):
            whole = isinstance(e.op, ast.Not) or isinstance(x.number, int)
            if not whole:
                raise self.source.wrong(e, "~ is for integers")
            return Weak(not x.number if isinstance(e.op, ast.Not) else ~x.number)  # type: ignore[operator]
        method = {ast.USub: self.maker.negative, ast.Not: self.maker.negated}.get(type(e.op))
        return self.tried(e, method or self.maker.inverted, x)

    def _binop(self, e: ast.BinOp) -> Any:
        return self.operation(e, e.op, self.number(e.left), self.number(e.right))

    def operation(self, e: ast.AST, op: ast.operator, x: Any, y: Any) -> Any:
        if isinstance(op, ast.Pow):
            return self.tried(e, calls.power, self.maker, x, y)
        if isinstance(op, ast.FloorDiv | ast.Mod):
            both = self.tried(e, calls.floor_division, self.maker, x, y)
            return both[isinstance(op, ast.Mod)]
        if type(op) not in _BINARY:
            raise self.refused(op if hasattr(op, "lineno") else e)
        return self.tried(e, self.maker.binary, _BINARY[type(op)], x, y)

    def _boolop(self, e: ast.BoolOp) -> Any:
        found = self.number(e.values[0])
        for one in e.values[1:]:
            other, is_and = self.number(one), isinstance(e.op, ast.And)
            truth = self.tried(e, self.maker.truth, found)
            pair = (other, found) if is_and else (found, other)
            if all(not isinstance(v, Weak) and self.maker.kind(v).part.kind == "b" for v in pair):
                found = (self.maker.both if is_and else self.maker.either)(found, other)
            else:
                found = self.tried(e, self.maker.select, truth, *pair)
        return found

    def _compare(self, e: ast.Compare) -> Any:
        left, found = self.number(e.left), None
        for op, right_e in zip(e.ops, e.comparators, strict=True):
            if type(op) not in _COMPARED:
                raise self.source.wrong(e, "in and is have no place in an operator")
            right = self.number(right_e)
            one = self.tried(e, self.maker.binary, _COMPARED[type(op)], left, right)
            found = one if found is None else self.maker.both(found, one)
            left = right
        return found

    def _call(self, e: ast.Call) -> Any:
        if e.keywords:
            raise self.source.wrong(e, "arguments by keyword have no place in an operator")
        if isinstance(e.func, ast.Attribute) and e.func.attr in ("conjugate", "conj"):
            of = self.value(e.func.value)
            if _is_number(of):
                return self.tried(e, conjugate, self.maker, of)
        function = self.value(e.func)
        if not isinstance(function, Meaning) or function.sort not in ("function", "type"):
            raise self.source.wrong(e, "this is no function")
        if function.of == "range":
            return self.range(e)
        args = [self.value(arg) for arg in e.args]
        if function.of == "tuple" and len(args) == 1:
            return Tuple(self.parts(e, args[0]))
        if function.of == "sum" and len(args) == 1:
            return self.total(e, self.parts(e, args[0]))
        if len(args) == 1 and function.of in ("min", "max") and isinstance(args[0], Tuple):
            args = list(args[0])
        if function.of == "pow" and len(args) == 2:
            return self.tried(e, calls.power, self.maker, *args)
        if function.sort == "type":
            kind = kind_of(np.dtype(function.of))
            if len(args) != 1 or not _is_number(args[0]):
                raise self.source.wrong(e, "a type takes one number")
            return self.tried(e, calls.cast, self.maker, args[0], kind)
        return self.tried(e, calls.call, self.maker, function.of, args)

    def range(self, e: ast.Call) -> Tuple:
        try:
            numbers = range(*map(self.constant, e.args))
        except (TypeError, ValueError) as error:
            raise self.source.wrong(e, str(error)) from None
        if len(numbers[: TURNS_MOST + 1]) > TURNS_MOST:
            raise self.source.wrong(e, f"more than {TURNS_MOST} turns of loops, or so long a range")
        return Tuple(map(Weak, numbers))

    def total(self, e: ast.AST, items: Sequence[Any]) -> Any:
        found: Any = Weak(0)
        for item in items:
            found = self.tried(e, self.maker.binary, "+", found, item)
        return found


def _is_number(value: Any) -> bool:
    return isinstance(value, Node | Complex | Weak | Exact)


def _rows(array: Array) -> list[Any]:
    if len(array.shape) == 1:
        return list(array.items)
    n = array.shape[1]
    return [Array((n,), array.items[at : at + n]) for at in range(0, len(array.items), n)]


def flat(value: Any) -> list[Any]:
    """The numbers of nested tuples and arrays."""
    if isinstance(value, Tuple):
        return [x for one in value for x in flat(one)]
    if isinstance(value, Array):
        return list(value.items)
    return [value]
