"""One call of an operator: from arrays and axes to its results."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpureduce.caller import tell
from gpureduce.custom import evaluate
from gpureduce.custom.native import Native, native
from gpureduce.custom.program import Input, Program, Result
from gpureduce.custom.toolchain import looked_for
from gpureduce.partial.axes import along, left_of

Arrays = Sequence[NDArray[Any]]
Progress = Callable[[int, int], object] | None
LARGE = 16  # slices: a segment of more is worth some of its own
_told = False


class Made(NamedTuple):
    """A program, and what the compiler made of it."""

    program: Program
    native: Native | None


def made(name: str, program: Program) -> Made:
    compiled = native(program)
    if compiled is None:
        _tell_once(name)
    return Made(program, compiled)


def _tell_once(name: str) -> None:
    global _told
    if not _told:
        _told = True
        tell(
            f"{name}: there is no C compiler ({looked_for()}) that could compile it; "
            "operators run by NumPy: the same tree, but slower"
        )


class Case(NamedTuple):
    """What is folded: arrays of the inputs, the mask the last of them if there is one."""

    made: Made
    inputs: tuple[Input, ...]
    arrays: Arrays
    shape: tuple[int, ...]
    initial: Sequence[NDArray[Any]] | None  # a number for each slot

    def with_arrays(self, arrays: Arrays, shape: tuple[int, ...]) -> "Case":
        return self._replace(arrays=arrays, shape=shape)


def dtype_of(result: Result) -> Any:
    """What its numbers are written as: those of bfloat16 as their bits."""
    return result.kind.dtype if result.kind.is_complex else result.kind.part.numpy


def _empty(results: Sequence[Result], shape: tuple[int, ...]) -> list[NDArray[Any]]:
    return [np.empty(shape + r.shape, dtype_of(r)) for r in results]


def dressed(results: Sequence[Result], outs: Arrays) -> list[NDArray[Any]]:
    return [
        out.view(r.kind.dtype) if r.kind.part.name == "bf16" else out
        for r, out in zip(results, outs, strict=True)
    ]


def reduce(case: Case, axes: Sequence[int], tell: Progress) -> list[NDArray[Any]]:
    kept = left_of(case.shape, axes, False)
    program = case.made.program
    outs = _empty(program.results, kept)
    if case.made.native:
        layout = case.made.native.layout(case.arrays, _shapes(case), case.shape, tuple(axes))
        case.made.native.reduce(layout, case.arrays, outs, _initial(case), tell)
    elif math.prod(kept):
        _by_numpy(case, axes, outs)
        if tell:
            tell(math.prod(case.shape), math.prod(case.shape))
    return outs


def _shapes(case: Case) -> list[tuple[int, ...]]:
    return [i.shape for i in case.inputs] + [()]


def _initial(case: Case) -> bytes | None:
    return None if case.initial is None else case.made.program.state_of(case.initial)


# --- by NumPy -------------------------------------------------------------------------------------


def stream(case: Case, number: int) -> NDArray[Any]:
    """The numbers of a stream, in the shape of the elements."""
    stream = case.made.program.streams[number]
    array, inner = case.arrays[stream.input], _shapes(case)[stream.input]
    if inner:
        place: tuple[Any, ...] = np.unravel_index(stream.place, inner)
        array = array[(Ellipsis, *place)]
    if array.dtype.kind == "c":
        array = array.imag if stream.part else array.real
    if stream.scalar.name == "bf16":
        array = array.view(np.uint16)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return np.broadcast_to(array, case.shape)


def _by_numpy(case: Case, axes: Sequence[int], outs: Arrays) -> None:
    program = case.made.program
    first = sorted(axes)
    count = along(case.shape, first)
    kept = left_of(case.shape, axes, False)
    if count:
        streams = [
            np.moveaxis(stream(case, n), first, range(len(first))).reshape(count, *kept)
            for n in range(len(program.streams))
        ]
        root = evaluate.fold(program, streams)
    else:
        root = evaluate.neutral(program, kept)
    if case.initial is not None:
        left = [np.broadcast_to(number, kept) for number in case.initial]
        root = evaluate.combined(program, left, root)
    for result, out, parts in zip(
        program.results, outs, evaluate.finished(program, root), strict=True
    ):
        plain = out.reshape(*kept, -1)
        for n, part in enumerate(parts):
            if result.kind.is_complex:
                (plain.imag if n % 2 else plain.real)[..., n // 2] = part
            else:
                plain[..., n] = part


# --- segments -------------------------------------------------------------------------------------


def segments(
    case: Case, axis: int, starts: NDArray[np.int64], stops: NDArray[np.int64], tell: Progress
) -> list[NDArray[Any]]:
    """The results have the segments where the axis was."""
    program = case.made.program
    kept = left_of(case.shape, (axis,), False)
    outs = _empty(program.results, (len(starts), *kept))
    outputs = math.prod(kept)
    if case.made.native is None:
        alone = np.arange(len(starts) if outputs else 0)
    else:
        alone = np.flatnonzero((stops - starts) * outputs > LARGE * case.made.native.slice)
    if case.made.native and outputs:
        short = stops.copy()
        short[alone] = starts[alone]
        layout = case.made.native.layout(case.arrays, _shapes(case), case.shape, (axis,))
        if not case.shape[axis] or len(layout.reduced) != 1:
            layout = layout._replace(reduced=layout.reduced[:1])
        bounds = np.ascontiguousarray(starts), short
        native = case.made.native
        native.reduce_segments(layout, case.arrays, outs, _initial(case), bounds, tell)
    for s in alone:
        piece = _cut(case, axis, int(starts[s]), max(int(stops[s]), int(starts[s])))
        for out, one in zip(outs, reduce(piece, (axis,), None), strict=True):
            out[s] = one
    return [np.ascontiguousarray(np.moveaxis(out, 0, axis)) for out in outs]


def _cut(case: Case, axis: int, start: int, stop: int) -> Case:
    shape = (*case.shape[:axis], stop - start, *case.shape[axis + 1 :])
    found = []
    for array, given in zip(case.arrays, _shapes(case), strict=False):
        outer = array.ndim - len(given)
        at = axis - (len(case.shape) - outer)
        if at >= 0 and array.shape[at] > 1:
            array = array[(slice(None),) * at + (slice(start, stop),)]
        found.append(array)
    return case.with_arrays(found, shape)


def check_bounds(name: str, starts: NDArray[np.int64], stops: NDArray[np.int64], n: int) -> None:
    if len(starts) != len(stops):
        raise ValueError(f"{name}: there are {len(starts)} starts and {len(stops)} stops")
    wrong = (starts < 0) | (starts > n) | (stops < 0) | (stops > n)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise IndexError(
            f"{name}: segment {at}, [{starts[at]}, {stops[at]}), is not within the axis of "
            f"length {n}"
        )
