"""@gpureduce.operator: Python functions as operators."""

from collections.abc import Callable
from typing import Any, overload

from numpy.typing import DTypeLike

from gpureduce.custom.operator import Operator


@overload
def operator(function: Callable[..., Any], /) -> Operator: ...
@overload
def operator(
    function: None = None,
    /,
    *,
    state: DTypeLike | None = None,
    lift: Callable[..., Any] | None = None,
    identity: Any = None,
    finish: Callable[..., Any] | None = None,
    inputs: str | None = None,
    commutative: bool = False,
    name: str | None = None,
) -> Callable[[Callable[..., Any]], Operator]: ...
def operator(
    function: Callable[..., Any] | None = None,
    /,
    *,
    state: DTypeLike | None = None,
    lift: Callable[..., Any] | None = None,
    identity: Any = None,
    finish: Callable[..., Any] | None = None,
    inputs: str | None = None,
    commutative: bool = False,
    name: str | None = None,
) -> Any:
    """Make an `Operator` of a Python function of two states, or of two numbers.

    The function is not called: its text is translated, as that of a C operator. It may use
    arithmetic, comparisons, local names, ``if`` and conditional expressions, loops over ``range``
    of known length, the functions of ``math`` and NumPy's on numbers, and constants from outside.
    Types are NumPy's: a number of Python's takes the type of what it meets. What it may not use is
    refused, with its line.

    Parameters
    ----------
    function : callable
        ``combine(a, b)``. States with fields are read as ``a.mean``, and given back as a tuple in
        the order of the fields.
    state, identity, inputs, commutative, name
        As for `Operator`; the identity is a number, or one for each field.
    lift : callable, optional
        ``lift(x)`` gives the state of an element; an argument that is called ``i`` is the index.
    finish : callable, optional
        ``finish(a)`` gives the result, or a dict of results.

    Returns
    -------
    Operator
        Or a decorator that makes one, without a function.

    Raises
    ------
    ValueError
        The function cannot be translated; the message says why and where (``OperatorError``).

    Examples
    --------
    >>> @gpureduce.operator(identity=0.0)
    ... def hypot(a, b):
    ...     return math.sqrt(a * a + b * b)
    >>> float(hypot(np.array([3.0, 4.0])))
    5.0
    """
    if function is None:
        return lambda given: _made(given, state, lift, identity, finish, inputs, commutative, name)
    return _made(function, state, lift, identity, finish, inputs, commutative, name)


def _made(
    function: Any, state: Any, lift: Any, identity: Any, finish: Any, inputs: Any,
    commutative: bool, name: str | None,
) -> Operator:  # fmt: skip
    from gpureduce.custom.inputs import fixed, strings_checked
    from gpureduce.custom.python_source import source_of

    if function is None:
        raise TypeError("gpureduce.operator takes a function of two states, not None")
    given = ((function, "two states"), (lift, "an element"), (finish, "a state"))
    sources = [None if f is None else source_of(f, of) for f, of in given]
    strings_checked(name=name)
    plain = name or function.__name__.strip("<>")
    return _of_sources(sources, state, fixed(identity), inputs, commutative, plain)


def _of_sources(
    sources: Any, state: Any, identity: Any, inputs: Any, commutative: bool, name: str
) -> Operator:
    from gpureduce.custom.front_functions import Functions
    from gpureduce.custom.inputs import inputs_of
    from gpureduce.custom.state import state_of

    combine, lift, finish = sources
    kind = None if state is None else state_of(state)
    front = Functions(kind, combine, lift, identity, finish, inputs_of(inputs))
    made = Operator.__new__(Operator)
    described = (sources, state, identity, inputs, commutative, name)
    made._set_up(front, name, commutative, (_of_sources, described))
    made._try()
    return made
