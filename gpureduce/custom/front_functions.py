"""The parts of an operator that are Python functions."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpureduce.custom.errors import OperatorError
from gpureduce.custom.exact import Exact
from gpureduce.custom.expressions import Record
from gpureduce.custom.front_python import translate
from gpureduce.custom.front_text import check_names, constants, record
from gpureduce.custom.graph import Graph, Node
from gpureduce.custom.program import Input
from gpureduce.custom.python_expressions import Tuple, flat
from gpureduce.custom.python_source import Source
from gpureduce.custom.state import Array, Field, Held, State
from gpureduce.custom.values import Complex, Maker, Weak


class Functions:
    """combine, lift and finish as functions; the identity is a number or one for each field."""

    def __init__(
        self,
        state: State | None,
        combine: Source,
        lift: Source | None,
        identity: Any,
        finish: Source | None,
        inputs: tuple[Input, ...] | None,
    ):
        self.state, self.combined, self.lifted = state, combine, lift
        self.neutral, self.finished = identity, finish
        if lift is None and state is not None and not state.is_number:
            raise OperatorError(f"lift is missing: what are {state.described()} of an element?")
        if finish is None and state is not None and not state.is_number:
            check_names([field.name for field in state.fields])
        self.inputs = inputs or self._inputs_named()

    def _inputs_named(self) -> tuple[Input, ...]:
        """lift's arguments; one that is called i is the index."""
        return tuple(Input(name) for name in self._arguments() if name != "i") or (Input("x"),)

    def _arguments(self) -> list[str]:
        if self.lifted is None:
            return ["x"]
        args = self.lifted.tree().args
        return [arg.arg for arg in (*args.posonlyargs, *args.args)]

    def maker(self, graph: Graph) -> Maker:
        return Maker(graph, as_numpy=True)

    def lift(
        self, graph: Graph, state: State | None, inputs: Sequence[Held], index: Node
    ) -> list[Held]:
        if self.lifted is None:
            return [inputs[0]]
        rest = iter(inputs)
        given = [index if name == "i" else next(rest, None) for name in self._arguments()]
        if None in given or next(rest, None) is not None:
            raise OperatorError(f"{self.lifted.name} does not take the inputs that are named")
        value = translate(self.lifted, graph, given)
        return _fields(self.lifted, graph, state, value)

    def combine(
        self, graph: Graph, state: State, a: Sequence[Held], b: Sequence[Held]
    ) -> list[Held]:
        given = [record(state, name, held) for name, held in (("a", a), ("b", b))]
        return _fields(self.combined, graph, state, translate(self.combined, graph, given))

    def identity(self, graph: Graph, state: State) -> list[Held] | None:
        return None if self.neutral is None else constants(graph, state, self.neutral)

    def finish(self, graph: Graph, state: State, held: Sequence[Held]) -> Mapping[str, Held]:
        if self.finished is None:
            return dict(zip((f.name for f in state.fields), held, strict=True))
        source = self.finished
        value = translate(source, graph, [record(state, "a", held)])
        if isinstance(value, dict):
            if not value:
                raise source.wrong(source.tree(), "finish: it names no result")
            check_names(value)
        else:
            value = {"": value}
        found: dict[str, Held] = {}
        for name, one in value.items():
            if isinstance(one, Tuple | Record | Array):
                raise source.wrong(source.tree(), "give several results by name: {'mean': …}")
            found[name] = Maker(graph, as_numpy=True).strong(one)
        return found


def _fields(source: Source, graph: Graph, state: State | None, value: Any) -> list[Held]:
    """What a function gave back for a state, by its fields."""
    maker = Maker(graph, as_numpy=True)
    if state is None or state.is_number:
        if not isinstance(value, Node | Complex | Weak | Exact):
            raise source.wrong(source.tree(), f"{source.name} is to give back one number")
        return [value if isinstance(value, Exact) else maker.strong(value)]
    if isinstance(value, Record):
        value = Tuple(value.fields.values())
    if not isinstance(value, Tuple) or len(value) != len(state.fields):
        raise source.wrong(
            source.tree(),
            f"{source.name} is to give back a tuple of {len(state.fields)}, {state.described()}",
        )
    return [_held(source, maker, f, v) for f, v in zip(state.fields, value, strict=True)]


def _held(source: Source, maker: Maker, field: Field, value: Any) -> Held:
    items = flat(value)
    if len(items) != field.length or any(
        not isinstance(i, Node | Complex | Weak | Exact) for i in items
    ):
        what = f"{field.length} numbers" if field.shape else "one number"
        raise source.wrong(source.tree(), f"{source.name}: {field.name} is to be {what}")
    if field.shape:
        return Array(field.shape, tuple(maker.to(item, field.kind) for item in items))
    return maker.to(items[0], field.kind)
