"""merge, finish and what is beside them."""

import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from gpureduce import _core
from gpureduce.partial import trees
from gpureduce.partial.axes import along, axes_of
from gpureduce.partial.carrier import Partials, Words, checked
from gpureduce.partial.kinds import INDEX, MERGED, OWN_TREE, Kind, dtype_of, kind_of, name_of
from gpureduce.partial.warn import met_in_words, warn

_ROWS = {(op, dtype): result for op, dtype, result, _ in _core.rows()}
# So that what is added up stays in the second cache.
_WORDS_AT_A_TIME = 1 << 15
# Digits below 2^32 that an int64 holds.
_ADDED_MOST = 1 << 31


def _merged(kind: Kind, raw: Words) -> Words:
    """Along the first axis."""
    outputs = raw.shape[1:-1]
    flat = np.ascontiguousarray(raw).reshape(len(raw), math.prod(outputs), kind.words)
    return _core.partials_merge(kind.row, kind.dtype, kind.number, flat).reshape(
        *outputs, kind.words
    )


def _merged_several(kind: Kind, raws: list[Words]) -> Words:
    """Some outputs at a time, so that no second copy of all is made."""
    shape = raws[0].shape
    if raws[0].size <= _WORDS_AT_A_TIME:
        return _merged(kind, np.asarray(raws))
    flat = [raw.reshape(-1, kind.words) for raw in raws]
    found = np.empty_like(flat[0])
    step = _WORDS_AT_A_TIME // kind.words
    add = kind.additive and sum(int(raw[:, MERGED].max()) for raw in flat) <= _ADDED_MOST
    for start in range(0, len(found), step):
        pieces = [raw[start : start + step] for raw in flat]
        together = [_added(pieces)] if add else pieces
        found[start : start + step] = _merged(kind, np.asarray(together))
    return found.reshape(shape)


def _added(pieces: list[Words]) -> Words:
    total = pieces[0].copy()
    for piece in pieces[1:]:
        total += piece
    return total


def _function(parts: Sequence[Partials]) -> str:
    """What all were asked for; in any order the same."""
    first = parts[0]
    return first.op if all(p.op == first.op for p in parts) else first.kind.function


def canonical(p: Partials) -> Partials:
    """The same words for the same values."""
    return p if p.kind.tree else p.like(_merged(p.kind, p.raw[np.newaxis]))


class Likeness(NamedTuple):
    """What partials that merge have in common."""

    op: str
    kind: str
    shape: tuple[int, ...]


def likeness(p: Partials) -> Likeness:
    return Likeness(p.kind.op, str(p.kind), p.shape)


def difference(other: Likeness, first: Likeness) -> str:
    """Why they do not merge, or nothing."""
    if other.kind != first.kind:
        is_custom = OWN_TREE in other.kind and OWN_TREE in first.kind
        what = "operator or dtype" if is_custom else "dtype" if other.op == first.op else "kind"
        return f"partials of another {what}: {other.kind} do not merge with {first.kind}"
    if other.shape != first.shape:
        return f"partials of another shape: {other.shape}, not {first.shape}"
    return ""


def _check_alike(parts: Sequence[Partials]) -> None:
    for p in parts:
        if not isinstance(p, Partials):
            raise TypeError(f"gpureduce.merge: {type(p).__name__} is no gpureduce.Partials")
        if why := difference(likeness(p), likeness(parts[0])):
            raise ValueError(f"gpureduce.merge: {why}")


