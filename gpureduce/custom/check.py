"""Whether an operator is what it is said to be, on samples."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpureduce.custom import evaluate
from gpureduce.custom.laws import Verdict
from gpureduce.custom.program import Program

# Numbers that most operators are made for: none is negative.
_SAMPLES = [0.5, 1.0, 2.0, 3.0, 7.0, 11.0]
_LEAST = {"f2": 2.0**-6, "f4": 2.0**-14, "f8": 2.0**-36}  # how far rounding may go
LIMIT = 24  # samples whose triples are tried

States = list[NDArray[Any]]


def _size(states: States) -> NDArray[Any]:
    """How large the numbers of each state are: what is left by rounding goes by the largest."""
    with np.errstate(all="ignore"):
        sizes = [np.abs(np.where(np.isfinite(s), s, 0)).astype(np.float64) for s in states]
    return np.max(np.stack([*sizes, np.full(sizes[0].shape, 1e-30)]), axis=0)  # type: ignore[no-any-return]


def same(program: Program, x: States, y: States, exact: bool = False) -> NDArray[Any]:
    """Which states are the same, by all of their slots."""
    found = np.ones(x[0].shape, bool)
    size = np.maximum(_size(x), _size(y))
    with np.errstate(all="ignore"):
        for slot, a, b in zip(program.slots, x, y, strict=True):
            equal = (a == b) | ((a != a) & (b != b))
            if slot.is_float and not exact:
                equal |= np.abs(a - b) <= _LEAST[slot.name] * size
            found &= equal
    return found


def _stated(program: Program, streams: Sequence[NDArray[Any]]) -> States:
    """The samples' states, and those of neighbours combined."""
    states = evaluate.lifted(program, streams, 0)
    if len(states[0]) > 1:
        pairs = evaluate.combined(program, [s[:-1] for s in states], [s[1:] for s in states])
        states = [np.concatenate(both) for both in zip(states, pairs, strict=True)]
    return [np.ascontiguousarray(s) for s in states]


def _samples(program: Program) -> list[NDArray[Any]]:
    numbers = []
    for n, stream in enumerate(program.streams):
        plain = np.roll(_SAMPLES, -n)
        if stream.scalar.name == "bf16":
            numbers.append((plain.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16))
        else:
            numbers.append(plain.astype(stream.scalar.numpy))
    return numbers


def is_neutral(program: Program, states: States | None = None) -> bool:
    states = states or _stated(program, _samples(program))
    nothing = evaluate.neutral(program, states[0].shape)
    right = evaluate.combined(program, states, nothing)
    left = evaluate.combined(program, nothing, states)
    return bool((same(program, right, states) & same(program, left, states)).all())


def is_idempotent(program: Program) -> bool:
    """Whether there is an identity that two of them are again, so that many may stand in a row."""
    if program.identity is None:
        return False
    nothing = evaluate.neutral(program, ())
    two = evaluate.combined(program, nothing, nothing)
    return bool(same(program, two, nothing, exact=True).all())


def verdict(program: Program, streams: Sequence[NDArray[Any]]) -> Verdict:
    states = [s[:LIMIT] for s in _stated(program, streams)]
    n = len(states[0])
    a, b, c = (grid.reshape(-1) for grid in np.meshgrid(*[np.arange(n)] * 3, indexing="ij"))

    def taken(which: NDArray[Any]) -> States:
        return [s[which] for s in states]

    def both(x: States, y: States) -> States:
        return evaluate.combined(program, x, y)

    left = both(both(taken(a), taken(b)), taken(c))
    right = both(taken(a), both(taken(b), taken(c)))
    holds = same(program, left, right)
    changed = same(program, both(taken(a), taken(b)), both(taken(b), taken(a)))
    example = None
    if not holds.all():
        at = int(np.flatnonzero(~holds)[0])
        operands = [tuple(s[k[at]].item() for s in states) for k in (a, b, c)]
        example = tuple(o[0] if len(o) == 1 else o for o in operands)
    return Verdict(
        bool(holds.all()),
        bool(changed.all()),
        program.identity is None or is_neutral(program, states),
        bool(same(program, left, right, exact=True).all()),
        example,
    )
