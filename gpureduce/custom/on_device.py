"""A call of an operator on a device: from the caller's arrays to results of their kind."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpureduce import _core
from gpureduce.custom import arrays as host
from gpureduce.custom import cut, device, places
from gpureduce.custom.places import Placed
from gpureduce.custom.program import Program, Result

STATE, NUMBERS = 32, 384  # words of a gpr_operator_args
_HEAD = 18


class Made(NamedTuple):
    """A program for devices: its kernels by name, each compiled when it is first launched."""

    program: Program
    device: device.Device
    by_threads: Any
    by_warps: Any


def made(program: Program) -> Made:
    text = device.device(program)
    kernels = [
        _core.operator_program(text.header, text.defines, kernel)
        for kernel in (device.BY_THREADS, device.BY_WARPS)
    ]
    return Made(program, text, *kernels)


class Segments(NamedTuple):
    axis: int
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]


class Case(NamedTuple):
    """What is folded: arrays of the inputs, the mask the last of them if there is one; `inner` are
    the shapes of one element of each."""

    made: Made
    arrays: Sequence[Placed]
    inner: Sequence[tuple[int, ...]]
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    segments: Segments | None
    initial: bytes | None
    device: int
    stream: int


class Out(NamedTuple):
    """Where a result goes; strides along what is kept, the segments first."""

    address: int
    strides: tuple[int, ...]
    inner: tuple[int, ...]  # of the result's own axes


def _strides(array: Placed, inner: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    outer = array.ndim - len(inner)
    own = zip(array.shape[:outer], array.strides[:outer], strict=True)
    return (0,) * (len(shape) - outer) + tuple(s if n > 1 else 0 for n, s in own)


def _streams(case: Case) -> list[int]:
    """The address of each stream's first number."""
    found = []
    for stream in case.made.program.streams:
        array, inner = case.arrays[stream.input], case.inner[stream.input]
        places_ = np.unravel_index(stream.place, inner) if inner else ()
        steps = array.strides[array.ndim - len(inner) :]
        offset = sum(int(p) * step for p, step in zip(places_, steps, strict=True))
        found.append(array.address + offset + stream.part * stream.scalar.bytes)
    return found


def _flags(case: Case, addresses: Sequence[int], dims: cut.Dims) -> tuple[int, int, int]:
    """Bits of arrays: odd, swapped, together."""
    odd = swapped = together = 0
    for k, (streams, stream) in enumerate(case.made.device.arrays):
        size = stream.scalar.bytes
        steps = [dim.strides[k] for dim in (*dims.kept, *dims.reduced)]
        first = addresses[streams[0]]
        if case.arrays[k].swapped:
            swapped |= 1 << k
        starts = [addresses[s] for s in streams]
        if case.arrays[k].swapped or any(at % size for at in (*steps, *starts)):
            odd |= 1 << k
            continue
        whole = len(streams) * size
        word = math.gcd(16, case.made.device.shape.leaves * whole)
        is_packed = all(at == first + m * size for m, at in enumerate(starts))
        # Of several dimensions a thread's leaves begin anywhere in the last, as far as rows differ.
        row = dims.reduced[-1].length * whole if len(dims.reduced) > 1 else 0
        is_aligned = not any(at % word for at in (*steps[:-1], first, row))
        is_aligned = is_aligned and case.segments is None
        if is_packed and steps[-1] == whole and is_aligned:
            together |= 1 << k
    return odd, swapped, together


def _numbers_out(results: Sequence[Result], outs: Sequence[Out]) -> list[int]:
    found = []
    for result, out in zip(results, outs, strict=True):
        size = result.kind.part.bytes
        for n in range(len(result.nodes)):
            place, part = divmod(n, result.kind.parts)
            where = np.unravel_index(place, result.shape) if result.shape else ()
            offset = sum(int(p) * s for p, s in zip(where, out.inner, strict=True))
            found.append(out.address + offset + part * size)
    return found


