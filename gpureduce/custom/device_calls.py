"""Calls of operators on arrays of devices: what is given, checked, and given back."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpureduce.custom import arrays as host
from gpureduce.custom import launches, on_device, places
from gpureduce.custom.outputs import each, packed
from gpureduce.custom.places import Placed
from gpureduce.custom.program import Result
from gpureduce.custom.scalars import Kind
from gpureduce.partial.axes import along, axes_of, left_of
from gpureduce.progress import Progress, shown


class Given(NamedTuple):
    """like: the first array that the caller has on the device; None: all came from the host."""

    arrays: list[Placed]
    inner: list[tuple[int, ...]]
    shape: tuple[int, ...]
    device: int
    stream: int
    like: Any


def given_of(op: Any, inputs: Sequence[Any], device: int) -> Given:
    from gpureduce.custom.layout import shape_of

    names = op.counted(inputs)
    found = [places.viewed(op.name, a) for a in inputs]
    there = [p for p in found if p is not None]
    stream = there[0].stream if there else 0
    arrays = [
        p or places.brought(op.name, a, device, stream) for p, a in zip(found, inputs, strict=True)
    ]
    shape = shape_of(op.name, arrays, names)
    like = there[0].given if there else None
    return Given(arrays, [i.shape for i in names], shape, device, stream, like)


class _Asked(NamedTuple):
    """What the caller wants: dtypes and outs by result; outs on the device as they lie there."""

    kinds: list[Kind | None]
    outs: list[Any]
    placed: list[Placed | None]


def _asked(op: Any, given: Given, results: Sequence[Result], dtype: Any, out: Any) -> _Asked:
    names = tuple(r.name for r in results)
    dtypes = each(op.name, "dtype", dtype, names)
    outs = each(op.name, "out", out, names)
    placed = [None if o is None else places.viewed(op.name, o) for o in outs]
    kinds: list[Kind | None] = []
    for result, wanted, to in zip(results, dtypes, placed, strict=True):
        kind = None if wanted is None else host.kind(op.name, wanted)
        if to is not None:
            is_of = (kind or result.kind).dtype
            if not np.can_cast(is_of, to.kind.dtype, "same_kind"):
                raise TypeError(
                    f"{op.name}: a result of {is_of} does not fit out's {to.kind.dtype}"
                )
            _check_out(op.name, to, given)
            kind = to.kind
        kinds.append(kind)
    return _Asked(kinds, outs, placed)


def _check_out(name: str, out: Placed, given: Given) -> None:
    if out.device != given.device:
        raise ValueError(f"{name}: out is on cuda:{out.device}, and not on cuda:{given.device}")
    if (
        out.read_only
        or out.swapped
        or any(n > 1 and not s for n, s in zip(out.shape, out.strides, strict=True))
    ):
        raise ValueError(f"{name}: out is not an array that can be written to")
    size = out.kind.part.bytes
    if out.address % size or any(s % size for s in out.strides):
        raise ValueError(f"{name}: out does not lie as its dtype has to")
    if any(places.overlaps(out, a) for a in given.arrays):
        raise ValueError(f"{name}: out has memory that the inputs have too: give another array")


def _run(case: on_device.Case, launch: Any, outs: Sequence[int], tell: Any) -> None:
    from gpureduce import _core

    if launch:
        inputs = [a.address for a in case.arrays]
        launches.start(launch, case.device, case.stream, inputs, outs)
    if tell:
        _core.device_wait(case.device, case.stream)
        total = int(np.prod(case.shape, dtype=np.int64))
        tell(total, total)


class _Work(NamedTuple):
    """A case, what is asked of it, and the axes of its results: `kept` as the kernel's rooms have
    them, `order` as the caller wants them, with None for a new one of length 1."""

    case: on_device.Case
    asked: _Asked
    kept: tuple[int, ...]
    order: tuple[int | None, ...]
    like: Any


def _outs(op: Any, work: _Work, spaces: Sequence[on_device.Space]) -> list[on_device.Out]:
    """How the results' memory lies: the caller's, or our own."""
    found = []
    shape = tuple(1 if d is None else work.kept[d] for d in work.order)
    for space, to in zip(spaces, work.asked.placed, strict=True):
        if to is None:
            n = len(work.kept)
            found.append(on_device.Out(space.strides[:n], space.strides[n:]))
            continue
        wanted = shape + space.result.shape
        if to.shape != wanted:
            raise ValueError(f"{op.name}: out has the shape {to.shape}, and the result {wanted}")
        steps = dict(zip(work.order, to.strides, strict=False))
        own = tuple(steps[d] for d in range(len(work.kept)))
        found.append(on_device.Out(own, to.strides[len(shape) :]))
    return found


def _results(op: Any, work: _Work, progress: Progress, what: Any) -> list[Any]:
    case, placed = work.case, work.asked.placed
    spaces = [on_device.space_of(r, work.kept) for r in case.made.program.results]
    launch = launches.launch_of(case, _outs(op, work, spaces))
    rooms = [
        on_device.room(space, case.device, case.stream) if to is None else None
        for space, to in zip(spaces, placed, strict=True)
    ]
    used = [*case.arrays, *(to for to in placed if to is not None)]
    given = [to or room for room, to in zip(rooms, placed, strict=True)]
    addresses = [to.address for to in given if to is not None]
    places.follow(used, case.device, case.stream)
    shown(progress, op.name, _run, case, launch, addresses)
    places.let_go(used, case.device, case.stream)
    if launch and what:
        from gpureduce.custom import again

        again.keep(op.kept, what, again.on_a_device(op.name, case, launch, spaces, work.order))
    outs = zip(rooms, work.asked.outs, strict=True)
    return [_one(op, work, room, out) for room, out in outs]


def _one(op: Any, work: _Work, room: on_device.Room | None, out: Any) -> Any:
    """A result as the caller gets it."""
    if room is None:
        return out
    if work.like is not None and work.order and out is None:
        lies = on_device.ordered(room.space, work.order)
        return on_device.of_its_kind(room, lies, work.case.stream, work.like)
    found = on_device.to_host(room, work.case.device, work.case.stream)
    axes = [d for d in work.order if d is not None]
    inner = range(len(axes), found.ndim)
    found = np.ascontiguousarray(np.transpose(found, (*axes, *inner)))
    shape = tuple(1 if d is None else work.kept[d] for d in work.order)
    found = found.reshape(shape + room.space.result.shape)
    return found[()] if out is None else host.put(op.name, found, out)


def reduce(
    op: Any, device: int, inputs: Sequence[Any], axis: Any, dtype: Any, out: Any, keepdims: bool,
    initial: Any, where: Any, progress: Progress, what: Any,
) -> Any:  # fmt: skip
    """what: the kind of call, to be kept, or None."""
    given = given_of(op, inputs, device)
    mask = on_device.mask_of(op.name, where, given.shape, device, given.stream)
    axes = axes_of(axis, len(given.shape), op.name)
    kept = left_of(given.shape, axes, False)
    has_none = not along(given.shape, axes) and all(kept)
    places_of_kept = iter(range(len(kept)))
    order = tuple(
        None if d in axes else next(places_of_kept)
        for d in range(len(given.shape))
        if keepdims or d not in axes
    )
    return _called(
        op, given, mask, axes, None, kept, order, has_none, dtype, out, initial, progress, what
    )


def segments(
    op: Any, device: int, a: Any, axis: Any, bounds: Any, dtype: Any, out: Any, initial: Any,
    progress: Progress,
) -> Any:  # fmt: skip
    """bounds(length): the starts and stops that were given, checked."""
    given = given_of(op, op.several(a), device)
    at = host.one_axis(op.name, axis, len(given.shape))
    starts, stops = bounds(given.shape[at])
    others = left_of(given.shape, (at,), False)
    has_none = bool((stops <= starts).any()) and all(others)
    order = tuple(0 if d == at else d + (d < at) for d in range(len(given.shape)))
    cut = on_device.Segments(at, starts, stops)
    kept = (len(starts), *others)
    return _called(
        op, given, None, (at,), cut, kept, order, has_none, dtype, out, initial, progress, None
    )


def _called(
    op: Any, given: Given, mask: Placed | None, axes: tuple[int, ...], cut: Any,
    kept: tuple[int, ...], order: tuple[int | None, ...], has_none: bool, dtype: Any, out: Any,
    initial: Any, progress: Progress, what: Any,
) -> Any:  # fmt: skip
    kinds = tuple(a.kind for a in given.arrays)
    is_absent, left = op.chosen(kinds, mask is not None, initial, has_none)
    program = op.final(kinds, mask is not None, is_absent)
    asked = _asked(op, given, program.results, dtype, out)
    made = op.compiled_there(kinds, mask is not None, is_absent, tuple(asked.kinds))
    arrays = [*given.arrays, *([] if mask is None else [mask])]
    state = None if left is None else program.state_of(left)
    inner = [*given.inner, ()][: len(arrays)]
    case = on_device.Case(
        made, arrays, inner, given.shape, axes, cut, state, given.device, given.stream
    )
    found = _results(op, _Work(case, asked, kept, order, given.like), progress, what)
    return packed(op.name, made.program.results, found)
