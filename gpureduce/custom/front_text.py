"""Operators written as C text."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gpureduce.custom.errors import OperatorError
from gpureduce.custom.expressions import Record, Scope
from gpureduce.custom.graph import Graph, Node
from gpureduce.custom.lower import is_whole, run
from gpureduce.custom.program import Input
from gpureduce.custom.scan import Text, Token, tokens_of
from gpureduce.custom.state import Array, Field, Held, State
from gpureduce.custom.values import Maker, Weak

NAMES = ("x", "y", "z", "w")


class Texts:
    """lift, combine, identity and finish as text; identity may be a number, or one a field."""

    def __init__(
        self,
        state: State | None,
        lift: str | None,
        combine: str,
        identity: Any,
        finish: str | Mapping[str, str] | None,
        inputs: tuple[Input, ...] | None,
    ):
        self.state, self.texts = state, {"combine": Text("combine", combine)}
        if lift is None and state is not None and not state.is_number:
            raise OperatorError(f"lift is missing: what are {state.described()} of an element x?")
        self.texts["lift"] = Text("lift", "x" if lift is None else lift)
        self.neutral = Text("identity", identity) if isinstance(identity, str) else identity
        self.ends = _ends(finish)
        if finish is None and state is not None and not state.is_number:
            check_names([field.name for field in state.fields])
        self.inputs = inputs or self._inputs_named()

    def _inputs_named(self) -> tuple[Input, ...]:
        """x, y, z and w as far as lift names them."""
        tokens = tokens_of(self.texts["lift"])
        named = {token.text for token in tokens if token.kind == "name"}
        last = max((n for n, name in enumerate(NAMES) if name in named), default=0)
        return tuple(map(Input, NAMES[: last + 1]))

    def maker(self, graph: Graph) -> Maker:
        return Maker(graph)

    def _run(
        self, text: Text, graph: Graph, state: State | None, given: dict[str, Any]
    ) -> list[Held]:
        named = () if state is None or state.is_number else state.fields
        scope = Scope(given, named, _names(state))
        results, value = run(text, graph, scope)
        if named:
            return [results[field.name] for field in named]
        if value is None:
            raise text.wrong(_end(text), "the last line is to be an expression: the result")
        if isinstance(value, Array):
            raise text.wrong(_end(text), "the result is to be a number, and this is an array")
        return [value]

    def lift(
        self, graph: Graph, state: State | None, inputs: Sequence[Held], index: Node
    ) -> list[Held]:
        given: dict[str, Any] = {i.name: held for i, held in zip(self.inputs, inputs, strict=True)}
        return self._run(self.texts["lift"], graph, state, {**given, "i": index})

    def combine(
        self, graph: Graph, state: State, a: Sequence[Held], b: Sequence[Held]
    ) -> list[Held]:
        given = {name: record(state, name, held) for name, held in (("a", a), ("b", b))}
        return self._run(self.texts["combine"], graph, state, given)

    def identity(self, graph: Graph, state: State) -> list[Held] | None:
        if isinstance(self.neutral, Text):
            return self._run(self.neutral, graph, state, {})
        return None if self.neutral is None else constants(graph, state, self.neutral)

    def finish(self, graph: Graph, state: State, held: Sequence[Held]) -> Mapping[str, Held]:
        if self.ends is None:
            return dict(zip((f.name for f in state.fields), held, strict=True))
        given = {f.name or "a": h for f, h in zip(state.fields, held, strict=True)}
        found: dict[str, Held] = {}
        for name, text in self.ends.items():
            _, value = run(text, graph, Scope(given, (), _names(state)))
            if value is None:
                raise text.wrong(_end(text), "the last line is to be an expression")
            if not is_whole(value):
                raise text.wrong(_end(text), "this array is not assigned whole")
            found[name] = value
        return found


def _end(text: Text) -> Token:
    return tokens_of(text)[-1]


def _names(state: State | None) -> str:
    return "" if state is None else ", ".join(field.name for field in state.fields)


def record(state: State, name: str, held: Sequence[Held]) -> Held | Record:
    if state.is_number:
        return held[0]
    pairs = zip(state.fields, held, strict=True)
    return Record(name, {field.name: value for field, value in pairs})


def _ends(finish: str | Mapping[str, str] | None) -> dict[str, Text] | None:
    if finish is None:
        return None
    if isinstance(finish, str):
        return {"": Text("finish", finish)}
    if not finish:
        raise OperatorError("finish: it names no result")
    check_names(finish)
    for name, text in finish.items():
        if not isinstance(text, str):
            raise TypeError(f"finish of {name} is a text, not {type(text).__name__}")
    return {name: Text(f"finish of {name}", text) for name, text in finish.items()}


def check_names(names: Any) -> None:
    """Results are the fields of a namedtuple."""
    import keyword

    for name in names:
        plain = isinstance(name, str) and re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII)
        if not plain or keyword.iskeyword(name):
            raise OperatorError(f"finish: {name!r} is no name for a result: give finish by others")


def constants(graph: Graph, state: State, given: Any) -> list[Held]:
    """Numbers for a state: one, one for each field in order, or a dict of them."""
    import numpy as np

    values = [given] if state.is_number else given
    if not state.is_number and isinstance(given, Mapping):
        if set(given) != {field.name for field in state.fields}:
            raise OperatorError(f"{given!r}: the state's fields are {_names(state)}")
        values = [given[field.name] for field in state.fields]
    elif isinstance(given, np.void) and given.dtype.names:
        values = [given[name] for name in given.dtype.names]
    try:
        if len(values) != len(state.fields):
            raise TypeError
    except TypeError:
        what = f"{len(state.fields)} values, for {_names(state)}"
        raise OperatorError(f"{given!r}: a state has {what}") from None
    return [_constant(graph, f, value) for f, value in zip(state.fields, values, strict=True)]


def _check_whole(items: Sequence[Any], field: Field) -> None:
    import numpy as np

    info = np.iinfo(field.kind.dtype)
    for item in items:
        if item != item:
            raise ValueError(f"{item!r}: {field.name or 'the state'} is an integer")
        if not info.min <= item <= info.max:
            what = field.name or "the state"
            raise OverflowError(f"{item!r}: {what} is of {info.dtype}, {info.min} to {info.max}")


def _constant(graph: Graph, field: Field, value: Any) -> Held:
    import numpy as np

    array = np.asarray(value)
    if array.dtype.kind not in "biufc" and array.dtype.name != "bfloat16":
        raise OperatorError(f"{value!r} is no number")
    if array.dtype.kind in "c" and not field.kind.is_complex:
        raise OperatorError(f"{value!r} is complex, and {field.name or 'the state'} is not")
    if array.shape != field.shape and array.shape != ():
        raise OperatorError(f"{value!r}: {field.name or 'the state'} has the shape {field.shape}")
    plain = array.astype(np.float64) if array.dtype.kind == "V" else array
    items = np.broadcast_to(plain, field.shape).reshape(-1).tolist()
    if field.kind.dtype.kind in "iu":
        _check_whole(items, field)
    maker = Maker(graph)
    held = tuple(maker.to(Weak(item), field.kind) for item in items)
    return Array(field.shape, held) if field.shape else held[0]
