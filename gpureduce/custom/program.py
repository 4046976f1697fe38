"""An operator made for the dtypes of its inputs: what a leaf reads, and the graphs of its four
functions, on numbers alone."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpureduce.custom.errors import OperatorError, Slip
from gpureduce.custom.graph import Graph, Node
from gpureduce.custom.scalars import BOOL, I8, Kind, Scalar, read_as
from gpureduce.custom.state import Array, Field, Held, State, packed, struct_of, unpacked
from gpureduce.custom.values import Complex, Maker, Value

STREAMS_MOST = 8192  # numbers of one element of all inputs


class Input(NamedTuple):
    """shape is that of one element: () but for inputs whose last axes are small arrays."""

    name: str
    shape: tuple[int, ...] = ()


class Front(Protocol):
    """What makes graphs of what a user wrote."""

    inputs: tuple[Input, ...]
    state: State | None  # None: a number of the type that the inputs give it

    def maker(self, graph: Graph) -> Maker: ...
    def lift(
        self, graph: Graph, state: State | None, inputs: Sequence[Held], index: Node
    ) -> list[Held]: ...
    def combine(
        self, graph: Graph, state: State, a: Sequence[Held], b: Sequence[Held]
    ) -> list[Held]: ...
    def identity(self, graph: Graph, state: State) -> list[Held] | None: ...
    def finish(self, graph: Graph, state: State, held: Sequence[Held]) -> Mapping[str, Held]: ...


class Stream(NamedTuple):
    """A number of each leaf: which input has it, and which of an element's numbers it is."""

    input: int
    place: int
    part: int
    scalar: Scalar


class Result(NamedTuple):
    """name is "" of one that has none."""

    name: str
    kind: Kind
    shape: tuple[int, ...]
    nodes: tuple[Node, ...]


class Program(NamedTuple):
    graph: Graph
    state: State
    streams: tuple[Stream, ...]
    slots: tuple[Scalar, ...]
    lift: tuple[Node, ...]
    combine: tuple[Node, ...]
    identity: tuple[Node, ...] | None
    results: tuple[Result, ...]
    is_masked: bool = False

    @property
    def struct(self) -> np.dtype:
        """A state as C lays its slots out."""
        return struct_of(self.slots)

    def state_of(self, numbers: Sequence[Any]) -> bytes:
        """One for each slot, as a struct."""
        struct = np.zeros((), self.struct)
        for n, number in enumerate(numbers):
            struct[f"s{n}"] = number
        return struct.tobytes()


def _readable(graph: Graph, held: Sequence[Held]) -> list[Held]:
    """16-bit floats widened."""

    def one(value: Value | None) -> Value:
        assert value is not None
        return graph.cast(value, read_as(value.type)) if isinstance(value, Node) else value

    return [
        Array(h.shape, tuple(map(one, h.items))) if isinstance(h, Array) else one(h) for h in held
    ]


def _given(graph: Graph, state: State, side: str) -> list[Held]:
    nodes = [graph.node(side, slot, (), place) for place, slot in enumerate(state.slots)]
    return _readable(graph, unpacked(state.fields, nodes))


def _inputs(
    graph: Graph, inputs: Sequence[Input], kinds: Sequence[Kind]
) -> tuple[list[Stream], list[Held]]:
    fields = [
        Field(f"{n}", kind, i.shape) for n, (i, kind) in enumerate(zip(inputs, kinds, strict=True))
    ]
    streams = [
        Stream(number, place, part, kind.part)
        for number, (field, kind) in enumerate(zip(fields, kinds, strict=True))
        for place in range(field.length)
        for part in range(kind.parts)
    ]
    if len(streams) > STREAMS_MOST:
        raise OperatorError(
            f"inputs: an element has {len(streams)} numbers in all: {STREAMS_MOST} are the most"
        )
    nodes = [graph.node("input", s.scalar, (), n) for n, s in enumerate(streams)]
    return streams, _readable(graph, unpacked(fields, nodes))


def _converted(graph: Graph, front: Front, state: State, held: Sequence[Held]) -> tuple[Node, ...]:
    """The state's slots of what was given for its fields."""
    maker = front.maker(graph)
    found: list[Held] = []
    for field, value in zip(state.fields, held, strict=True):
        if isinstance(value, Array):
            items = (maker.to(item, field.kind) for item in value.items if item is not None)
            found.append(Array(value.shape, tuple(items)))
        else:
            found.append(maker.to(value, field.kind))
    return tuple(packed(found))


