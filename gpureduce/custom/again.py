"""Calls of a kind that came before: arrays of the same dtypes, shapes and strides, with nothing
asked but axes. All but memory and addresses is kept of them: what is left takes microseconds."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpureduce import _core
from gpureduce.custom import runner
from gpureduce.custom.native import Prepared
from gpureduce.custom.outputs import packed
from gpureduce.custom.places import DEFAULT_STREAMS
from gpureduce.partial.axes import left_of

if TYPE_CHECKING:
    from gpureduce.custom import launches, on_device

_MOST = 64  # kinds of calls that an operator keeps
_BY_WORDS = 16  # addresses that differ by these are aligned alike


class Asked(NamedTuple):
    """The kind of a call, and what it was given: arrays of the host, or what is known of those of a
    device."""

    kind: Any
    given: Sequence[Any]


def asked(op: Any, inputs: Sequence[Any], axis: Any, keepdims: bool) -> Asked | None:
    """None of what has no kind: arrays that are here and there, lists, and subclasses of arrays."""
    axes = axis if type(axis) is tuple else (axis,)
    if axis is not None and not all(type(d) is int for d in axes):
        return None
    keepdims = bool(keepdims)
    if all(type(a) is np.ndarray for a in inputs):
        return Asked((axis, keepdims, *[(a.dtype, a.shape, a.strides) for a in inputs]), inputs)
    if any(isinstance(a, np.ndarray | np.generic | list | tuple | int | float) for a in inputs):
        return None
    views = [v for a in inputs if (v := _core.device_view(a, op.name)) is not None]
    if len(views) < len(inputs):
        return None
    kind = [(v[0] % _BY_WORDS, v[1], v[2], v[3], v[4], v[6]) for v in views]
    return Asked((axis, keepdims, *kind), views)


def keep(kept: dict[Any, Any], what: Asked | None, call: Callable[..., Any] | None) -> None:
    if what is None or call is None:
        return
    if len(kept) >= _MOST:
        kept.clear()
    kept[what.kind] = call


# --- the host -------------------------------------------------------------------------------------


def on_host(name: str, case: runner.Case, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The call for arrays of that kind; None if it is worth several slices."""
    native = case.made.native
    if native is None or np.prod(case.shape, dtype=object) > native.slice:
        return None
    layout = native.layout(case.arrays, [i.shape for i in case.inputs], case.shape, axes)
    shape = left_of(case.shape, axes, keepdims)
    results = case.made.program.results
    rooms = [(shape + r.shape, runner.dtype_of(r)) for r in results]
    idle: list[Prepared] = []  # of threads that call at the same time each has its own

    def call(arrays: Sequence[NDArray[Any]], _: Any) -> Any:
        outs = [np.empty(*room) for room in rooms]
        try:
            prepared = idle.pop()
            prepared.point_to(arrays, outs)
        except IndexError:
            prepared = Prepared(native.program, layout, arrays, outs, None)
        native.fold(prepared.address, 0, layout.outputs, 0, layout.leaves, -1)
        prepared.kept_alive = ()
        idle.append(prepared)
        return packed(name, results, [out[()] for out in runner.dressed(results, outs)])

    return call


# --- a device -------------------------------------------------------------------------------------


def on_a_device(
    name: str, case: "on_device.Case", launch: "launches.Launch",
    spaces: Sequence["on_device.Space"], order: Sequence[int | None],
) -> Any:  # fmt: skip
    """The call for arrays of that kind, all of which lie there; `order` as of_its_kind has it."""
    from gpureduce.custom import launches, on_device

    device = case.device
    results = case.made.program.results
    orders = [on_device.ordered(space, order) for space in spaces]

    def call(views: Sequence[Any], inputs: Sequence[Any]) -> Any:
        stream = views[0][5]
        others = [v for v in views if v[5] != stream and {v[5], stream} - DEFAULT_STREAMS]
        for view in others:
            _core.device_order(device, view[5], stream)
        rooms = [on_device.room(space, device, stream) for space in spaces]
        starts = [view[0] for view in views]
        launches.start(launch, device, stream, starts, [room.address for room in rooms])
        if not all(view[8] for view in views):
            _core.device_wait(device, stream)
        for view in others:
            _core.device_order(device, stream, view[5])
        if order:
            pairs = zip(rooms, orders, strict=True)
            found = [on_device.of_its_kind(room, how, stream, inputs[0]) for room, how in pairs]
        else:
            found = [on_device.to_host(room, device, stream)[()] for room in rooms]
        return packed(name, results, found)

    return call
