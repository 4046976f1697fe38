"""How an operator's work is cut for a device: dimensions as its kernels take them, and who folds
what."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gpureduce.custom.device import (
    BY_THREADS,
    BY_WARPS,
    FEW,
    FEW_THREADS,
    STAGED,
    STAGED_THREADS,
    Shape,
)
from gpureduce.custom.layout import Dim, joined

TICKETS = 4096  # of the scratch that streams keep, with what else is before its nodes
POOL = 4 * (4096 + 1024)
WARP = 32
# What a warp could read while a part begins and ends, in bytes, where there are 32. On an H200
# hypot of 1 GiB took 308, 299, 291 and 341 us by parts of 64 to 512 KiB, 4,224 at a time.
PART_BESIDE = 8 << 10
# The same of a thread across outputs, where half of the blocks that fit read as fast as all. Hypot
# of 4096 rows of as many took 70, 42, 32, 36, 48 and 57 us by 128, 256, 512, 1,024, 4,096 and 8,192
# blocks, of 16384 302, 294, 298, 302 and 364 by 1,024, 2,048, 4,096, 8,192 and 32,768.
THREAD_BESIDE = 192
PARTS = 1024  # of blocks that share outputs, at most where their nodes fit, as trees_cut.h has it
FAN, BLOCKS_FAN = 64, 32  # neighbouring parts that one warp folds, and a block (climb.cuh)
ACROSS = 32  # outputs side by side of a block: of 64 and 128 columns took a tenth longer
ROW_LEAST = 512  # elements of an output that are worth a warp
LANES_LEAST = 16  # outputs side by side, for which threads go across them
BRANCH = 8  # bytes beside a state
# As kernels/gpu/tree_few.cuh has them; outputs, whose places it reckons in 32 bits.
FEW_DIMS, FEW_MOST, FEW_OUTPUTS = 3, 4, (1 << 31) - 1
# Blocks of a multiprocessor, a block's bytes, and its nodes that one thread folds, as
# kernels/gpu/tree_staged.cuh has them.
STAGED_BLOCKS, ROOM, STAGED_FAN = 4, 44 << 10, 8
STAGE_FEW = 4096  # bytes of an output that one block folds, were it the only one
# Of longer ones a block has room for so many, or warps fold them: of rows of 27 KB, one at a time,
# float32's hypot read at 36 % of an H200's limit, where warps do at 58.
STAGED_LEAST = 2


class Dims(NamedTuple):
    """A dimension's strides are those of the arrays, then of the results."""

    kept: tuple[Dim, ...]
    reduced: tuple[Dim, ...]
    outputs: int
    elements: int  # of an output


class Cut(NamedTuple):
    """team, rows, tiles, split, nodes: those of a gpr_operator_args."""

    kernel: str
    threads: int
    team: int
    rows: int
    tiles: int
    split: int
    blocks: int = 0
    nodes: int = POOL
    scratch: int = 0
    is_own: bool = False


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


