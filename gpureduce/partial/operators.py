"""Trees of users' operators: their states as nodes."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpureduce.custom import arrays as host
from gpureduce.custom import emit_c, evaluate, runner
from gpureduce.custom.graph import in_order
from gpureduce.custom.program import Input, Program, Result, Stream
from gpureduce.custom.scalars import Kind as Number
from gpureduce.custom.scalars import kind_of
from gpureduce.partial import trees
from gpureduce.partial.axes import along, as_one, axes_of, left_of
from gpureduce.partial.carrier import Partials
from gpureduce.partial.host import brought, mask_of
from gpureduce.partial.kinds import OWN_TREE, VERSION, Kind, number_of

Array = NDArray[Any]


def _plain(program: Program) -> tuple[Result, ...]:
    """Results that are the state's numbers themselves; of 16-bit floats the bits."""
    nodes = [program.graph.node("a", slot, (), n) for n, slot in enumerate(program.slots)]
    return tuple(Result(f"s{n}", Number(node.type), (), (node,)) for n, node in enumerate(nodes))


def _of_states(program: Program) -> Program:
    """The same operator on states that are there already."""
    slots = program.slots
    return program._replace(
        streams=tuple(Stream(n, 0, 0, slot) for n, slot in enumerate(slots)),
        lift=tuple(program.graph.node("input", slot, (), n) for n, slot in enumerate(slots)),
    )


class OperatorTree:
    """A user's operator on inputs of some dtypes. program: without a mask, but with what one would
    take."""

    has_bytes = False

    def __init__(self, operator: Any, kinds: Any, absent: bool):
        self.asked, self.kinds, self.absent = operator, kinds, absent
        made = operator._compiled(kinds, False, absent)
        self.program: Program = made.program
        self.slots = tuple(slot.numpy for slot in self.program.slots)
        self.dtype = np.dtype([(f"s{n}", slot) for n, slot in enumerate(self.slots)])

    def described(self) -> Any:
        return self.asked, tuple(kind.dtype for kind in self.kinds), self.absent

    def _made(self, what: str, program: Program) -> runner.Made:
        """Compiled once."""
        key = ("partials", what, self.kinds, self.absent)
        made: runner.Made = self.asked.made_once(key, lambda: runner.made(self.asked.name, program))
        return made

    def _of_nodes(self, what: str, results: Any, node: Sequence[Array], axes: Any) -> list[Array]:
        made = self._made(what, _of_states(self.program)._replace(results=results))
        inputs = tuple(Input(f"s{n}") for n in range(len(self.slots)))
        case = runner.Case(made, inputs, [np.asarray(n) for n in node], node[0].shape, None)
        return runner.reduce(case, axes, None)

    def fold(self, case: Any, axes: tuple[int, ...], mask: Any) -> list[Array]:
        program = case.made.program
        what = "masked" if mask is not None else "plain"
        made = self._made(what, program._replace(results=_plain(program)))
        return runner.reduce(case._replace(made=made), axes, None)

    def combine(self, left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
        both = [np.stack(pair) for pair in zip(left, right, strict=True)]
        return self._of_nodes("combine", _plain(self.program), both, (0,))

    def neutral(self, shape: tuple[int, ...]) -> list[Array]:
        if self.program.identity is None:
            raise ValueError(
                f"gpureduce.finish: zero-size array to reduction operation {self.asked.name} which "
                "has no identity"
            )
        return [np.asarray(one) for one in evaluate.neutral(self.program, shape)]

    def finish(self, root: Sequence[Array]) -> Any:
        one = [value[np.newaxis] for value in root]
        found = self._of_nodes("finish", self.program.results, one, (0,))
        results = self.program.results
        return self.asked._given_back(results, runner.dressed(results, found), None, None)


def described_kind(operator: Any, dtypes: Any, absent: bool) -> Kind:
    """Back from described()."""
    return operator_kind(operator, tuple(kind_of(dtype) for dtype in dtypes), absent)


def operator_kind(operator: Any, kinds: Any, absent: bool) -> Kind:
    key = ("partials", "kind", kinds, absent)
    kind: Kind = operator.made_once(key, lambda: _made_kind(operator, kinds, absent))
    return kind


def _made_kind(operator: Any, kinds: Any, absent: bool) -> Kind:
    tree = OperatorTree(operator, kinds, absent)
    digest = sha256(emit_c.functions(tree.program).encode()).hexdigest()[:16]
    text = f"gpureduce partials {VERSION}: {operator.name} {OWN_TREE} {digest}"
    answers = (operator.name,)
    return Kind(operator.name, tree.dtype, 0, False, answers, text, tree, number_of(text))


def _in_one_axis(case: Any, mask: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    shape = case.shape
    several = zip(case.arrays, case.inputs, strict=True)
    arrays = [as_one(a, axes, shape, i.shape) for a, i in several]
    now = (along(shape, axes), *left_of(shape, axes, False))
    return case.with_arrays(arrays, now), None if mask is None else as_one(mask, axes, shape)


def shape_of(operator: Any, x: Any) -> tuple[int, ...]:
    """Of all inputs together."""
    shape: tuple[int, ...] = _case(operator, x, True)[0].shape
    return shape


def _case(operator: Any, x: Any, where: Any) -> Any:
    inputs = [brought(a, "partials") for a in operator.several(x)]
    return operator._case(inputs, mask_of(where, "partials"))


def taken_by(operator: Any, x: Any, axis: Any, keepdims: bool, where: Any, offset: Any) -> Partials:
    case, mask = _case(operator, x, where)
    axes = axes_of(axis, len(case.shape), "gpureduce.partials")
    left = left_of(case.shape, axes, keepdims)
    if len(axes) != 1:
        case, mask = _in_one_axis(case, mask, axes)
        axes = (0,)
    at = axes[0]
    count = case.shape[at]
    start = trees.start_of(offset, count)
    kinds = tuple(host.kind(operator.name, a.dtype) for a in case.arrays)
    # As if there were a mask, wherever there may be one: with and without it they have to merge.
    has_none = operator._program(kinds).identity is not None
    case = operator._complete(case, mask, np._NoValue, has_none)
    program = case.made.program
    absent = len(program.slots) > len(operator._program(kinds).slots)
    kind = operator_kind(operator, kinds, absent)
    if any(node.op == "index" for node in in_order(program.lift)):
        raise TypeError(
            f"gpureduce.partials: {operator.name} asks for the index i, which is not that of the "
            "whole array in its parts"
        )
    nodes = []
    for first, stop in trees.cover(start, start + count):
        piece = runner._cut(case, at, first - start, stop - start)
        nodes.append(kind.tree.fold(piece, (at,), mask))
    shaped = [[value.reshape(left) for value in node] for node in nodes]
    return trees.packed(kind, left, start, start + count, shaped)
