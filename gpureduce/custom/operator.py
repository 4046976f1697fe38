"""The public operators: what users write, made for each dtype when it is first asked for."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from gpureduce.caller import tell, told_of
from gpureduce.chunked import takes_operators
from gpureduce.custom import again, runner
from gpureduce.custom import arrays as host
from gpureduce.custom.locks import Lock
from gpureduce.custom.outputs import each, packed
from gpureduce.custom.places import device_of
from gpureduce.partial.axes import along, axes_of, left_of
from gpureduce.progress import Progress, shown

_NO = np._NoValue


class Operator:
    """An associative operator of a user's own, folded along the one tree over the index.

    It need not commute: operands stand in the order of the index, and the bits are the same
    for every layout and any number of threads. Compiled by the machine's C compiler when it is
    first called with arrays of some dtypes, and kept for the next process.

    Parameters
    ----------
    state : dtype or str, optional
        What is combined: a dtype, one with fields, or their list, as in
        ``"n: i8, mean: f8, m: f8[3][3]"``; 256 bytes at most. An ``exact f4`` or
        ``exact f8`` is a sum that ``+`` and ``-`` leave exact, and that is rounded when it is read.
        Without it the state is one number, of the dtype that the input and ``combine`` give it.
    combine : str
        How two states, ``a`` and ``b`` in their order, are one: ``a.mean`` reads a field, and
        results are assigned by bare names. C's expressions and statements, with ``;`` or a new
        line between them; any other name that is assigned is a local. Of a state that is one
        number, ``a`` and ``b`` are the numbers and the last expression is the result.
    lift : str, optional
        The state of one element: ``x``, ``y``, ``z`` and ``w`` are the inputs, ``i`` is the index
        along the reduced axes. By default ``x``, for a state that is one number.
    identity : str, number, tuple or dict, optional
        The neutral state. Without it, there is nothing to give where there is no element.
    finish : str or dict of str, optional
        The result as an expression of the fields, or several by name. By default the state.
    inputs : str, optional
        Other names for the inputs, as in ``"x, weight, m[3][3]"``; one with lengths is an array
        that has them as its last axes.
    commutative : bool, optional
        Whether ``b`` and ``a`` may change places. The tree, and its bits, are the same.
    name : str, optional
        What it is called in messages.

    Raises
    ------
    ValueError
        What is written cannot be used; the message says where (``OperatorError``).

    Notes
    -----
    ``+ - * / sqrt fma`` and the other functions that IEEE 754 defines give the same bits
    everywhere; ``exp``, ``log``, ``sin`` and their like are each machine's own, in the last bits.
    Integers wrap around, and of a division by 0 an integer is 0.

    Examples
    --------
    >>> total = gpureduce.Operator("f8", combine="a + b", identity=0.0)
    >>> float(total(np.arange(5.0)))
    10.0
    """

    def __init__(
        self,
        state: DTypeLike | None = None,
        *,
        combine: str,
        lift: str | None = None,
        identity: Any = None,
        finish: str | Mapping[str, str] | None = None,
        inputs: str | None = None,
        commutative: bool = False,
        name: str = "operator",
    ):
        from gpureduce.custom.front_text import Texts
        from gpureduce.custom.inputs import fixed, inputs_of, texts_of
        from gpureduce.custom.state import state_of

        finish, identity = texts_of(combine, finish, lift=lift, name=name), fixed(identity)
        own = None if state is None else state_of(state)
        made = Texts(own, lift, combine, identity, finish, inputs_of(inputs))
        again_made = partial(
            Operator, state, combine=combine, lift=lift, identity=identity, finish=finish,
            inputs=inputs, commutative=commutative, name=name,
        )  # fmt: skip
        self._set_up(made, name, commutative, (again_made, ()))
        self._try()

    def _set_up(self, front: Any, name: str, commutative: bool, reduced: Any) -> None:
        self._front = front
        self.name = name
        self.commutative = bool(commutative)
        self._reduced = reduced
        self._lock = Lock()
        self._made: dict[Any, Any] = {}
        self.kept: dict[Any, Any] = {}
        self._warned = False

    def __reduce__(self) -> Any:
        return self._reduced

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return tuple(i.name for i in self._front.inputs)

    def __repr__(self) -> str:
        given = ", ".join(i.name + "".join(f"[{n}]" for n in i.shape) for i in self._front.inputs)
        return f"<gpureduce.Operator {self.name}({given})>"

    def __call__(
        self,
        *inputs: ArrayLike,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = _NO,
        where: Any = True,
        device: str = "auto",
        progress: Progress = False,
    ) -> Any:
        """Reduce the inputs, broadcast against each other.

        Parameters
        ----------
        *inputs : array_like
            As many as the operator has; of any layout.
        axis : int or tuple of ints, optional
            The axes to reduce. All.
        dtype : dtype, or a tuple or dict of them, optional
            Of the results, which are cast to it.
        out : ndarray or tuple of ndarrays, optional
            Takes the results, and is returned.
        keepdims : bool, optional
            Whether reduced axes stay, with length 1.
        initial : number, tuple or dict, optional
            A state, which stands left of all others.
        where : array_like of bool, optional
            Which elements count; the others are the identity.
        device : str, optional
            Where to work: "cpu", "cuda", "cuda:1", or where the inputs lie ("auto").
        progress : bool or callable, optional
            As for the functions of the package.

        Returns
        -------
        scalar, array of the inputs' kind, or a namedtuple of them
            The results by name. One output alone comes to the host.
        """
        is_plain = dtype is None and out is None and initial is _NO and where is True
        what = None
        if is_plain and device == "auto" and not progress:
            what = again.asked(self, inputs, axis, keepdims)
            if what and (call := self.kept.get(what.kind)):
                return call(what.given, inputs)
        if any(map(takes_operators, inputs)):
            from gpureduce.chunked.own import reduce as reduce_chunks

            given = {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims}
            given |= {"where": where, "device": device, "progress": progress}
            return reduce_chunks(self, inputs, {**given, "initial": initial})
        masks = () if where is True else (where,)
        there = device_of(self.name, device, (*inputs, *masks))
        if there is not None:
            from gpureduce.custom.device_calls import reduce

            return reduce(
                self, there, inputs, axis, dtype, out, keepdims, initial, where, progress, what
            )
        case, mask = self._case(inputs, where)
        axes = axes_of(axis, len(case.shape), self.name)
        has_none = not along(case.shape, axes) and all(left_of(case.shape, axes, False))
        case = self._complete(case, mask, initial, has_none)
        if what:
            again.keep(self.kept, what, again.on_host(self.name, case, axes, keepdims))
        outs = shown(progress, self.name, runner.reduce, case, axes)
        results = case.made.program.results
        found = runner.dressed(results, outs)
        if keepdims:
            full = left_of(case.shape, axes, True)
            found = [f.reshape(full + r.shape) for f, r in zip(found, results, strict=True)]
        return self._given_back(results, found, dtype, out)

    def reduceat(
        self, a: Any, offsets: ArrayLike, axis: Any = 0, dtype: Any = None, out: Any = None,
        *, device: str = "auto", progress: Progress = False,
    ) -> Any:  # fmt: skip
        """As ``gpureduce.reduceat(a, offsets, operator, axis)``."""
        starts = host.bounds_of(self.name, "offsets", offsets)

        def bounds(n: int) -> Any:
            wrong = starts[(starts < 0) | (starts >= n)]
            if len(wrong):
                raise IndexError(
                    f"{self.name}: offset {wrong[0]} is not within the axis of length {n}"
                )
            stops = np.append(starts[1:], n)
            return starts, np.where(stops > starts, stops, starts + 1)

        return self._segments(a, axis, bounds, dtype, out, _NO, device, progress)

    def segments(
        self, a: Any, starts: ArrayLike, stops: ArrayLike, axis: Any = 0, dtype: Any = None,
        out: Any = None, initial: Any = _NO, *, device: str = "auto", progress: Progress = False,
    ) -> Any:  # fmt: skip
        """As ``gpureduce.segments(a, starts, stops, operator, axis)``."""
        found = (
            host.bounds_of(self.name, "starts", starts),
            host.bounds_of(self.name, "stops", stops),
        )

        def bounds(n: int) -> Any:
            runner.check_bounds(self.name, *found, n)
            return found

        return self._segments(a, axis, bounds, dtype, out, initial, device, progress)

    # --- one call -------------------------------------------------------------------------------

    def several(self, a: Any) -> tuple[Any, ...]:
        """What reduce() and its like take as one: the inputs, a tuple where there are more."""
        return tuple(a) if len(self._front.inputs) > 1 and isinstance(a, tuple | list) else (a,)

    def counted(self, inputs: Sequence[Any]) -> Any:
        """What the inputs are for."""
        given = self._front.inputs
        if len(inputs) != len(given):
            names = ", ".join(i.name for i in given)
            raise TypeError(f"{self.name} takes {len(given)} inputs, {names}, not {len(inputs)}")
        return given

    def _case(self, inputs: Sequence[Any], where: Any) -> Any:
        from gpureduce.custom.layout import shape_of

        given = self.counted(inputs)
        found = [host.taken(self.name, a) for a in inputs]
        shape = shape_of(self.name, found, given)
        made: Any = runner.Made
        return runner.Case(made, given, found, shape, None), host.mask_of(self.name, where, shape)

    def _complete(self, case: Any, mask: Any, initial: Any, has_none: bool) -> Any:
        """The case with the program that is needed, the mask and the initial state."""
        kinds = tuple(host.kind(self.name, a.dtype) for a in case.arrays)
        is_absent, left = self.chosen(kinds, mask is not None, initial, has_none)
        arrays = [*case.arrays, *([] if mask is None else [mask])]
        made = self._compiled(kinds, mask is not None, is_absent)
        return case._replace(made=made, arrays=arrays, initial=left)

    def chosen(self, kinds: Any, masked: bool, initial: Any, has_none: bool) -> tuple[bool, Any]:
        """Whether states may be none, and the numbers of the initial one."""
        from gpureduce.custom.check import is_idempotent

        plain = self._program(kinds)
        is_needed = has_none or masked
        is_absent = is_needed and not is_idempotent(plain)
        if is_needed and plain.identity is None and initial is _NO:
            raise ValueError(
                f"zero-size array to reduction operation {self.name} which has no identity"
                if has_none
                else f"reduction operation {self.name!r} does not have an identity, so to use a "
                "where mask one has to specify 'initial'"
            )
        left = None if initial is _NO else self._initial(plain, initial, is_absent)
        return is_absent, left

    def _segments(
        self, a: Any, axis: Any, bounds: Any, dtype: Any, out: Any, initial: Any, device: str,
        progress: Progress,
    ) -> Any:  # fmt: skip
        inputs = self.several(a)
        there = device_of(self.name, device, inputs)
        if there is not None:
            from gpureduce.custom.device_calls import segments

            return segments(self, there, a, axis, bounds, dtype, out, initial, progress)
        case, _ = self._case(inputs, True)
        at = host.one_axis(self.name, axis, len(case.shape))
        starts, stops = bounds(case.shape[at])
        outputs = all(left_of(case.shape, (at,), False))
        has_none = bool((stops <= starts).any()) and outputs
        case = self._complete(case, None, initial, has_none)
        outs = shown(progress, self.name, runner.segments, case, at, starts, stops)
        results = case.made.program.results
        return self._given_back(results, runner.dressed(results, outs), dtype, out)

    def _given_back(self, results: Any, found: list[Any], dtype: Any, out: Any) -> Any:
        names = tuple(r.name for r in results)
        for n, wanted in enumerate(each(self.name, "dtype", dtype, names)):
            if wanted is not None:
                with told_of("cast"):
                    found[n] = found[n].astype(wanted)
        outs = each(self.name, "out", out, names)
        for f, o in zip(found, outs, strict=True):
            if o is not None:
                host.checked_out(self.name, f, o)
        given = [
            f[()] if o is None else host.put(self.name, f, o)
            for f, o in zip(found, outs, strict=True)
        ]
        return packed(self.name, results, given)

    # --- programs -------------------------------------------------------------------------------

    def _program(self, kinds: Any) -> Any:
        from gpureduce.custom.program import make

        def checked() -> Any:
            made = make(self._front, kinds)
            self._check_identity(made)
            return made

        return self.made_once(kinds, checked)

    def made_once(self, key: Any, make: Callable[[], Any]) -> Any:
        with self._lock():
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]

    def _compiled(self, kinds: Any, masked: bool, absent: bool) -> Any:
        return self.made_once(
            (kinds, masked, absent),
            lambda: runner.made(self.name, self.final(kinds, masked, absent)),
        )

    def final(self, kinds: Any, masked: bool, absent: bool) -> Any:
        """The program with what a mask, and states that may be none, add to it."""
        from gpureduce.custom.program import with_absence, with_mask

        program = self._program(kinds)
        program = with_absence(program) if absent else program
        return with_mask(program) if masked else program

    def compiled_there(self, kinds: Any, masked: bool, absent: bool, wanted: Any) -> Any:
        """The program for devices, with results of the dtypes that are wanted."""
        from gpureduce.custom import on_device

        def make() -> Any:
            program = self.final(kinds, masked, absent)
            maker = self._front.maker(program.graph)
            return on_device.made(on_device.finished_as(program, maker, wanted))

        return self.made_once((kinds, masked, absent, wanted), make)

    def _try(self) -> None:
        """What is wrong with inputs of any dtype is told at once."""
        from gpureduce.custom.errors import OperatorError
        from gpureduce.custom.scalars import F8, I8, Kind

        state = self._front.state
        own = [state.fields[0].kind._replace(is_exact=False)] if state and state.is_number else []
        first = None
        for kind in (*own, Kind(F8), Kind(I8), Kind(F8, True)):
            try:
                self._program(tuple(kind for _ in self._front.inputs))
                return
            except OperatorError as error:
                first = first or error
        assert first
        raise first

    def _check_identity(self, program: Any) -> None:
        from gpureduce.custom.check import is_neutral

        if program.identity is None or self._warned or is_neutral(program):
            return
        self._warned = True
        tell(
            f"{self.name}: the identity changes what it is combined with, and elements that do "
            "not count will show; gpureduce.check_operator() tells more"
        )

    def _initial(self, program: Any, initial: Any, is_absent: bool) -> list[Any]:
        from gpureduce.custom.evaluate import numbers
        from gpureduce.custom.front_text import constants
        from gpureduce.custom.graph import Graph
        from gpureduce.custom.state import packed

        nodes = packed(constants(Graph(), program.state, initial))
        found = numbers(nodes, lambda node: np.asarray(0))
        return [*found, np.asarray(True)] if is_absent else found
