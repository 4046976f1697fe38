"""check_operator(): whether an operator is what it is said to be."""

from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from gpureduce.caller import tell
from gpureduce.custom import arrays as host
from gpureduce.custom import runner
from gpureduce.custom.operator import Operator


class Verdict(NamedTuple):
    """What check_operator() found: whether the law holds on all samples, up to rounding. exact
    says whether associativity holds in every bit; example is the first that breaks it."""

    associative: bool
    commutative: bool
    neutral: bool
    exact: bool
    example: tuple[Any, ...] | None


def check_operator(op: Operator, samples: ArrayLike) -> Verdict:
    """Try an operator's laws on all triples of samples, and of neighbours combined.

    Parameters
    ----------
    op : Operator
        It is run by NumPy here, as on machines without a compiler.
    samples : array_like
        Elements; of an operator with several inputs a tuple of arrays. The first 24 states count.

    Returns
    -------
    namedtuple
        associative, commutative and neutral (the identity), up to rounding; exact: whether
        associativity holds in every bit; example: three operands that break it, or None.

    Raises
    ------
    TypeError
        op is no `Operator`, or the samples are no numbers.
    ValueError
        There is no sample.

    Examples
    --------
    >>> minus = gpureduce.Operator("f8", combine="a - b")
    >>> gpureduce.check_operator(minus, [1.0, 2.0, 3.0]).associative
    False
    """
    from gpureduce.custom.check import LIMIT, verdict

    if not isinstance(op, Operator):
        raise TypeError(f"gpureduce.check_operator: {op!r} is no gpureduce.Operator")
    case, _ = op._case(op.several(samples), True)
    if 0 in case.shape:
        raise ValueError("gpureduce.check_operator: there is no sample")
    program = op._program(tuple(host.kind(op.name, array.dtype) for array in case.arrays))
    case = case._replace(made=runner.Made(program, None))
    streams = [runner.stream(case, n) for n in range(len(program.streams))]
    found = verdict(program, [s.reshape(-1)[:LIMIT] for s in streams])
    if op.commutative and not found.commutative:
        tell(f"{op.name}: it is said to commute, and does not on these samples")
    return found
