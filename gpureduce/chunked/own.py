"""Users' operators on arrays that come in chunks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpureduce.chunked import module_of, takes_operators
from gpureduce.chunked.plan import Plan, check_given, mask_of
from gpureduce.custom import arrays as host
from gpureduce.custom.outputs import each, packed
from gpureduce.partial import merging
from gpureduce.partial.axes import axes_of
from gpureduce.partial.carrier import Partials
from gpureduce.partial.take import partials


@dataclass(frozen=True)
class Own(Plan):
    """By an operator, which folds along the tree."""

    operator: Any

    @property
    def called(self) -> str:
        return self.name

    def told(self) -> tuple[Any, ...]:
        return self.operator, self.axes, self.keepdims, self.shape, self.dtypes

    def taken(self, blocks: Sequence[Any], mask: Any, start: Sequence[int]) -> Partials:
        arrays = tuple(np.asarray(block) for block in blocks)
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        arrays = tuple(np.broadcast_to(a, shape) for a in arrays)
        where = True if mask is None else mask
        offset = self.offset_of(arrays[0], start)
        one = arrays[0] if len(arrays) == 1 else arrays
        return partials(one, self.operator, self.axes, keepdims=True, where=where, offset=offset)

    def of_root(self, p: Partials) -> Any:
        return merging.finish(p)


def reduce(operator: Any, inputs: Sequence[Any], given: Mapping[str, Any]) -> Any:
    """As operator(*inputs, ...); lazy where they are."""
    name, what = operator.name, "arrays that come in chunks"
    check_given(name, given, what)
    counted = operator.counted(inputs)
    inputs = [a if takes_operators(a) else host.taken(name, a) for a in inputs]
    kinds = tuple(host.kind(name, a.dtype) for a in inputs)
    results = operator._program(kinds).results
    if any(i.shape for i in counted) or any(r.shape for r in results):
        raise TypeError(f"{name}: inputs and results of {what} are numbers, not small arrays")
    wanted = each(name, "dtype", given.get("dtype"), tuple(r.name for r in results))
    shapes = [tuple(np.shape(a)) for a in inputs]
    shape = shapes[0] if len(shapes) == 1 else np.broadcast_shapes(*shapes)
    plan = Own(
        name,
        axes_of(given.get("axis"), len(shape), name),
        bool(given.get("keepdims")),
        shape,
        tuple(np.dtype(w or r.kind.dtype) for w, r in zip(wanted, results, strict=True)),
        operator,
    )
    module = next(module_of(a) for a in inputs if takes_operators(a))
    found = module.reduce_by(plan, inputs, mask_of(given), given.get("progress", False))
    return packed(name, results, found)
