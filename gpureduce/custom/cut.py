"""How an operator's work is cut for a device: dimensions as its kernels take them, and who folds
what."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from gpureduce.custom.device import Shape
from gpureduce.custom.layout import Dim, joined

TICKETS = 4096  # of the scratch that streams keep, with what else is before its nodes
POOL = 4 * (4096 + 1024)
WARP = 32
BLOCKS = 4  # of a multiprocessor's share, that the last of them be no longer than others
LANES_LEAST = 16  # outputs side by side, for which threads go across them
BRANCH = 8  # bytes beside a state


class Dims(NamedTuple):
    """A dimension's strides are those of the arrays, then of the results."""

    kept: tuple[Dim, ...]
    reduced: tuple[Dim, ...]
    outputs: int
    elements: int  # of an output


class Cut(NamedTuple):
    """team, rows, tiles, split, nodes: those of a gpr_operator_args."""

    by_warps: bool
    team: int
    rows: int
    tiles: int
    split: int
    nodes: int
    blocks: int
    scratch: int
    is_own: bool


def _nearness(dim: Dim, arrays: int) -> int:
    return max((abs(s) for s in dim.strides[:arrays]), default=0)


def dims_of(
    shape: Sequence[int],
    axes: Sequence[int],
    strides: Sequence[Sequence[int]],
    outs: Sequence[Sequence[int]],
    is_cut: bool,
) -> Dims:
    """strides of each array along the shape; outs: of each result along what is kept. is_cut: the
    one axis stays as it is, for segments of it."""
    kept, reduced, place = [], [], 0
    for d, length in enumerate(shape):
        along = tuple(s[d] if length > 1 else 0 for s in strides)
        if d in axes:
            reduced.append(Dim(length, (*along, *(0 for _ in outs)), 0))
        else:
            kept.append(Dim(length, (*along, *(s[place] for s in outs)), 0))
            place += 1
    outputs = math.prod(dim.length for dim in kept)
    count = math.prod(dim.length for dim in reduced)
    if not is_cut:
        reduced = joined([dim for dim in reduced if dim.length != 1])
    nothing = Dim(count, (0,) * (len(strides) + len(outs)), 0)
    far_first = sorted(
        (dim for dim in kept if dim.length != 1),
        key=lambda dim: _nearness(dim, len(strides)),
        reverse=True,
    )
    return Dims(tuple(joined(far_first)), tuple(reduced) or (nothing,), outputs, count)


def _doubled(wide: int, high: int, enough: int) -> tuple[int, int]:
    """Units across outputs in place of those along the index that would have nothing."""
    while high > 1 and high // 2 >= enough:
        wide, high = 2 * wide, high // 2
    return wide, high


def cut(
    shape: Shape, dims: Dims, arrays: int, outputs: int, count: int, multiprocessors: int
) -> Cut:
    """outputs: of all segments; count: of the longest."""
    near = _nearness(dims.kept[-1], arrays) if dims.kept else 0
    along = _nearness(dims.reduced[-1], arrays)
    across = dims.kept and outputs >= LANES_LEAST and near < along
    row = WARP * shape.leaves
    by_warps = not across and count >= 2 * row
    units = shape.threads // WARP if by_warps else shape.threads
    least = row * shape.rows if by_warps else shape.leaves
    steps = -(-count // least)
    if across:
        wide, high = WARP, units // WARP
        while wide < units and wide < outputs and high > steps:
            wide, high = 2 * wide, high // 2
    else:
        wide, high = _doubled(1, units, steps)
    tiles = -(-outputs // wide)
    split = _split(tiles, -(-steps // high), multiprocessors, shape)
    blocks = tiles * split
    nodes = POOL if tiles <= TICKETS else -(-4 * tiles // 16) * 16
    branch = -(-shape.state // 8) * 8 + BRANCH
    scratch = nodes + blocks * wide * branch if split > 1 else 0
    return Cut(
        by_warps, wide if across or by_warps else -wide, high, tiles, split, nodes,
        min(blocks, 1 << 30), scratch, tiles > TICKETS,
    )  # fmt: skip


def _split(tiles: int, steps: int, multiprocessors: int, shape: Shape) -> int:
    """Blocks that share an output: parts are powers of two, and none is so long that its nodes do
    not fit the stack."""
    slots = multiprocessors * 2
    wanted = -(-slots * BLOCKS // tiles) if tiles < slots * BLOCKS // 2 else 1
    deepest = -(-steps // (1 << (shape.depth - 2)))
    return max(1, min(wanted, -(-steps // 2)), deepest)
