"""From the parts of an operator's text to its graph: names, types, loops unrolled, branches as
choices. All that is wrong is told here, so that a compiler never sees it."""

from collections.abc import Sequence
from typing import Any

from gpureduce.custom import grammar as g
from gpureduce.custom.expressions import KINDS, OWN, Expressions, Maybe, Record, Scope
from gpureduce.custom.functions import CONSTANTS, in_c
from gpureduce.custom.graph import Graph, Node
from gpureduce.custom.scan import Text, Token
from gpureduce.custom.state import Array, Field, Held
from gpureduce.custom.values import Value

TURNS_MOST = 10_000


def run(source: Text, graph: Graph, scope: Scope) -> tuple[dict[str, Held], Value | None]:
    """The results by name, and the last expression by itself."""
    body = _Body(source, graph, scope)
    statements = g.parse(source)
    for place, statement in enumerate(statements):
        is_last = place == len(statements) - 1
        if isinstance(statement, g.Bare) and is_last and not scope.results:
            return {}, body.value(statement.value)
        body.execute(statement)
    return {f.name: body.result(f) for f in scope.results}, None


def is_whole(held: Any) -> bool:
    """Whether all of it is assigned on every way."""
    if isinstance(held, Array):
        return all(map(is_whole, held.items))
    return held is not None and not isinstance(held, Maybe)


