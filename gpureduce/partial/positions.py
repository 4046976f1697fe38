"""Where argmin and its like found what they looked for: in a part, and in the whole array."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpureduce.partial import trees
from gpureduce.partial.carrier import Partials
from gpureduce.partial.given import integers
from gpureduce.partial.kinds import COUNT, HEADER, Kind


def shift(p: Partials, offset: Any, whole: Any, shape: tuple[int, ...]) -> None:
    """Positions in a part of this shape become positions in the whole array."""
    found = p.raw[..., COUNT] != 0
    for place in _words_of(p.kind):
        index: NDArray[np.int64] = p.raw[..., place]
        if whole is None:
            index[found] += trees.start_of(offset, int(index[found].max(initial=0)))
        elif found.any():
            index[found] = _place(index[found], offset, whole, shape)


def _place(index: NDArray[np.int64], offset: Any, whole: Any, shape: tuple[int, ...]) -> Any:
    at = integers(offset, "gpureduce.partials: offset")
    full = integers(whole, "gpureduce.partials: whole")
    if not len(at) == len(full) == len(shape):
        raise ValueError(
            f"gpureduce.partials: offset {at} and whole {full} have one number for each of the "
            f"array's {len(shape)} axes, all of which are reduced"
        )
    if any(o < 0 or o + n > w for o, n, w in zip(at, shape, full, strict=True)):
        raise ValueError(
            f"gpureduce.partials: a part {shape} at {at} is not within the whole {full}"
        )
    places = np.unravel_index(index, shape)
    moved = tuple(p + o for p, o in zip(places, at, strict=True))
    return np.ravel_multi_index(moved, full)


def end_of(p: Partials) -> int:
    """One past the last position."""
    found = p.raw[p.raw[..., COUNT] != 0]
    return int(found[:, _words_of(p.kind)].max(initial=-1)) + 1


def _words_of(kind: Kind) -> list[int]:
    """Where indices stand."""
    both = kind.op.endswith("argminmax")
    return [HEADER, HEADER + (kind.words - HEADER) // 2] if both else [HEADER]
