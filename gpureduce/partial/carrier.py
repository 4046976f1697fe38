"""The array of partials."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpureduce import _core
from gpureduce.partial.kinds import COUNT, Kind

Words = NDArray[np.int64]


class Partials:
    """Exact, unfinished reductions: an array with one for each output.

    Made by `partials`, `merge`, `from_words` and `Accumulator`; finished by `finish`. Indexing,
    ``reshape`` and pickling are an array's. ``tobytes`` and ``frombytes`` are the form for files
    and networks, the same on every machine and equal for equal values.

    Attributes
    ----------
    op : str
        The function that was asked for, which `finish` gives by default. Merged partials that were
        asked for several have the one that their kind is named by, as sum of sum and mean.
    dtype : numpy.dtype
        Of the elements that were folded.
    answers : tuple of str
        The functions that they can be finished as.
    additive : bool
        Whether ``words`` merge by plain ``+``.
    shape, ndim, size
        Of the outputs.
    start, stop : int
        Of parts of a tree: the indices that were folded.

    Examples
    --------
    >>> p = gpureduce.partials(np.float32([[1, 2], [3, 5]]), "mean", axis=0)
    >>> p.shape, p.op, p.answers
    ((2,), 'mean', ('sum', 'mean'))
    """

    __slots__ = ("kind", "op", "raw", "start", "stop")

    def __init__(self, kind: Kind, op: str, raw: Words, start: int = 0, stop: int = 0):
        self.kind = kind
        self.op = op
        self.raw = raw
        self.start, self.stop = start, stop

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.kind.dtype

    @property
    def answers(self) -> tuple[str, ...]:
        return self.kind.answers

    @property
    def additive(self) -> bool:
        return self.kind.additive

    @property
    def shape(self) -> tuple[int, ...]:
        return self.raw.shape[:-1]

    @property
    def ndim(self) -> int:
        return self.raw.ndim - 1

    @property
    def size(self) -> int:
        return math.prod(self.raw.shape[:-1])

    @property
    def nbytes(self) -> int:
        return self.raw.nbytes

    def __repr__(self) -> str:
        place = f", [{self.start}, {self.stop})" if self.kind.tree else ""
        of = f" for {self.op}" if self.op != self.kind.function else ""
        return f"<gpureduce.Partials {self.kind}{of}, shape {self.shape}{place}>"

    def __reduce__(self) -> Any:
        from gpureduce.partial.form import frombytes, tobytes

        if self.kind.tree and not self.kind.tree.has_bytes:
            return _unpickled, (self.kind.tree.described(), self.raw, self.start, self.stop)
        return frombytes, (tobytes(self),)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of partials of one output")
        return int(self.raw.shape[0])

    def __iter__(self) -> "Iterator[Partials]":
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> "Partials":
        given = index if isinstance(index, tuple) else (index,)
        if not any(i is Ellipsis for i in given):
            given = (*given, Ellipsis)
        return self.like(self.raw[(*given, slice(None))])

    def __eq__(self, other: object) -> Any:
        """Whether all of them are of equal values, whatever function was asked for."""
        if not isinstance(other, Partials):
            return NotImplemented
        from gpureduce.partial.merging import canonical

        same = self.kind.text == other.kind.text and self.shape == other.shape
        if not same or (self.start, self.stop) != (other.start, other.stop):
            return False
        return bool((canonical(self).raw == canonical(other).raw).all())

    __hash__ = None  # type: ignore[assignment]

    def like(self, raw: Words) -> "Partials":
        return Partials(self.kind, self.op, raw, self.start, self.stop)

    def asked(self, op: str) -> "Partials":
        return Partials(self.kind, op, self.raw, self.start, self.stop)

    def reshape(self, *shape: Any) -> "Partials":
        """The same partials in another shape, as ``numpy.reshape`` has it."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        return self.like(self.raw.reshape(*wanted, self.raw.shape[-1]))

    def tobytes(self) -> bytes:
        """The form for files and networks: canonical, so that equal values that were asked for the
        same function have the same bytes.

        Raises
        ------
        TypeError
            Of users' operators, which are pickled.
        """
        from gpureduce.partial.form import tobytes

        return tobytes(self)

    @staticmethod
    def frombytes(data: bytes) -> "Partials":
        """Back from ``tobytes``.

        Raises
        ------
        ValueError
            The bytes are no partials, of another version or byte order, damaged, or cut short.
        """
        from gpureduce.partial.form import frombytes

        return frombytes(data)

    @property
    def count(self) -> Any:
        """How many elements counted in each output; where the operator keeps no count, whether
        there was one."""
        return self.raw[..., COUNT][()]


def _unpickled(described: Any, raw: Words, start: int, stop: int) -> Partials:
    from gpureduce.partial.operators import described_kind

    kind = described_kind(*described)
    return Partials(kind, kind.op, raw, start, stop)


def checked(p: Partials, function: str) -> Partials:
    """Words that were added by others may be of several kinds, which only shows here."""
    if p.kind.tree:
        return p
    wrong = _core.partials_check(p.kind.number, np.ascontiguousarray(p.raw))
    if not wrong:
        return p
    raise ValueError(f"gpureduce.{function}: {_WRONG[wrong].format(p.kind)}")


# By gpr_partials_check().
_WRONG = {
    1: "the words are not those of {} (version 1): some are of another operator, dtype or version, "
    "were added to such, or are damaged",
    2: "the words have the other byte order, not this machine's",
    3: "more than 2^31 partials were added without a merge() between, and digits may have "
    "overflowed",
}