def merge(
    parts: Partials | Iterable[Partials], axis: int | Sequence[int] | None = None
) -> Partials:
    """Merge partials into those of all their elements.

    Parameters
    ----------
    parts : Partials, or an iterable of them
        Several: of one kind, dtype and shape, in any order. Parts of a tree (products of floats,
        users' operators) leave nothing out between them. One: its own outputs are merged.
    axis : int or sequence of ints, optional
        Of one, the axes to merge along. All.

    Returns
    -------
    Partials
        Canonical: the same words for the same values, however they were cut and merged.

    Raises
    ------
    ValueError
        The partials are of different kinds, dtypes, versions or shapes; or words were added that
        do not belong together; or parts of a tree overlap or leave something out; or there are
        none.

    Examples
    --------
    >>> halves = [gpureduce.partials(half, "sum") for half in ([1e300, 1.0], [-1e300])]
    >>> float(gpureduce.finish(gpureduce.merge(halves)))
    1.0
    """
    if isinstance(axis, Partials):
        raise TypeError("gpureduce.merge: several partials are given as a list: merge([a, b])")
    if isinstance(parts, Partials):
        if parts.kind.tree:
            raise ValueError("gpureduce.merge: parts of a tree are merged as a list")
        checked(parts, "merge")
        axes = axes_of(axis, parts.ndim, "gpureduce.merge")
        kept = [d for d in range(parts.ndim) if d not in axes]
        raw = parts.raw.transpose(*axes, *kept, parts.ndim)
        count = along(parts.shape, axes)
        shape = (count, *(parts.shape[d] for d in kept), parts.kind.words)
        return parts.like(_merged(parts.kind, raw.reshape(shape)))
    if not isinstance(parts, Iterable):
        raise TypeError(f"gpureduce.merge: {type(parts).__name__} is no gpureduce.Partials")
    several = list(parts)
    if axis is not None:
        raise TypeError("gpureduce.merge: axis is of one array of partials, not of several")
    if not several:
        raise ValueError("gpureduce.merge: there are no partials")
    _check_alike(several)
    if several[0].kind.tree:
        return trees.merged(several)
    for p in several:
        checked(p, "merge")
    kind = several[0].kind
    return Partials(kind, _function(several), _merged_several(kind, [p.raw for p in several]))


def words(p: Partials) -> Words:
    """The words of partials that merge by plain addition, as an array of int64.

    Parameters
    ----------
    p : Partials
        Of sums, means, variances, counts, any and all.

    Returns
    -------
    ndarray of int64
        Without a copy, of the outputs' shape and one axis more. Whatever adds int64 merges them:
        ``numpy.add``, MPI.SUM, NCCL, a database's SUM. After up to 2^31 additions `from_words`
        has to bring them back.

    Raises
    ------
    ValueError
        Partials of this kind do not merge by addition, as those of max and prod do not: use
        `merge`.

    Examples
    --------
    >>> first, second = (gpureduce.partials(x, "sum") for x in ([1e300, 1.0], [-1e300]))
    >>> both = gpureduce.words(first) + gpureduce.words(second)
    >>> float(gpureduce.finish(gpureduce.from_words(both, "sum", "float64")))
    1.0
    """
    if not isinstance(p, Partials):
        raise TypeError(f"gpureduce.words: {type(p).__name__} is no gpureduce.Partials")
    if not p.additive:
        raise ValueError(f"gpureduce.words: partials of {p.kind} do not add; merge() merges them")
    return p.raw


def from_words(words: Any, op: Any, dtype: DTypeLike) -> Partials:
    """Partials of the words that `words` gave, and of sums of them.

    Parameters
    ----------
    words : array_like of int64
        With the words along the last axis.
    op : str or numpy.ufunc
        As it was given to `partials`, or any that the words answer.
    dtype : dtype
        Of the elements.

    Returns
    -------
    Partials

    Raises
    ------
    ValueError
        The words are of another kind, dtype, version, length or byte order, were added to such, or
        more than 2^31 times.

    Examples
    --------
    >>> words = gpureduce.words(gpureduce.partials([1.0, 2.0], "mean"))
    >>> float(gpureduce.finish(gpureduce.from_words(words, "mean", "float64")))
    1.5
    """
    name = name_of(op, "from_words")
    kind = kind_of(name, dtype_of(dtype), "from_words")
    raw = np.asarray(words)
    if raw.dtype.kind != "i" or raw.dtype.itemsize != 8:
        raise ValueError(f"gpureduce.from_words: words are int64, not {raw.dtype}")
    if kind.tree or not kind.additive:
        raise ValueError(f"gpureduce.from_words: partials of {kind} are no words that add")
    if not raw.ndim or raw.shape[-1] != kind.words:
        raise ValueError(
            f"gpureduce.from_words: {kind} has {kind.words} words along the last axis; the shape "
            f"is {raw.shape}"
        )
    return checked(Partials(kind, name, raw.astype(np.int64, copy=False)), "from_words")


# --- finish ---------------------------------------------------------------------------------------


def _asked(kind: Kind, op: Any) -> str:
    name = name_of(op, "finish")
    if name not in kind.answers and f"nan{name}" in kind.answers:
        name = f"nan{name}"
    if name not in kind.answers:
        raise ValueError(
            f"gpureduce.finish: partials of {kind} do not answer {name}, but "
            f"{', '.join(kind.answers)}"
        )
    return name


