"""MPI: reductions over the parts that each rank has, with the bits of the whole array.

Nothing of mpi4py is imported: a communicator brings what is needed.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from gpureduce.partial.axes import along, axes_of
from gpureduce.partial.carrier import Partials
from gpureduce.partial.merging import Likeness, difference, finish, likeness, merge
from gpureduce.partial.take import partials, shape_of

_Result = TypeVar("_Result")

# Words of one MPI call, whose counts are C ints.
_WORDS_MOST = 1 << 27


class _Told(NamedTuple):
    """What a rank tells the others before any of them waits for words: why it failed, or what its
    partials are like."""

    error: str
    like: Likeness | None


def _tried(work: Callable[[], _Result]) -> tuple[_Result | None, Exception | None]:
    try:
        return work(), None
    except Exception as error:
        return None, error


def _raise_everywhere(errors: Sequence[str], own: Exception | None) -> None:
    """The same on all ranks; where it happened the error itself."""
    if not any(errors):
        return
    if own:
        raise own
    rank = next(n for n, error in enumerate(errors) if error)
    raise ValueError(f"gpureduce.mpi.allreduce: rank {rank} {errors[rank]}")


def _failed(error: Exception | None) -> str:
    return f"failed: {type(error).__name__}: {error}" if error else ""


def _agree(comm: Any, p: Partials | None, error: Exception | None) -> None:
    mine = _Told(_failed(error), likeness(p) if p is not None else None)
    told: list[_Told] = comm.allgather(mine)
    _raise_everywhere([one.error for one in told], error)
    first = told[0].like
    assert first
    unlike = [difference(one.like, first) if one.like else "" for one in told]
    _raise_everywhere([f"has {why}" if why else "" for why in unlike], None)


def _before(comm: Any, x: Any, op: Any, axis: Any) -> int:
    """How far the parts of the ranks before this one go along the reduced axes."""

    def length() -> int:
        shape = shape_of(x, op)
        return along(shape, axes_of(axis, len(shape), "gpureduce.mpi.allreduce"))

    mine, error = _tried(length)
    told: list[tuple[str, int]] = comm.allgather((_failed(error), mine or 0))
    _raise_everywhere([why for why, _ in told], error)
    return sum(n for _, n in told[: comm.Get_rank()])


def _added(comm: Any, p: Partials) -> Partials:
    """By MPI.SUM, which is the default of Allreduce."""
    mine = np.ascontiguousarray(p.raw).reshape(-1)
    everybody = np.empty_like(mine)
    for start in range(0, len(mine), _WORDS_MOST):
        part = slice(start, start + _WORDS_MOST)
        comm.Allreduce(mine[part], everybody[part])
    return p.like(everybody.reshape(p.raw.shape))


def _merged(comm: Any, p: Partials) -> Partials:
    return merge([_added(comm, merge([p]))] if p.additive else comm.allgather(p))


def _check(comm: Any, function: str) -> None:
    if not (hasattr(comm, "allgather") and hasattr(comm, "Allreduce")):
        raise TypeError(
            f"gpureduce.mpi.{function}: comm is {type(comm).__name__}, which has no allgather and "
            "Allreduce: give a communicator of mpi4py"
        )


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
        On all ranks: kinds or shapes differ, or parts of a tree overlap or leave something out.
    """
    _check(comm, "allreduce_partials")
    _agree(comm, p, None)
    return _merged(comm, p)


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
    _check(comm, "allreduce")
    before = _before(comm, x, op, axis)
    how: dict[str, Any] = {"dtype": dtype, "keepdims": keepdims, "where": where, "device": device}
    p, error = _tried(lambda: partials(x, op, axis, offset=before, **how))
    _agree(comm, p, error)
    assert p is not None
    return finish(_merged(comm, p), ddof=ddof)
