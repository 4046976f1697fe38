"""Accumulator: one reduction of blocks that come one after the other."""

import os
import threading
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from gpureduce.caller import told_of
from gpureduce.partial import form, merging, positions
from gpureduce.partial.carrier import Partials
from gpureduce.partial.given import lengths
from gpureduce.partial.host import array_of, mask_of
from gpureduce.partial.kinds import dtype_of
from gpureduce.partial.take import partials

# Outputs whose blocks are taken at a time: their words stay below some ten megabytes.
_OUTPUTS = 1 << 15


class Accumulator:
    """A running reduction: blocks are added as they come, and the result can be asked at any time.

    Parameters
    ----------
    op : str, numpy.ufunc or Operator
        As for `partials`.
    shape : tuple of int, optional
        Of the outputs. A block has this shape, or more axes before it, which are reduced; of
        outputs of shape () all of a block is.
    dtype : dtype, optional
        Blocks are converted to it. float64.

    Attributes
    ----------
    partials : Partials
        Of all that was added.
    added : int
        How many elements were added to each output, those that do not count with them; those of
        partials that were merged are not known, but for parts of a tree.

    Notes
    -----
    Adding from several threads at once is safe. Where the order matters, as of argmin and prod,
    the blocks are in the order in which they were added.

    Examples
    --------
    >>> acc = gpureduce.Accumulator("var", shape=(2,), dtype="float32")
    >>> for block in np.float32([[[1, 10], [2, 20]], [[3, 30], [4, 40]]]):
    ...     acc.add(block)
    >>> acc.result(), acc.result("mean")
    (array([  1.25, 125.  ], dtype=float32), array([ 2.5, 25. ], dtype=float32))
    """

    def __init__(self, op: Any, shape: tuple[int, ...] | int = (), dtype: DTypeLike = np.float64):
        self.op = op
        self.shape = lengths(shape, "gpureduce.Accumulator: shape")
        self.dtype = dtype_of(dtype)
        self.added = 0
        self._lock = threading.Lock()
        self._partials = self._taken(np.empty((0, *self.shape), self.dtype), True)

    @property
    def _in_one(self) -> bool:
        return bool(self._partials.kind.tree) or self._partials.size <= _OUTPUTS

    @property
    def partials(self) -> Partials:
        with self._lock:
            p = self._partials
            return p if self._in_one else p.like(p.raw.copy())

    def __repr__(self) -> str:
        return f"<gpureduce.Accumulator {self._partials.kind}, shape {self.shape}>"

    def _taken(self, rows: Any, where: Any) -> Partials:
        return partials(rows, self.op, axis=0, where=where, offset=self.added)

    def _converted(self, given: NDArray[Any]) -> NDArray[Any]:
        are_integers = {given.dtype.kind, self.dtype.kind} <= set("iu")
        if (
            given.size
            and not are_integers
            and not np.can_cast(given.dtype, self.dtype, "same_kind")
        ):
            raise TypeError(
                f"gpureduce.Accumulator.add: {given.dtype} is not converted to {self.dtype}: give "
                "the Accumulator another dtype, or the block converted"
            )
        with told_of("cast"):
            return given.astype(self.dtype)

    def _rows(self, block: ArrayLike, where: Any) -> tuple[Any, Any]:
        """With all that is reduced along the first axis."""
        given = array_of(block, "Accumulator.add")
        if given.dtype.newbyteorder("=") != self.dtype:
            given = self._converted(given)
        extra = given.ndim - len(self.shape)
        if extra < 0 or given.shape[extra:] != self.shape:
            raise ValueError(
                f"gpureduce.Accumulator.add: a block of shape {given.shape} does not end with "
                f"{self.shape}"
            )
        rows = given.reshape(-1, *self.shape) if 0 not in given.shape else given[:0]
        if 0 in given.shape:
            rows = np.empty((int(np.prod(given.shape[:extra])), *self.shape), self.dtype)
        if where is True:
            return rows, True
        mask = mask_of(where, "Accumulator.add", given.shape)
        return rows, np.broadcast_to(mask, given.shape).reshape(rows.shape)

    def add(self, block: ArrayLike, where: Any = True) -> None:
        """Adds a block's elements.

        Parameters
        ----------
        block : array_like
            Of the outputs' shape, with any axes before it.
        where : array_like of bool, optional
            Which elements count; is broadcast to the block.

        Raises
        ------
        ValueError
            The block does not end with the outputs' shape.
        """
        rows, mask = self._rows(block, where)
        with self._lock:
            if self._in_one:
                taken = self._taken(rows, mask)
                self._partials = merging.merge([self._partials, taken])
            else:
                self._add_many(rows, mask)
            self.added += len(rows)

    def _add_many(self, rows: Any, mask: Any) -> None:
        """Some outputs at a time, in place: partials are tens of times as large as results."""
        flat = rows.reshape(len(rows), -1)
        at = mask if mask is True else mask.reshape(flat.shape)
        raw = self._partials.raw.reshape(-1, self._partials.kind.words)
        for start in range(0, len(raw), _OUTPUTS):
            part = slice(start, start + _OUTPUTS)
            taken = self._taken(flat[:, part], at if at is True else at[:, part])
            both = [self._partials.like(raw[part]), taken]
            raw[part] = merging.merge(both).raw

    def merge(self, other: "Accumulator | Partials") -> None:
        """Adds what another accumulator, or partials of the outputs' shape, have.

        Raises
        ------
        ValueError
            They are of another kind, dtype or shape, or parts of a tree that do not follow; or
            partials of positions, which do not tell how many elements they are of.
        """
        added = other.added if isinstance(other, Accumulator) else 0
        more = other.partials if isinstance(other, Accumulator) else other
        with self._lock:
            if self._partials.kind.is_position:
                if not isinstance(other, Accumulator):
                    raise ValueError(
                        f"gpureduce.Accumulator.merge: partials of {more.kind} do not tell how "
                        "many elements they are of: merge an Accumulator"
                    )
                more = more.like(more.raw.copy())
                positions.shift(more, self.added, None, ())
            self._partials = merging.merge([self._partials, more]).asked(self._partials.op)
            self.added += added or more.stop - more.start

    def result(self, op: Any = None, *, ddof: float = 0, dtype: DTypeLike | None = None) -> Any:
        """What the function gives of all that was added; as `finish`."""
        with self._lock:
            return merging.finish(self._partials, op, ddof=ddof, dtype=dtype)

    def save(self, file: str | os.PathLike[str] | IO[bytes]) -> None:
        """Writes what was added to a path, aside and renamed, or to an open file.

        Raises
        ------
        TypeError
            Of users' operators, whose accumulators are pickled.
        """
        with self._lock:
            data = self.added.to_bytes(8, "little") + form.tobytes(self._partials)
        if not isinstance(file, str | os.PathLike):
            file.write(data)
            return
        path = Path(file)
        aside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            aside.write_bytes(data)
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)

    @classmethod
    def load(cls, file: str | os.PathLike[str] | IO[bytes]) -> "Accumulator":
        """Back from `save`, to go on.

        Raises
        ------
        ValueError
            The file holds none, or it is damaged or cut short.
        """
        is_path = isinstance(file, str | os.PathLike)
        data = Path(file).read_bytes() if is_path else file.read()  # type: ignore[arg-type,union-attr]
        p = form.frombytes(data[8:], "Accumulator.load")
        added = int.from_bytes(data[:8], "little")
        least = positions.end_of(p) if p.kind.is_position else p.stop
        if added < least or (p.kind.tree and added != p.stop):
            raise ValueError(
                f"gpureduce.Accumulator.load: {added} elements cannot be: the file is damaged"
            )
        made = cls(p.op, p.shape, p.dtype)
        made._partials, made.added = p, added
        return made

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())