class _Body(Expressions):
    def result(self, field: Field) -> Held:
        held = self.names.get(field.name)
        if not is_whole(held):
            end = Token("end", "", 1 + self.source.text.rstrip().count("\n"), 1)
            what = f"{field.name} is not assigned" if field.name else "there is no result"
            raise self.wrong(end, f"{what}{' whole' * isinstance(held, Array)}")
        assert held is not None
        return held  # type: ignore[no-any-return]

    # --- statements -----------------------------------------------------------------------------

    def execute(self, statement: g.Statement) -> None:
        if isinstance(statement, g.Assign):
            self.assign(statement)
        elif isinstance(statement, g.If):
            self.branch(statement)
        elif isinstance(statement, g.For):
            self.loop(statement)
        elif self.scope.results:
            names = ", ".join(self.results)
            raise self.wrong(statement.at, f"this is assigned to none of {names}: it has no effect")
        else:
            raise self.wrong(statement.at, "this has no effect: the last expression is the result")

    def block(self, statements: Sequence[g.Statement]) -> None:
        """A body of its own: what it declares ends with it."""
        self.declared.append([])
        for statement in statements:
            self.execute(statement)
        for name in self.declared.pop():
            self.types.pop(name)
            self.names.pop(name, None)

    def assign(self, s: g.Assign) -> None:
        target = s.target
        if s.type:
            self.declare(s)
            if s.value is None:
                return
        assert s.value is not None
        if s.operator:
            before, by = self.real(target), self.real(s.value)
            value = self.tried(s.at, self.maker.binary, s.operator, before, by)
        else:
            value = self.value(s.value)
        if isinstance(target, g.Name):
            self.store(target.at, value)
        elif isinstance(target, g.Element):
            self.store_element(target, value)
        else:
            raise self.wrong(s.at, "this cannot be assigned: results have bare names")

    def declare(self, s: g.Assign) -> None:
        name = s.at.text
        if name in self.types or name in self.results:
            raise self.wrong(s.at, f"{name} is declared twice")
        self.check_free(s.at, name)
        self.declared[-1].append(name)
        shape = tuple(self.size(size) for size in s.sizes)
        self.types[name] = (KINDS[s.type], shape)
        if shape:
            if s.value is not None:
                raise self.wrong(s.at, "arrays are assigned element by element")
            if len(shape) > 2:
                raise self.wrong(s.at, "an array has one or two dimensions")
            self.names[name] = Array(shape, (None,) * Field(name, KINDS[s.type], shape).length)

    def size(self, size: g.Expression) -> int:
        found = self.constant(size)
        if not 0 < found <= 256:
            raise self.wrong(size.at, f"{found} is no length of an array here")
        return found

    def check_free(self, at: Token, name: str) -> None:
        what = self.scope.given.get(name)
        if isinstance(what, Record):
            raise self.wrong(at, f"{name} is a state and cannot be assigned")
        if what is not None:
            raise self.wrong(at, f"{name} is given and cannot be assigned: take another name")
        if name in CONSTANTS or name == "I" or in_c(name) or name in OWN:
            raise self.wrong(at, f"{name} is C's own name: take another")

    def store(self, at: Token, value: Held) -> None:
        name = at.text
        if name in self.results:
            kind, shape = self.results[name].kind, self.results[name].shape
        elif name in self.types:
            kind, shape = self.types[name]
        else:
            self.check_free(at, name)
            if isinstance(value, Array):
                self.names[name] = value
                return
            kind, shape = self.maker.kind(value), ()
            self.types[name] = kind, shape
        if isinstance(value, Array) or shape:
            if not isinstance(value, Array) or value.shape != shape:
                raise self.wrong(at, f"{name} and what it is to be have not the same shape")
            if not is_whole(value):
                raise self.wrong(at, f"{name} is to be an array that is not assigned whole")
            items = (self.tried(at, self.maker.to, item, kind) for item in value.items)
            self.names[name] = Array(shape, tuple(items))
        else:
            self.names[name] = self.tried(at, self.maker.to, value, kind)

    def store_element(self, target: g.Element, value: Held) -> None:
        at, name, places = self.places(target)
        if name in self.results:
            kind, shape = self.results[name].kind, self.results[name].shape
        elif name in self.types:
            kind, shape = self.types[name]
        else:
            self.check_free(at, name)
            raise self.wrong(at, f"{name} is not declared: double {name}[3]; for one")
        held = self.names.get(name)
        items = list(
            held.items if isinstance(held, Array) else (None,) * Field("", kind, shape).length
        )
        where = self.flat(at, name, shape, places)
        if isinstance(value, Array):
            raise self.wrong(at, "one element is assigned at a time")
        items[where] = self.tried(at, self.maker.to, value, kind)
        self.names[name] = Array(shape, tuple(items))

    def branch(self, s: g.If) -> None:
        condition = self.tried(s.at, self.maker.truth, self.real(s.condition))
        before = dict(self.names)
        if condition.op == "const":
            self.block(s.yes if condition.detail else s.no)
            return
        self.block(s.yes)
        yes, self.names = self.names, dict(before)
        self.block(s.no)
        no = self.names
        self.names = {
            name: self.merged(s.at, condition, yes.get(name), no.get(name))
            for name in {**yes, **no}
        }

    def merged(self, at: Token, condition: Node, yes: Any, no: Any) -> Any:
        if isinstance(yes, Array) and isinstance(no, Array) and yes.shape == no.shape:
            pairs = zip(yes.items, no.items, strict=True)
            return Array(yes.shape, tuple(self.merged(at, condition, y, n) for y, n in pairs))
        if yes is None or no is None or isinstance(yes, Maybe) or isinstance(no, Maybe):
            return yes if yes is no else Maybe()
        if isinstance(yes, Array) or isinstance(no, Array):
            raise self.wrong(at, "one name is of two shapes behind this if: take two names")
        return self.tried(at, self.maker.select, condition, yes, no)

    def loop(self, s: g.For) -> None:
        if not isinstance(s.start, g.Assign) or not isinstance(s.start.target, g.Name):
            raise self.wrong(s.at, "a loop begins with k = 0")
        if s.start.type:
            self.declared.append([])
        self.execute(s.start)
        while self.goes_on(s):
            self.block(s.body)
            self.execute(s.step)
        if s.start.type:
            (name,) = self.declared.pop()
            self.types.pop(name)
            self.names.pop(name, None)

    def goes_on(self, s: g.For) -> bool:
        condition = self.tried(s.condition.at, self.maker.truth, self.real(s.condition))
        if condition.op != "const":
            raise self.wrong(
                s.condition.at, "how often a loop turns has to be known: constants alone"
            )
        self.turns += 1
        if self.turns > TURNS_MOST:
            raise self.wrong(s.at, f"more than {TURNS_MOST} turns of loops")
        return bool(condition.detail)