def make(front: Front, kinds: Sequence[Kind]) -> Program:
    graph = Graph()
    try:
        return _make(graph, front, kinds)
    except Slip as slip:
        raise OperatorError(str(slip)) from None
    except RecursionError:
        raise OperatorError("this is too long, or nested too deeply") from None


def _make(graph: Graph, front: Front, kinds: Sequence[Kind]) -> Program:
    streams, inputs = _inputs(graph, front.inputs, kinds)
    index = graph.node("index", I8)
    state = front.state
    if state is None:
        state = _settled(graph, front, front.lift(graph, None, inputs, index))
    lift = _converted(graph, front, state, front.lift(graph, state, inputs, index))
    sides = _given(graph, state, "a"), _given(graph, state, "b")
    combine = _converted(graph, front, state, front.combine(graph, state, *sides))
    identity = front.identity(graph, state)
    return Program(
        graph,
        state,
        tuple(streams),
        state.slots,
        lift,
        combine,
        None if identity is None else _converted(graph, front, state, identity),
        tuple(_results(graph, front, state, sides[0])),
    )


def _settled(graph: Graph, front: Front, lifted: Sequence[Held]) -> State:
    """The number that combine() gives back: of floats for one that takes roots, for one."""
    maker = front.maker(graph)
    if len(lifted) != 1 or isinstance(lifted[0], Array):
        raise OperatorError("an operator without a state has one number: name the state's fields")
    kind = maker.kind(lifted[0])
    for _ in range(8):
        state = State((Field("", kind),))
        sides = (_given(graph, state, side) for side in "ab")
        (value,) = front.combine(graph, state, *sides)
        if isinstance(value, Array):
            break
        after = maker.kind(value)
        if after == kind:
            return state
        both = maker.pair(*(maker.to(graph.const(0, k.part), k) for k in (kind, after)))
        kind = maker.kind(both[0])
    raise OperatorError("combine never gives back the type that it takes: name the state's dtype")


def _results(graph: Graph, front: Front, state: State, held: Sequence[Held]) -> list[Result]:
    found = []
    maker = front.maker(graph)
    whole = {f.name: f for f in state.fields}
    for name, value in front.finish(graph, state, held).items():
        shape, items = (value.shape, value.items) if isinstance(value, Array) else ((), (value,))
        # A 16-bit float is one again where the field itself is the result.
        kind = next((f.kind for f, h in zip(whole.values(), held, strict=True) if h is value), None)
        nodes: list[Node] = []
        for item in items:
            assert item is not None
            kind = (kind or maker.kind(item))._replace(is_exact=False)
            made = maker.plain(item, kind)
            nodes += made if isinstance(made, Complex) else (made,)
        assert kind
        found.append(Result(name, kind, shape, tuple(nodes)))
    return found


# --- the same program with more to it -------------------------------------------------------------


def with_absence(program: Program) -> Program:
    """States that may be no state: what takes part in nothing, where there is no identity, or none
    that gives itself when it is combined with itself."""
    graph, slots = program.graph, program.slots
    here = len(slots)
    a, b = (graph.node(side, BOOL, (), here) for side in "ab")
    combine = []
    for place, (slot, both) in enumerate(zip(slots, program.combine, strict=True)):
        left, right = (graph.node(side, slot, (), place) for side in "ab")
        combine.append(graph.select(b, graph.select(a, both, right), left))
    nothing = program.identity or [_zero(graph, slot) for slot in slots]
    return program._replace(
        slots=(*slots, BOOL),
        lift=(*program.lift, graph.const(True, BOOL)),
        combine=(*combine, graph.node("or", BOOL, (a, b))),
        identity=(*nothing, graph.const(False, BOOL)),
    )


def _zero(graph: Graph, slot: Scalar) -> Node:
    return graph.cast(graph.const(0, read_as(slot)), slot)


def with_mask(program: Program) -> Program:
    """One more stream, where=: what does not count is the identity."""
    assert program.identity is not None
    graph, last = program.graph, 1 + max(stream.input for stream in program.streams)
    counts = graph.node("input", BOOL, (), len(program.streams))
    pairs = zip(program.lift, program.identity, strict=True)
    return program._replace(
        streams=(*program.streams, Stream(last, 0, 0, BOOL)),
        lift=tuple(graph.select(counts, lifted, nothing) for lifted, nothing in pairs),
        is_masked=True,
    )
