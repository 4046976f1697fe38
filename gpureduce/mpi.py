"""MPI: reductions over the parts that each rank has, with the bits of the whole array.

Nothing of mpi4py is imported: a communicator brings what is needed.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from gpureduce.partial.carrier import Partials
from gpureduce.partial.kinds import MERGES_MOST
from gpureduce.partial.merging import finish, merge
from gpureduce.partial.take import partials

# Words of one MPI call, whose counts are C ints.
_WORDS_MOST = 1 << 27


class _Told(NamedTuple):
    """What a rank tells the others before any of them waits for words."""

    error: str
    kind: str
    shape: tuple[int, ...]
    words: int
    length: int


def _along(x: Any, axis: Any) -> int:
    """How far this rank's part goes along the reduced axes."""
    shape = np.shape(x)
    if axis is None:
        return int(np.prod(shape, dtype=np.int64))
    axes = np.lib.array_utils.normalize_axis_tuple(axis, len(shape), "axis")
    return int(np.prod([shape[d] for d in axes], dtype=np.int64))


def _disagreement(told: Sequence[_Told]) -> str:
    """Why the ranks cannot go on together, the same on all of them."""
    for rank, one in enumerate(told):
        if one.error:
            return f"rank {rank} failed: {one.error}"
    for rank, one in enumerate(told):
        if one.kind != told[0].kind:
            return f"rank 0 has {told[0].kind}, rank {rank} {one.kind}"
        if one.shape != told[0].shape:
            return f"rank 0 has outputs of shape {told[0].shape}, rank {rank} of {one.shape}"
    return ""


def _agree(comm: Any, p: Partials | None, error: Exception | None, length: int) -> list[_Told]:
    mine = _Told(f"{type(error).__name__}: {error}", "", (), 0, 0)
    if p is not None:
        mine = _Told("", str(p.kind), p.shape, p.raw.shape[-1], length)
    told: list[_Told] = comm.allgather(mine)
    why = _disagreement(told)
    if why and error:
        raise error
    if why:
        raise ValueError(f"allreduce: {why}")
    return told


def _added(comm: Any, p: Partials) -> Partials:
    """By MPI.SUM, which is the default of Allreduce."""
    mine = np.ascontiguousarray(p.raw).reshape(-1)
    everybody = np.empty_like(mine)
    for start in range(0, len(mine), _WORDS_MOST):
        part = slice(start, start + _WORDS_MOST)
        comm.Allreduce(mine[part], everybody[part])
    return p.like(everybody.reshape(p.raw.shape))


def _gathered(comm: Any, p: Partials) -> Partials:
    return merge(comm.allgather(p))


def allreduce_partials(comm: Any, p: Partials) -> Partials:
    """All ranks' partials, merged, on each of them.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        Or what has its ``allgather`` and ``Allreduce``.
    p : Partials
        Of this rank; of one kind and shape on all.

    Returns
    -------
    Partials

    Raises
    ------
    ValueError
        On all ranks: kinds or shapes differ, or parts of a tree do not follow each other in the
        order of the ranks.
    """
    told = _agree(comm, p, None, 0)
    if p.additive and len(told) <= MERGES_MOST:
        return merge([_added(comm, merge([p]))])
    return _gathered(comm, p)


def allreduce(
    comm: Any,
    x: ArrayLike,
    op: Any,
    axis: int | Sequence[int] | None = None,
    *,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    where: Any = True,
    ddof: float = 0,
    device: str = "auto",
) -> Any:
    """Reduce an array of which each rank has a part.

    The parts lie one after the other, in the order of the ranks, along the reduced axis (in C order
    of several), and their lengths may differ. Sums, means, variances and counts travel as words
    that MPI.SUM adds; extremes, positions and trees (products of floats, users' operators) are
    gathered, and positions are those in the whole.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        Or what has its ``allgather`` and ``Allreduce``. All its ranks call.
    x : array_like
        This rank's part, in the host's memory; it may be empty.
    op : str, numpy.ufunc or Operator
        As for `gpureduce.partials`.
    axis : int or sequence of ints, optional
        The axes to reduce. All.
    dtype, keepdims, where, device
        As for `gpureduce.partials`.
    ddof : float, optional
        Of var and std.

    Returns
    -------
    scalar or ndarray
        On every rank: the bits that the function gives of the whole array, for any number of ranks.

    Raises
    ------
    ValueError
        On all ranks: one has failed, or they have other dtypes, operators or shapes of outputs.
        The rank that failed raises its own error.

    Examples
    --------
    >>> from mpi4py import MPI
    >>> gpureduce.mpi.allreduce(MPI.COMM_WORLD, part, "mean", axis=0)  # doctest: +SKIP
    """
    p, error, length = None, None, 0
    try:
        p = _taken(x, op, axis, dtype, keepdims, where, 0, device)
        length = p.stop if p.kind.tree else _along(x, axis)
    except Exception as caught:
        error = caught
    told = _agree(comm, p, error, length)
    assert p is not None
    before = sum(one.length for one in told[: comm.Get_rank()])
    if not p.additive and before and (p.kind.tree or p.kind.is_position):
        p = _taken(x, op, axis, dtype, keepdims, where, before, device)
    whole = merge([_added(comm, p)]) if p.additive else _gathered(comm, p)
    asked = None if p.kind.tree else op
    return finish(whole, asked, ddof=ddof)


def _taken(
    x: Any, op: Any, axis: Any, dtype: Any, keepdims: bool, where: Any, offset: int, device: str
) -> Partials:
    return partials(
        x, op, axis, dtype=dtype, keepdims=keepdims, where=where, offset=offset, device=device
    )
