"""A call of an operator on a device: from the caller's arrays to results of their kind."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpureduce import _core
from gpureduce.custom import arrays as host
from gpureduce.custom import device, places
from gpureduce.custom.places import Placed
from gpureduce.custom.program import Program, Result
from gpureduce.partial.given import check_mask


class Made(NamedTuple):
    """A program for devices: its kernels by name, each compiled when it is first launched."""

    program: Program
    device: device.Device
    kernels: dict[str, Any]


def made(program: Program) -> Made:
    text = device.device(program)
    kernels = {
        kernel: _core.operator_program(text.header, text.defines, kernel)
        for kernel in device.kernels(text.shape)
    }
    return Made(program, text, kernels)


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
    """How what takes a result lies; strides along what is kept, the segments first."""

    strides: tuple[int, ...]
    inner: tuple[int, ...]  # of the result's own axes


# --- results --------------------------------------------------------------------------------------


class Space(NamedTuple):
    """What a result takes, in C order; strides in bytes."""

    dtype: str
    size: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    result: Result


class Room(NamedTuple):
    """Memory for a result."""

    memory: Any
    address: int
    space: Space


def space_of(result: Result, kept: tuple[int, ...]) -> Space:
    shape, kind = kept + result.shape, result.kind
    name = "bfloat16" if kind.part.name == "bf16" else kind.dtype.name
    strides = places.c_strides(shape, kind.parts * kind.part.bytes)
    return Space(name, math.prod(shape), shape, strides, result)


def room(space: Space, device: int, stream: int) -> Room:
    memory = _core.device_memory(device, stream, space.dtype, space.size)
    return Room(memory, _core.device_address(memory), space)


def to_host(room: Room, device: int, stream: int) -> NDArray[Any]:
    kind, shape = room.space.result.kind, room.space.shape
    is_bits = kind.part.name == "bf16"
    found = np.empty(shape, np.uint16 if is_bits else kind.dtype)
    if found.size:
        _core.device_get(device, stream, room.address, found.reshape(-1).view(np.uint8))
    return found.view(kind.dtype) if is_bits else found


def ordered(space: Space, order: Sequence[int | None]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides, in elements, of the space's axes in that order, None one of length 1, then
    the result's own."""
    steps = places.c_strides(space.shape, 1)
    inner = range(len(space.shape) - len(space.result.shape), len(space.shape))
    found = [(1, 1) if d is None else (space.shape[d], steps[d]) for d in (*order, *inner)]
    return tuple(n for n, _ in found), tuple(step for _, step in found)


def of_its_kind(room: Room, lies: tuple[Any, Any], stream: int, like: Any) -> Any:
    """An array of like's library."""
    from gpureduce.libraries import of_its_kind

    _core.device_mark(room.memory, stream)
    return of_its_kind(_core.device_shaped(room.memory, *lies), like)


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
    like_it = np.broadcast_to(np.empty((), mask.kind.dtype), mask.shape)
    check_mask(like_it, shape, f"{name}: where")
    if mask.device != at:
        raise ValueError(f"{name}: where is on cuda:{mask.device}, and the inputs on cuda:{at}")
    return mask