def _rounded_into(kind: Kind, asked: str, dtype: DTypeLike | None) -> np.dtype[Any]:
    """What the row that finishes is of: floats may be rounded into others."""
    if dtype is None:
        return kind.dtype
    wanted = dtype_of(dtype)
    plain = kind.dtype.name.partition("[")[0]
    known = _ROWS[asked, plain] == wanted.name or wanted == kind.dtype
    is_whole = kind.dtype.kind in "biu" and wanted.kind in "biu"
    is_float = kind.dtype.kind in "fV" and wanted.kind in "fV"
    if known or (is_whole and asked in ("sum", "nansum", "prod", "nanprod")):
        return kind.dtype
    rounds = kind.additive and _ROWS.get((asked, wanted.name)) not in ("bool", "int64", None)
    if rounds and (is_float or kind.dtype.kind == wanted.kind == "c"):
        return wanted
    raise TypeError(
        f"gpureduce.finish: {asked} of {kind.dtype} does not finish into {wanted}; give dtype to "
        "partials() to convert each element first"
    )


def real(ddof: Any, function: str) -> float:
    """ddof as a number, without float()'s reading of texts."""
    try:
        math.isnan(ddof)
    except TypeError:
        raise TypeError(
            f"gpureduce.{function}: ddof must be a real number, not {type(ddof).__name__}"
        ) from None
    return float(ddof)


def finish(p: Partials, op: Any = None, *, ddof: float = 0, dtype: DTypeLike | None = None) -> Any:
    """The result, with the bits that the function gives of all elements at once.

    Parameters
    ----------
    p : Partials
        Of all elements. Of trees, from index 0 on.
    op : str or numpy.ufunc, optional
        Any function that they answer: partials of var answer sum, mean, var and std. By default
        the one that was asked for, ``p.op``.
    ddof : float, optional
        Of var and std: the sum of squares is divided by n - ddof.
    dtype : dtype, optional
        Of the result: floats are rounded once into any float, sums and products of integers are
        taken modulo its range.

    Returns
    -------
    scalar or ndarray
        As the function of that name; two of minmax and argminmax.

    Raises
    ------
    ValueError
        They do not answer op, or have no element where it has no identity; or the words are not of
        this kind; or a tree does not begin at index 0.
    TypeError
        They do not finish into the dtype.

    Examples
    --------
    >>> p = gpureduce.partials([1.0, 2.0, 6.0], "var")
    >>> float(gpureduce.finish(p)), float(gpureduce.finish(p, "std", ddof=1))
    (4.666666666666667, 2.6457513110645907)
    """
    if not isinstance(p, Partials):
        raise TypeError(f"gpureduce.finish: {type(p).__name__} is no gpureduce.Partials")
    if p.kind.tree:
        return trees.finished(p, op, dtype)
    checked(p, "finish")
    asked = _asked(p.kind, p.op if op is None else op)
    into = _rounded_into(p.kind, asked, dtype)
    flat = np.ascontiguousarray(p.raw).reshape(p.size, p.kind.words)
    found, least = _core.partials_finish(
        p.kind.row, p.kind.dtype, INDEX[asked], into, real(ddof, "finish"), flat
    )
    warn(asked, p.kind, found, least, ddof, lambda: met_in_words(p.kind, flat), len(p.shape))
    if dtype is not None and found.dtype != dtype_of(dtype):
        found = found.astype(dtype_of(dtype))
    several = len(found) // p.size if p.size else 1 + (asked in ("minmax", "argminmax"))
    results = [found[n::several].reshape(p.shape)[()] for n in range(several)]
    return results[0] if several == 1 else tuple(results)


def fingerprint(x: Any, op: Any = "sum", **how: Any) -> str:
    """A digest of what was summed that no order, cut or machine changes.

    Parameters
    ----------
    x : array_like or Partials
        Partials, or what `partials` takes.
    op : str, optional
        Of arrays, as for `partials`: "sum" tells sums apart, "var" sums of squares too.
    **how
        As for `partials`: axis, dtype, where.

    Returns
    -------
    str
        SHA-256, in hexadecimal, of the canonical bytes. Equal for equal exact sums and counts of
        one dtype.

    Examples
    --------
    >>> gpureduce.fingerprint([1.0, 2.0]) == gpureduce.fingerprint([2.0, 1.0])
    True
    """
    from gpureduce.partial.form import tobytes
    from gpureduce.partial.take import partials

    if isinstance(x, Partials) and (how or (op != "sum" and op not in x.answers)):
        raise TypeError(
            f"gpureduce.fingerprint: partials of {x.kind} are taken already: give them alone"
        )
    p = x if isinstance(x, Partials) else partials(x, op, **how)
    return hashlib.sha256(tobytes(p, p.kind.function)).hexdigest()
