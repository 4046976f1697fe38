"""The launches of operators: all that a call has but for addresses, which is kept for the next."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpureduce import _core
from gpureduce.custom import cut
from gpureduce.custom.layout import offset_of, strides_of
from gpureduce.custom.on_device import Case, Out
from gpureduce.custom.places import Placed
from gpureduce.custom.program import Program, Result

STATE, NUMBERS = 80, 336  # words of a gpr_operator_args
_HEAD = 18
ARGUMENTS = _HEAD + STATE + NUMBERS


class Launch(NamedTuple):
    """args and words are those of _core.operator_launch; what begins its numbers are addresses: of
    each the array that it is in, and how far."""

    kernel: Any
    args: NDArray[np.int64]
    words: NDArray[np.int64]
    is_far: bool  # the numbers are the last words, and not in args
    segments: int
    inputs: Sequence[tuple[int, int]]
    outs: Sequence[tuple[int, int]]
    blocks: int
    threads: int
    scratch: int
    is_own: bool


def streams_of(
    program: Program, arrays: Sequence[Placed], inner: Sequence[tuple[int, ...]]
) -> list[tuple[int, int]]:
    """Of each stream the array and where in it its first number is."""
    inputs = ((s, s.input) for s in program.streams)
    return [(k, offset_of(stream, arrays[k], inner[k])) for stream, k in inputs]


def _flags(case: Case, addresses: Sequence[int], dims: cut.Dims) -> tuple[int, int, int]:
    """Bits of arrays: odd, swapped, packed."""
    odd = swapped = packed = 0
    for k, (streams, stream) in enumerate(case.made.device.arrays):
        size = stream.scalar.bytes
        steps = [dim.strides[k] for dim in (*dims.kept, *dims.reduced)]
        starts = [addresses[s] for s in streams]
        if case.arrays[k].swapped:
            swapped |= 1 << k
        if case.arrays[k].swapped or any(at % size for at in (*steps, *starts)):
            odd |= 1 << k
        elif steps[-1] == len(starts) * size and all(
            at == starts[0] + m * size for m, at in enumerate(starts)
        ):
            packed |= 1 << k
    return odd, swapped, packed


def _numbers_out(results: Sequence[Result], outs: Sequence[Out]) -> list[tuple[int, int]]:
    """Of each number of a result the array and where in it the first one goes."""
    found = []
    for k, (result, out) in enumerate(zip(results, outs, strict=True)):
        size = result.kind.part.bytes
        for n in range(len(result.nodes)):
            place, part = divmod(n, result.kind.parts)
            where = np.unravel_index(place, result.shape) if result.shape else ()
            offset = sum(int(p) * s for p, s in zip(where, out.inner, strict=True))
            found.append((k, offset + part * size))
    return found


def launch_of(case: Case, outs: Sequence[Out]) -> Launch | None:
    """None where there is no output."""
    pairs = zip(case.arrays, case.inner, strict=True)
    strides = [strides_of(array, inner, case.shape) for array, inner in pairs]
    steps = [out.strides[1:] if case.segments else out.strides for out in outs]
    dims = cut.dims_of(case.shape, case.axes, strides, steps, case.segments is not None)
    outputs, count, words = dims.outputs, dims.elements, np.empty(0, np.int64)
    if case.segments:
        starts, stops = case.segments.starts, case.segments.stops
        outputs *= len(starts)
        count = int(np.maximum(stops - starts, 0).max(initial=0))
        words = np.concatenate([starts, stops])
    if not outputs:
        return None
    shape = case.made.device.shape
    inputs = streams_of(case.made.program, case.arrays, case.inner)
    results = _numbers_out(case.made.program.results, outs)
    addresses = [case.arrays[k].address + offset for k, offset in inputs]
    segment = [out.strides[0] if case.segments else 0 for out in outs]
    tables = _tables(dims, len(case.arrays), segment)
    flags = _flags(case, addresses, dims)
    sizes = outputs, count, _core.multiprocessors(case.device)
    is_piece = len(case.arrays) == 1 and not case.segments and flags == (0, 0, 1)
    is_direct = not flags[0] and not case.segments
    how = (
        (is_direct and cut.few(shape, dims, *sizes))
        or (is_piece and cut.staged(shape, dims, *sizes))
        or cut.cut(shape, dims, len(case.arrays), *sizes)
    )
    numbers = np.array([0] * (len(inputs) + len(results)) + tables, np.int64)
    args = np.zeros(ARGUMENTS, np.int64)
    args[:14] = (
        outputs, dims.outputs, count, len(dims.kept), len(dims.reduced), how.team, how.rows,
        how.tiles, how.split, *flags, how.nodes, case.initial is not None,
    )  # fmt: skip
    if case.initial:
        state = np.frombuffer(case.initial, np.uint8)
        args[_HEAD : _HEAD + STATE].view(np.uint8)[: len(state)] = state
    is_far = len(numbers) > NUMBERS
    if is_far:
        words = np.concatenate([words, numbers])
    else:
        args[_HEAD + STATE : _HEAD + STATE + len(numbers)] = numbers
    return Launch(
        case.made.kernels[how.kernel], args, words, is_far,
        len(case.segments.starts) if case.segments else 0, inputs, results, how.blocks,
        how.threads, how.scratch, how.is_own,
    )  # fmt: skip


def start(
    launch: Launch, device: int, stream: int, inputs: Sequence[int], outs: Sequence[int]
) -> None:
    """inputs, outs: the addresses of arrays that lie as those did of which the launch is."""
    args, words = launch.args.copy(), launch.words
    addresses = [inputs[k] + offset for k, offset in launch.inputs]
    addresses += [outs[k] + offset for k, offset in launch.outs]
    if launch.is_far:
        words = words.copy()
        words[2 * launch.segments :][: len(addresses)] = addresses
    else:
        args[_HEAD + STATE : _HEAD + STATE + len(addresses)] = addresses
    _core.operator_launch(
        launch.kernel, device, stream, args, launch.blocks, launch.threads, launch.scratch,
        launch.is_own, words, launch.segments,
    )  # fmt: skip


def _tables(dims: cut.Dims, arrays: int, segment: Sequence[int]) -> list[int]:
    """Lengths, the arrays' strides, and the results', each with its step between segments."""
    every = (*dims.kept, *dims.reduced)
    found = [dim.length for dim in every]
    for k in range(arrays):
        found += [dim.strides[k] for dim in every]
    for r, step in enumerate(segment):
        found += [*(dim.strides[arrays + r] for dim in every), step]
    return found