def staged_most(shape: Shape, count: int) -> int:
    """Outputs that a block has room for, or less than one; an odd number of them lies between an
    output's nodes."""
    unit = shape.unit * shape.leaf
    leaves = ROOM // (unit + shape.state) * unit // 16 * 16
    units = -(-count // shape.unit)
    nodes = (ROOM - leaves) // (units * shape.state)
    others = leaves // (-(-units // STAGED_FAN) * shape.state)
    return min(leaves // (count * shape.leaf), (min(nodes, others) - 1) | 1)


def staged(shape: Shape, dims: Dims, outputs: int, count: int, multiprocessors: int) -> Cut | None:
    """Of one packed array, if its outputs lie behind each other and several, or a long one, are a
    block's."""
    size = count * shape.leaf
    is_piece = len(dims.reduced) == 1 and len(dims.kept) <= 1
    if not is_piece or any(dim.strides[0] != size for dim in dims.kept):
        return None
    if count < 2 or (outputs < multiprocessors and size > STAGE_FEW):
        return None
    most = staged_most(shape, count)
    if most < (STAGED_LEAST if size > STAGE_FEW else 1):
        return None
    slots = multiprocessors * STAGED_BLOCKS
    waves = -(-outputs // (most * slots))
    team = -(-outputs // (waves * slots))
    tiles = -(-outputs // team)
    return Cut(STAGED, STAGED_THREADS, team, 1, tiles, 1, min(tiles, 1 << 30))


def few(shape: Shape, dims: Dims, outputs: int, count: int, multiprocessors: int) -> Cut | None:
    """Of arrays that lie as they should, if threads fold outputs by themselves: of few outputs a
    thread has one."""
    if not 0 < count <= shape.leaves or len(dims.reduced) > FEW_DIMS or outputs > FEW_OUTPUTS:
        return None
    leaves = max(2, 1 << (count - 1).bit_length())
    size = leaves * shape.leaf
    each = FEW_MOST if size <= 32 else FEW_MOST // 2 if size <= 64 else 1
    single = -(-outputs // FEW_THREADS)
    fair = multiprocessors * shape.blocks * shape.threads // FEW_THREADS
    blocks = max(-(-single // each), min(single, fair))
    return Cut(FEW.format(leaves), FEW_THREADS, 1, 1, blocks, 1, blocks)


def cut(
    shape: Shape, dims: Dims, arrays: int, outputs: int, count: int, multiprocessors: int
) -> Cut:
    """outputs: of all segments; count: of the longest."""
    near = _nearness(dims.kept[-1], arrays) if dims.kept else 0
    along = _nearness(_line(dims.reduced, WARP * shape.packet), arrays)
    across = dims.kept and outputs >= LANES_LEAST and near < along
    if not across and count >= ROW_LEAST:
        return _by_warps(shape, outputs, count, multiprocessors * shape.warps)
    steps = -(-count // shape.leaves)
    wide = _wide(shape.threads, outputs, steps if across else -(-count // shape.run), bool(across))
    high = shape.threads // wide
    tiles = -(-outputs // wide)
    branch = -(-shape.state // 8) * 8 + BRANCH
    unit, resident = shape.leaves * shape.leaf, max(1, multiprocessors * shape.blocks // 2)

    def time(share: int) -> int:
        parts, size = -(-steps // (share * high)), min(share, steps) * unit
        waves = -(-tiles * parts // resident)
        last = size // 64  # blocks end apart
        while parts > 1:  # and a thread of the last one of some neighbours reads some nodes
            last += -(-min(parts, BLOCKS_FAN) // high) * branch + THREAD_BESIDE
            parts = -(-parts // BLOCKS_FAN)
        return waves * (size + THREAD_BESIDE) + last

    most = min(1 << (shape.depth - 2), steps)  # so that a part's nodes fit the stack
    least = 1
    while least < most and -(-steps // (least * high)) > PARTS:
        least *= 2
    split = -(-steps // (_share(least, most, time) * high)) or 1 if across else 1
    how = Cut(BY_THREADS, shape.threads, wide if across else -wide, high, tiles, split)
    return _cut(how, BLOCKS_FAN, wide * branch)


def _cut(how: Cut, fan: int, size: int) -> Cut:
    """With its blocks, and the scratch that parts need, a node of so many bytes each; as many of
    them as `fan` have one above them, and so on (climb.cuh)."""
    how = how._replace(blocks=min(how.tiles * how.split, 1 << 30))
    if how.split == 1:
        return how
    above, parts = 0, how.split
    while parts > 1:
        parts = -(-parts // fan)
        above += parts
    tickets, nodes = how.tiles * above, how.tiles * (how.split + above) * size
    before = POOL if tickets <= TICKETS else -(-4 * tickets // 16) * 16
    return how._replace(nodes=before, scratch=before + nodes, is_own=tickets > TICKETS)


def _share(share: int, most: int, time: Callable[[int], int]) -> int:
    """Of shares that are powers of two the one that takes the least time, or a smaller one: more
    parts end more evenly."""
    best = share
    while share < most:
        share *= 2
        if 50 * time(share) < 49 * time(best):
            best = share
    return best


def _by_warps(shape: Shape, outputs: int, count: int, resident: int) -> Cut:
    """Parts are powers of two, for so many warps at a time."""
    share = WARP * shape.packet * shape.rows
    beside = PART_BESIDE * 32 // shape.warps

    def time(share: int) -> int:
        waves = -(-outputs * -(-count // share) // resident)
        return waves * (min(share, count) * shape.leaf + beside)

    split = -(-count // _share(share, count, time))
    return _cut(Cut(BY_WARPS, WARP, 1, 1, outputs, split), FAN, shape.state)


def _line(reduced: Sequence[Dim], least: int) -> Dim:
    """What comes after a line of at least so many elements, or the elements of one."""
    length = 1
    for dim in reversed(reduced):
        length *= dim.length
        if length >= least:
            break
    return dim


def _wide(threads: int, outputs: int, steps: int, across: bool) -> int:
    """A block's threads across outputs: beyond the least of them, as many as would have nothing to
    do along the index."""
    wide = min(ACROSS, threads) if across else 1
    while across and wide > WARP and 8 * (-(-outputs // wide) * wide - outputs) > outputs:
        wide //= 2
    while wide < threads and threads // wide // 2 >= steps:
        wide *= 2
    return wide