def launch(case: Case, outs: Sequence[Out]) -> None:
    strides = [_strides(a, i, case.shape) for a, i in zip(case.arrays, case.inner, strict=True)]
    steps = [out.strides[1:] if case.segments else out.strides for out in outs]
    dims = cut.dims_of(case.shape, case.axes, strides, steps, case.segments is not None)
    outputs, count, words = dims.outputs, dims.elements, np.empty(0, np.int64)
    if case.segments:
        starts, stops = case.segments.starts, case.segments.stops
        outputs *= len(starts)
        count = int(np.maximum(stops - starts, 0).max(initial=0))
        words = np.concatenate([starts, stops])
    if not outputs:
        return
    shape = case.made.device.shape
    how = cut.cut(shape, dims, len(case.arrays), outputs, count, _core.multiprocessors(case.device))
    addresses = _streams(case)
    segment = [out.strides[0] if case.segments else 0 for out in outs]
    numbers = [*addresses, *_numbers_out(case.made.program.results, outs),
               *_tables(dims, len(case.arrays), segment)]  # fmt: skip
    args = np.zeros(_HEAD + STATE + NUMBERS, np.int64)
    args[:14] = (
        outputs, dims.outputs, count, len(dims.kept), len(dims.reduced), how.team, how.rows,
        how.tiles, how.split, *_flags(case, addresses, dims), how.nodes, case.initial is not None,
    )  # fmt: skip
    if case.initial:
        args[_HEAD : _HEAD + STATE].view(np.uint8)[: len(case.initial)] = np.frombuffer(
            case.initial, np.uint8
        )
    if len(numbers) <= NUMBERS:
        args[_HEAD + STATE : _HEAD + STATE + len(numbers)] = numbers
    else:
        words = np.concatenate([words, np.array(numbers, np.int64)])
    _core.operator_launch(
        case.made.by_warps if how.by_warps else case.made.by_threads,
        case.device, case.stream, args, how.blocks, shape.threads, how.scratch, how.is_own,
        words, len(case.segments.starts) if case.segments else 0,
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


# --- results --------------------------------------------------------------------------------------


class Room(NamedTuple):
    """Memory for a result, in C order."""

    memory: Any
    out: Out
    shape: tuple[int, ...]
    result: Result


def room(case: Case, result: Result, kept: tuple[int, ...]) -> Room:
    shape = kept + result.shape
    kind = result.kind
    name = "bfloat16" if kind.part.name == "bf16" else kind.dtype.name
    memory = _core.device_memory(case.device, case.stream, name, math.prod(shape))
    strides = places.c_strides(shape, kind.parts * kind.part.bytes)
    out = Out(_core.device_address(memory), strides[: len(kept)], strides[len(kept) :])
    return Room(memory, out, shape, result)


def to_host(case: Case, room: Room) -> NDArray[Any]:
    kind = room.result.kind
    is_bits = kind.part.name == "bf16"
    found = np.empty(room.shape, np.uint16 if is_bits else kind.dtype)
    if found.size:
        _core.device_get(
            case.device, case.stream, room.out.address, found.reshape(-1).view(np.uint8)
        )
    return found.view(kind.dtype) if is_bits else found


def of_its_kind(case: Case, room: Room, order: Sequence[int | None], like: Any) -> Any:
    """An array of like's library: its axes are the room's in that order, None one of length 1, then
    the result's own."""
    from gpureduce.libraries import of_its_kind

    steps = places.c_strides(room.shape, 1)
    inner = range(len(room.shape) - len(room.result.shape), len(room.shape))
    found = [(1, 1) if d is None else (room.shape[d], steps[d]) for d in (*order, *inner)]
    shape, strides = tuple(n for n, _ in found), tuple(step for _, step in found)
    _core.device_mark(room.memory, case.stream)
    return of_its_kind(_core.device_shaped(room.memory, shape, strides), like)


def finished_as(program: Program, maker: Any, wanted: Sequence[Any]) -> Program:
    """The program with results of other dtypes; None leaves one as it is."""
    from gpureduce.custom.values import Complex

    found = []
    for result, kind in zip(program.results, wanted, strict=True):
        if kind is None or kind == result.kind:
            found.append(result)
            continue
        nodes: list[Any] = []
        parts = result.kind.parts
        for n in range(0, len(result.nodes), parts):
            value = Complex(*result.nodes[n : n + 2]) if parts == 2 else result.nodes[n]
            if parts == 2 and not kind.is_complex:
                value = result.nodes[n]
            cast = maker.to(value, kind)
            nodes += cast if isinstance(cast, Complex) else (cast,)
        found.append(result._replace(kind=kind, nodes=tuple(nodes)))
    return program._replace(results=tuple(found))


def mask_of(name: str, where: Any, shape: tuple[int, ...], at: int, stream: int) -> Placed | None:
    if where is True:
        return None
    mask = places.viewed(name, where) or places.brought(
        name, host.mask_of(name, where, shape), at, stream
    )
    if mask.kind.part.kind != "b":
        raise TypeError(f"{name}: where is of dtype {mask.kind.dtype}, not bool")
    if mask.device != at:
        raise ValueError(f"{name}: where is on cuda:{mask.device}, and the inputs on cuda:{at}")
    try:
        fits = np.broadcast_shapes(mask.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"{name}: where of shape {mask.shape} does not fit the shape {shape}")
    return mask
