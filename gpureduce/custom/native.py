"""A program folded by what the machine's compiler made of it."""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpureduce.custom import emit_c, toolchain
from gpureduce.custom.graph import cost_of
from gpureduce.custom.layout import Layout, layout_of
from gpureduce.custom.program import Program
from gpureduce.custom.work import Slice, run

LAYOUTS_MOST = 64
_NODES = 8  # of gpr_call
# Elements of one call, a millisecond or some ten; fewer of operators that cost more than so many
# additions, or Ctrl-C would wait.
SLICE, SLICE_LEAST, SLICE_COST = 1 << 18, 1 << 10, 512

Progress = Callable[[int, int], object] | None
Arrays = Sequence[NDArray[np.generic]]


def _address(array: NDArray[Any]) -> int:
    """array.ctypes.data takes three times as long."""
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


class Native:
    """The compiled form of a program."""

    def __init__(self, program: Program, library: ctypes.CDLL):
        self.program = program
        self.layouts: dict[Any, Layout] = {}
        self.lanes = emit_c.shape(program)["LANES"]
        cost = cost_of(program.combine) + cost_of(program.lift)
        self.slice = max(SLICE_LEAST, SLICE // max(1, cost // SLICE_COST))
        integer, pointer = ctypes.c_int64, ctypes.c_void_p
        self.fold, self.close, self.segments = (
            library.gpr_fold,
            library.gpr_close,
            library.gpr_segments,
        )
        self.fold.argtypes = [pointer, *[integer] * 5]
        self.close.argtypes = [pointer, *[integer] * 3]
        self.segments.argtypes = [pointer, pointer, pointer, *[integer] * 3]
        for function in (self.fold, self.close, self.segments):
            function.restype = None

    def layout(
        self,
        arrays: Arrays,
        shapes: Sequence[tuple[int, ...]],
        shape: tuple[int, ...],
        axes: tuple[int, ...],
    ) -> Layout:
        """Kept, as arrays of one layout come again."""
        key = (shape, axes, *((a.shape, a.strides) for a in arrays))
        found = self.layouts.get(key)
        if found is None:
            if len(self.layouts) >= LAYOUTS_MOST:
                self.layouts.clear()
            found = layout_of(arrays, self.program.streams, shapes, shape, axes)
            self.layouts[key] = found
        return found

    def reduce(
        self, layout: Layout, arrays: Arrays, outs: Arrays, initial: bytes | None, tell: Progress
    ) -> None:
        """Into outs, one array a result, its numbers one behind the other."""
        call = Prepared(self.program, layout, arrays, outs, initial)
        if not layout.outputs:
            return
        least = min(layout.outputs, self.lanes) if layout.across else 1
        part = layout.leaves
        if part * least > 2 * self.slice:
            part = 1 << max(4, (self.slice // least).bit_length() - 1)
        parts = -(-layout.leaves // part) if part else 1
        if parts > 1:
            call.give_nodes(parts * layout.outputs * self.program.struct.itemsize)
            step = least
        else:
            step = max(least, self.slice // max(part, 1) // least * least)
        total = layout.outputs * layout.leaves
        slices = _slices(layout, step, part, parts)
        number = -(-layout.outputs // step) * parts
        run(slices, number, total, lambda *a: self.fold(call.address, *a), tell)
        if parts > 1:
            self.close(call.address, 0, layout.outputs, parts)

    def reduce_segments(
        self,
        layout: Layout,
        arrays: Arrays,
        outs: Arrays,
        initial: bytes | None,
        bounds: tuple[NDArray[np.int64], NDArray[np.int64]],
        tell: Progress,
    ) -> None:
        """Of the one reduced dimension the segments; outs have them first."""
        call = Prepared(self.program, layout, arrays, outs, initial)
        starts, stops = bounds
        if not layout.outputs or not len(starts):
            return
        sizes = np.maximum(stops - starts, 1) * layout.outputs
        ends = np.cumsum(sizes)
        cuts = np.unique(
            np.searchsorted(ends, np.arange(self.slice, int(ends[-1]), self.slice)) + 1
        )
        edges = [0, *cuts[cuts < len(starts)].tolist(), len(starts)]
        slices = [Slice((s, end), int(sizes[s:end].sum())) for s, end in pairwise(edges)]
        first, last = _address(starts), _address(stops)

        def fold(s: int, end: int) -> None:
            self.segments(call.address, first, last, s, end, layout.outputs)

        run(slices, len(slices), int(ends[-1]), fold, tell)


def _slices(layout: Layout, step: int, part: int, parts: int) -> Iterator[Slice]:
    for o in range(0, layout.outputs, step):
        end = min(o + step, layout.outputs)
        for number in range(parts):
            first = number * part
            stop = min(first + part, layout.leaves)
            where = number if parts > 1 else -1
            yield Slice((o, end, first, stop, where), (end - o) * (stop - first))


class Prepared:
    """A gpr_call of engine.c, whose members are eight bytes each, and what it points to."""

    def __init__(
        self,
        program: Program,
        layout: Layout,
        arrays: Arrays,
        outs: Arrays,
        initial: bytes | None,
    ):
        dims = (*layout.kept, *layout.reduced)
        streams = program.streams
        self.inputs = [(s.input, at) for s, at in zip(streams, layout.offsets, strict=True)]
        self.outs, steps = [], []
        for k, (result, out) in enumerate(zip(program.results, outs, strict=True)):
            size = out.itemsize // result.kind.parts
            for number in range(len(result.nodes)):
                self.outs.append((k, number * size))
                steps.append(len(result.nodes) * size)
        strides = [dim.strides[n] for n in range(len(streams)) for dim in dims]
        lengths = [len(streams), len(dims), len(strides), len(self.outs), len(steps), 0]
        self.numbers = np.array(
            [*[0] * len(streams), *(dim.length for dim in dims), *strides, *[0] * len(self.outs),
             *steps, *(dim.place for dim in layout.kept)], np.int64
        )  # fmt: skip
        self.data = self.numbers[: len(streams)]
        self.to = self.numbers[sum(lengths[:3]) : sum(lengths[:4])]
        self.swapped = np.array([not arrays[s.input].dtype.isnative for s in streams], np.int32)
        self.initial = np.frombuffer(initial, np.uint8).copy() if initial is not None else None
        at, ends = _address(self.numbers), []
        for length in lengths:
            ends.append(at)
            at += 8 * length
        left = 0 if self.initial is None else _address(self.initial)
        self.call = np.array(
            [*ends[:3], _address(self.swapped), *ends[3:], left, 0, len(layout.kept),
             len(layout.reduced), layout.outputs, layout.leaves, layout.across], np.int64
        )  # fmt: skip
        self.address = _address(self.call)
        self.point_to(arrays, outs)

    def point_to(self, arrays: Arrays, outs: Arrays) -> None:
        """These are read and written from now on: they lie as those that it was made for."""
        at, to = [_address(a) for a in arrays], [_address(out) for out in outs]
        self.data[:] = [at[k] + offset for k, offset in self.inputs]
        self.to[:] = [to[k] + offset for k, offset in self.outs]
        self.kept_alive: Any = (arrays, outs)

    def give_nodes(self, size: int) -> None:
        self.nodes = np.empty(-(-size // 8), np.uint64)
        self.call[_NODES] = _address(self.nodes)


def native(program: Program) -> Native | None:
    """None where there is no compiler."""
    library = toolchain.library(emit_c.host(program), emit_c.level(program))
    return None if library is None else Native(program, library)
