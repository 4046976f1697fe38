"""partials(): a reduction up to its last step."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from gpureduce import _core
from gpureduce.caller import told_of
from gpureduce.functions import _is_custom
from gpureduce.partial import positions, trees
from gpureduce.partial.axes import axes_of
from gpureduce.partial.carrier import Partials
from gpureduce.partial.given import integer
from gpureduce.partial.host import array_of, mask_of
from gpureduce.partial.kinds import (
    _OPERATORS,
    COUNT,
    HEADER,
    INDEX,
    Kind,
    dtype_of,
    kind_of,
    name_of,
)
from gpureduce.progress import Progress, shown

# What a mask leaves out is the least or the greatest to the kernels, and cannot be both.
_OF_BOTH_ENDS = ("ptp", "minmax")
_OF_POSITIONS = "which tells argmin and its like where offset lies: give offset as one integer"


def _check(name: str, axis: Any, dtype: Any, where: Any, whole: Any) -> None:
    op = _OPERATORS[INDEX[name]]
    if dtype is not None and not op["takes_dtype"]:
        raise TypeError(f"gpureduce.partials: {name} takes no dtype")
    if where is not True and (op["position"] or name in _OF_BOTH_ENDS):
        raise TypeError(f"gpureduce.partials: {name} takes no where")
    if whole is not None and not op["position"]:
        raise TypeError(f"gpureduce.partials: {name} takes no whole, {_OF_POSITIONS}")
    if whole is not None and axis is not None:
        raise ValueError(
            f"gpureduce.partials: whole {whole} is of positions among all axes: along axis {axis} "
            "offset alone tells where x begins"
        )


def partials(
    x: ArrayLike,
    op: Any,
    axis: int | Sequence[int] | None = None,
    *,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    where: Any = True,
    offset: int | Sequence[int] = 0,
    whole: Sequence[int] | None = None,
    device: str = "auto",
    progress: Progress = False,
) -> Partials:
    """Reduce up to the last step: exact states that merge, travel and are finished elsewhere.

    Parameters
    ----------
    x : array_like
        A part of the whole array, of any layout. What lies on a device is copied to the host's
        memory first, where partials are and are taken.
    op : str, numpy.ufunc or Operator
        A function's name ("sum", "mean", "nanstd", "argmax", ...), a ufunc of its meaning, or an
        operator of your own.
    axis : int or sequence of ints, optional
        The axes to reduce. All.
    dtype : dtype, optional
        Each element is converted to it first: finish() then gives what the function gives of
        x.astype(dtype). An operator of your own takes none.
    keepdims : bool, optional
        Whether reduced axes stay, with length 1.
    where : array_like of bool, optional
        Which elements count; is broadcast. An output may have none.
    offset : int or sequence of ints, optional
        Of argmin and its like, of products of floats and of users' operators: where x begins in
        the whole array, as the index of its first element along the reduced axes (in C order of
        them). With `whole`, its place along each axis of the whole array, whose index argmin of
        all axes then gives. To other operators it makes no difference.
    whole : sequence of ints, optional
        Of argmin and its like of all axes: the shape of the whole array.
    device : {"auto", "cpu"}, optional
        They are taken on the CPU, wherever the array lies.
    progress : bool or callable, optional
        As for the functions of the package.

    Returns
    -------
    Partials
        One for each place of the axes that are left.

    Raises
    ------
    TypeError
        There are no partials of the operator for the dtype, or it does not take dtype, where or
        whole.
    ValueError
        op is not known; or device is another; or offset is negative, too large or not within the
        whole array.
    numpy.exceptions.AxisError
        An axis is out of bounds.

    Notes
    -----
    The accumulators: Kulisch and Miranker (1986). The words: docs/partials.md.

    Examples
    --------
    >>> x = np.random.default_rng(1).normal(size=(1000, 3)).astype(np.float32)
    >>> parts = [gpureduce.partials(x[i:i + 300], "std", axis=0) for i in (600, 0, 900, 300)]
    >>> same = gpureduce.finish(gpureduce.merge(parts), "std") == gpureduce.std(x, axis=0)
    >>> bool(same.all())
    True
    """
    if device not in ("auto", "cpu"):
        raise ValueError(
            "gpureduce.partials: they are taken on the CPU, wherever the array lies: device is "
            f"auto or cpu, not {device!r}"
        )
    if _is_custom(op):
        from gpureduce.partial.operators import taken_by

        if dtype is not None:
            raise TypeError(
                f"gpureduce.partials: {op.name} takes no dtype: convert with x.astype() first"
            )
        if whole is not None:
            raise TypeError(f"gpureduce.partials: {op.name} takes no whole, {_OF_POSITIONS}")
        return taken_by(op, x, axis, keepdims, where, offset)
    a = array_of(x, "partials")
    where = mask_of(where, "partials", a.shape)
    name = name_of(op, "partials")
    _check(name, axis, dtype, where, whole)
    dtype = dtype_of(dtype) if dtype is not None else None
    kind = kind_of(name, dtype_of(a.dtype) if dtype is None else dtype, "partials")
    if kind.tree:
        if dtype is not None and dtype != a.dtype:
            with told_of("cast"):
                a = a.astype(dtype)
        with told_of("reduce"):
            return trees.taken(kind, a, axis, keepdims, where, offset)
    how = (
        INDEX[name],
        a,
        _axis(kind, axis, a.ndim),
        dtype,
        bool(keepdims),
        where,
        "cpu",
        kind.number,
    )
    p = Partials(kind, name, shown(progress, "partials", _core.partials, *how, False))
    if kind.op in ("var", "nanvar") and kind.dtype.kind in "fV":
        _look_for_signs(p, a, op=kind.op, axis=axis, dtype=dtype, where=where, keepdims=keepdims)
    if type(offset) is int and offset == 0 and whole is None:
        return p
    if kind.is_position:
        positions.shift(p, offset, whole, a.shape)
    else:
        trees.start_of(offset)
    return p


def shape_of(x: Any, op: Any) -> tuple[int, ...]:
    """Of what partials() would fold: of an operator's inputs together."""
    if _is_custom(op):
        from gpureduce.partial.operators import shape_of

        return shape_of(op, x)
    return tuple(np.shape(x if hasattr(x, "shape") else array_of(x, "partials")))


def _look_for_signs(p: Partials, a: NDArray[Any], *, op: str, **how: Any) -> None:
    """Whether zeros alone are all -0.0, which the sum of their squares does not tell."""
    some = np.logical_or.reduce(p.raw[..., HEADER + 4 :], axis=-1)
    if np.logical_and.reduce(some, axis=None):
        return
    zeros = (p.raw[..., COUNT] != 0) & ~p.raw[..., HEADER : HEADER + 3].any(-1) & ~some
    if zeros.any():
        sums = partials(a, op.replace("var", "sum"), **how).raw
        p.raw[..., HEADER + 3] = np.where(zeros, sums[..., HEADER + 3], p.raw[..., HEADER + 3])


def _axis(kind: Kind, axis: Any, dims: int) -> Any:
    """As the extension takes it."""
    if axis is None:
        return None
    if kind.is_position:
        axis = integer(axis, f"gpureduce.partials: axis of {kind.op}")
    axes = axes_of(axis, dims, "gpureduce.partials")
    return axis if kind.is_position else axes
