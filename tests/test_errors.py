"""Bad input: NumPy's exception type, a message that says what was given, and no harm done."""

import sys
import types
import warnings

import numpy as np
import pytest
from table import OPS, call, numpys

import gpureduce
from gpureduce import _core

FUNCTIONS = [op["name"] for op in gpureduce.operators() if op["function"]]
NONEMPTY = [op["name"] for op in gpureduce.operators() if op["nonempty"]]
FLOATS = ["float16", "float32", "float64", "complex64", "complex128"]
BITWISE = ["bitwise_and", "bitwise_or", "bitwise_xor"]


@pytest.fixture(autouse=True)
def next_call_works():
    yield
    assert gpureduce.sum([1.0, 2.0]) == 3
    assert _core.device_count()  # and no exception was left behind


def numpy_error(function):
    """What NumPy raises; its private subclasses count as what they are made from."""
    with pytest.raises(Exception) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function()
    return next(t for t in caught.type.__mro__ if t.__module__ == "builtins")


UNSUPPORTED = {
    "object": np.array([1, "a", None], object),
    "empty object": np.array([], object),
    "string": np.array(["a", "b"]),
    "bytes": np.array([b"a"]),
    "structured": np.zeros(3, "i4,f4"),
    "void": np.zeros(3, "V3"),
    "void of two bytes": np.zeros(3, "V2"),
    "long double": np.zeros(3, np.longdouble),
    "complex long double": np.zeros(3, np.clongdouble),
    "variable-width string": np.array(["a"], np.dtypes.StringDType()),
    "a Python object": object(),
    "a string": "abc",
    "None": None,
    "a set": {1, 2},
    "a dict": {1: 2},
}


@pytest.mark.parametrize("label", UNSUPPORTED)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_unsupported_dtypes_are_named(function, label):
    a = UNSUPPORTED[label]
    with pytest.raises(TypeError) as caught:
        call(function, a)
    assert function in str(caught.value)
    assert repr(np.asarray(a).dtype) in str(caught.value)
    assert "supported" in str(caught.value)


@pytest.mark.parametrize("label", ["object", "string", "structured", "long double"])
def test_unsupported_dtype_arguments_are_named(label):
    dtype = UNSUPPORTED[label].dtype
    with pytest.raises(TypeError) as caught:
        gpureduce.sum([1.0], dtype=dtype)
    assert repr(dtype) in str(caught.value)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_ragged_lists(function):
    with pytest.raises(numpy_error(lambda: numpys(function)([[1], [1, 2]])), match="shape"):
        call(function, [[1], [1, 2]])


@pytest.mark.parametrize("function", NONEMPTY)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 2)])
def test_empty_arrays(function, shape):
    for a in (np.zeros(shape), np.zeros(shape, "i1"), np.zeros(shape, "M8[s]")):
        with pytest.raises(ValueError) as expected:
            numpys(function)(a)
        with pytest.raises(ValueError) as caught:
            call(function, a)
        assert type(caught.value) is type(expected.value)
        if hasattr(np, function):
            assert str(caught.value).startswith(str(expected.value))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "F", "D", "i1", "u8", "?", "m8[s]"])
def test_mean_of_nothing_warns(dtype):
    a = np.zeros((2, 0), dtype)
    with pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        got = gpureduce.mean(a)
    assert np.isnan(got)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            gpureduce.mean(a)


@pytest.mark.parametrize("name", BITWISE)
@pytest.mark.parametrize("dtype", [*FLOATS, "m8[s]", "M8[s]"])
def test_bitwise_operators_take_no_floats(name, dtype):
    a = np.zeros(3, dtype)
    error = numpy_error(lambda: getattr(np, name).reduce(a, axis=None))
    with pytest.raises(error) as caught:
        gpureduce.reduce(a, name)
    assert name in str(caught.value) and a.dtype.name.split("[")[0] in str(caught.value)


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        ("sum", "M8[s]"),
        ("mean", "M8[s]"),
        ("prod", "M8[s]"),
        ("prod", "m8[s]"),
        ("ptp", "?"),
        ("var", "m8[s]"),
        ("std", "M8[s]"),
    ],
)
def test_functions_that_a_dtype_does_not_have(function, dtype):
    a = np.zeros(3, dtype)
    error = numpy_error(lambda: getattr(np, function)(a))
    assert error is TypeError
    with pytest.raises(error) as caught:
        call(function, a)
    assert function in str(caught.value) and a.dtype.name.split("[")[0] in str(caught.value)


@pytest.mark.parametrize("op", ["nonsense", "", "warp", "subtract", "__name__", "add "])
def test_unknown_operators(op):
    with pytest.raises(ValueError) as caught:
        gpureduce.reduce([1.0], op)
    assert repr(op) in str(caught.value) and "bitwise_xor" in str(caught.value)


def test_functions_by_name_take_what_they_take():
    assert gpureduce.reduce([[1.0, 4.0], [3.0, 2.0]], "mean", axis=0).tolist() == [2.0, 3.0]
    assert gpureduce.reduce([3, 1, 2], "argmin") == 1
    assert gpureduce.reduce([1.0, np.nan], "nansum", where=[True, True]) == 1.0
    with pytest.raises(TypeError, match="dtype"):
        gpureduce.reduce([1.0], "argmin", dtype="f4")


@pytest.mark.parametrize("op", [np.subtract, np.sin, len, None, 3, object()])
def test_operators_that_are_none(op):
    with pytest.raises((ValueError, TypeError)) as caught:
        gpureduce.reduce([1.0], op)
    assert repr(op) in str(caught.value)


@pytest.mark.parametrize(
    "call_it", [lambda m: m.sum(), lambda m: m.sum([1], axes=0), lambda m: m.sum([1], out=1)]
)
def test_wrong_arguments(call_it):
    with pytest.raises(TypeError):
        call_it(gpureduce)


def test_the_core_checks_its_arguments():
    no = np._NoValue
    rest = ([1.0], None, None, None, no, no, no, 0, no, "auto", None, None)
    with pytest.raises(TypeError):
        _core.reduce(0, [1.0])
    with pytest.raises(ValueError):
        _core.reduce(10_000, *rest)
    with pytest.raises(ValueError):
        _core.reduce(-1, *rest)
    with pytest.raises(TypeError):
        _core.reduce("sum", *rest)
    with pytest.raises(TypeError):
        _core.segments(0, [1.0])


@pytest.mark.parametrize(
    "device",
    ["gpu", "", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:99999999999", "CPU", "cpu:0", "é"],
)
def test_devices_that_are_none(device):
    with pytest.raises(ValueError) as caught:
        gpureduce.sum([1.0], device=device)
    assert repr(device) in str(caught.value) and "'cuda'" in str(caught.value)


@pytest.mark.parametrize("device", [0, None, b"cpu", ["gpu"], ["all"], [], [0], "\ud800"])
def test_devices_of_another_type(device):
    with pytest.raises((ValueError, TypeError)):
        gpureduce.sum([1.0], device=device)


def test_a_missing_device():
    count, why = _core.device_count()
    missing = f"cuda:{count}" if count else "cuda"
    with pytest.raises(gpureduce.DeviceError) as caught:
        gpureduce.sum([1.0], device=missing)
    assert isinstance(caught.value, RuntimeError)
    if count == 0:
        assert str(caught.value) == f'{why}, or use device="cpu"' and len(why) > 20
    else:
        assert missing in str(caught.value)


def test_errors_of_the_arguments_come_before_the_device():
    with pytest.raises(TypeError):
        gpureduce.sum(["a"], device="cpu")
    with pytest.raises(ValueError):
        gpureduce.max([], device="cpu")


@pytest.mark.parametrize("function", ["sum", "prod", "mean"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_complex_to_real_warns(function, dtype):
    a = np.array([1 + 1j, 2])
    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
        want = getattr(np, function)(a, dtype=dtype)
    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
        assert call(function, a, dtype=dtype) == want
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(np.exceptions.ComplexWarning):
            call(function, a, dtype=dtype)
        assert call(function, a, dtype="F") == getattr(np, function)(a, dtype="F")


@pytest.mark.parametrize("dtype", ["nonsense", 3.5, object(), "f8,f8", "f3"])
def test_dtypes_that_are_none(dtype):
    with pytest.raises(TypeError):
        gpureduce.sum([1.0], dtype=dtype)


@pytest.mark.parametrize(
    ("source", "target"), [("i8", "m8[s]"), ("m8[s]", "f8"), ("M8[s]", "m8[s]")]
)
def test_no_conversion_of_times(source, target):
    with pytest.raises(TypeError, match="conversion"):
        gpureduce.sum(np.zeros(3, source), dtype=target)


def test_units_of_time_are_not_converted():
    a = np.array([1500, 500], "m8[ms]")
    assert gpureduce.sum(a, dtype=a.dtype) == gpureduce.sum(a, dtype="m8") == gpureduce.sum(a)
    with pytest.raises(TypeError):
        np.sum(a, dtype="m8[s]")
    with pytest.raises(TypeError, match="unit"):
        gpureduce.sum(a, dtype="m8[s]")


@pytest.mark.parametrize("n", [-1, 2**21, 2**40])
def test_thread_counts_out_of_range(n):
    with pytest.raises(ValueError, match=str(n)):
        gpureduce.set_num_threads(n)


@pytest.mark.parametrize("n", ["2", 2.0, None, 2**70])
def test_thread_counts_that_are_none(n):
    with pytest.raises((TypeError, OverflowError)):
        gpureduce.set_num_threads(n)


class Explodes:
    def __array__(self, dtype=None, copy=None):
        raise ZeroDivisionError("at home")


class MaskExplodes(np.ndarray):
    @property
    def mask(self):
        raise ZeroDivisionError("at home")


def test_exceptions_of_the_argument_pass_through():
    with pytest.raises(ZeroDivisionError, match="at home"):
        gpureduce.sum(Explodes())
    assert gpureduce.sum(np.ones(3).view(MaskExplodes)) == 3


def test_every_operator_says_its_name():
    for name in OPS:
        with pytest.raises(TypeError, match=name):
            call(name, np.zeros(3, "V3"))


# --- what changes under a call --------------------------------------------------------------------


setting_dtypes = pytest.mark.filterwarnings("ignore:Setting the dtype:DeprecationWarning")


def test_bfloat16_without_the_package_that_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    for asks in (
        lambda: gpureduce.partials([1.0], "sum", dtype="bfloat16"),
        lambda: gpureduce.Accumulator("sum", dtype="bfloat16"),
        lambda: gpureduce.from_words([1], "sum", "bfloat16"),
        lambda: gpureduce.Operator("bfloat16", combine="a + b", identity=0.0),
    ):
        with pytest.raises(ModuleNotFoundError, match="pip install ml_dtypes"):
            asks()


@setting_dtypes
def test_a_dtype_that_is_replaced_meanwhile():
    for unit in range(1, 40):
        a = np.arange(10, dtype=np.dtype(f"m8[{unit}us]"))
        others = []

        class Axis:
            def __index__(self):
                a.dtype = "i8"  # noqa: B023
                others.extend(np.dtype(f"m8[{i}ns]") for i in range(2, 30))  # noqa: B023
                return 0

        assert gpureduce.sum(a, axis=Axis()) == np.timedelta64(45 * unit, "us")


class Meanwhile:
    """An argument of any kind, which does something when it is asked for its value."""

    def __init__(self, work, value=0):
        self.work, self.value = work, value

    def tell(self, *_, **__):
        self.work()
        return self.value

    __index__ = __float__ = __bool__ = __array__ = tell


ASKED = {
    "axis": ("sum", lambda ask: {"axis": ask(0)}),
    "axes": ("max", lambda ask: {"axis": (ask(0),)}),
    "keepdims of a position": ("argmin", lambda ask: {"keepdims": ask(False)}),
    "keepdims": ("prod", lambda ask: {"keepdims": ask(0)}),
    "initial": ("sum", lambda ask: {"initial": ask(1.0)}),
    "where": ("sum", lambda ask: {"where": ask(np.array(True))}),
    "where and initial": ("min", lambda ask: {"where": np.ones(9, bool), "initial": ask(1.0)}),
    "ddof": ("var", lambda ask: {"ddof": ask(1.0)}),
    "mean": ("std", lambda ask: {"mean": ask(np.array(1.0))}),
}


@pytest.mark.parametrize("label", ASKED)
@pytest.mark.parametrize("size", [1, 5, 9, 1000, 1_000_000])
def test_an_array_that_is_resized_meanwhile(label, size):
    """The memory that it had is gone, though the size may be the same again."""
    name, make = ASKED[label]
    arguments = make(lambda value: value)
    a, kept = np.arange(9.0), []

    def resize():
        kept.append(np.full(9, 9.0))
        a.resize(1_000_000, refcheck=False)
        a.resize(size, refcheck=False)
        kept.append(np.full(9, 9.0))

    given = make(lambda value: Meanwhile(resize, value))
    if size == 9:
        want = getattr(np, name)(np.arange(9.0), **arguments)
        assert np.array_equal(getattr(gpureduce, name)(a, **given), want)
    else:
        with pytest.raises(RuntimeError, match=f"{name}: the array was resized"):
            getattr(gpureduce, name)(a, **given)
    assert a.size == size


@pytest.mark.parametrize("size", [1, 5, 9, 1_000_000])
def test_a_mask_that_is_resized_meanwhile(size):
    a, mask = np.arange(1.0, 10), np.ones(9, bool)

    def resize():
        mask.resize(1_000_000, refcheck=False)
        mask.resize(size, refcheck=False)

    if size in (1, 9):
        assert gpureduce.sum(a, where=mask, initial=Meanwhile(resize, 1.0)) == 46
    else:
        with pytest.raises(ValueError, match=r"where of shape .* could not be broadcast"):
            gpureduce.sum(a, where=mask, initial=Meanwhile(resize, 1.0))


@setting_dtypes
def test_an_array_that_becomes_another_meanwhile():
    a = np.arange(1000, dtype="i8")

    def shrink():
        a.dtype = "i1"
        a.resize(1000, refcheck=False)

    with pytest.raises(RuntimeError, match="resized"):
        gpureduce.sum(a, axis=Meanwhile(shrink))


def test_bounds_that_are_written_meanwhile():
    starts, stops = np.zeros(300, np.int64), np.full(300, 1000)

    class Axis:  # asked for when the bounds have been taken
        def __index__(self):
            starts[:], stops[:] = 1 << 40, (1 << 40) + 100
            return 0

    sums = gpureduce.segments(np.ones(1000), starts, stops, "add", axis=Axis())
    assert (sums == 1000).all() and (starts == 1 << 40).all()


@pytest.mark.parametrize("name", NONEMPTY)
@pytest.mark.parametrize(
    ("shape", "axis", "raises"),
    [((0, 0), 0, True), ((0, 0), 1, True), ((0, 3), 1, False), ((0, 0, 2), 1, True)],
)
def test_an_empty_axis_without_outputs(name, shape, axis, raises):
    a = np.empty(shape)
    if raises:
        with pytest.raises(ValueError):
            call(name, a, axis=axis)
    else:
        results = call(name, a, axis=axis)
        results = results if OPS[name]["results"] > 1 else [results]
        assert all(one.shape == (0,) for one in results)


@pytest.mark.parametrize("name", ["add", "maximum", "sum"])
def test_a_function_that_is_called_like_an_operator_is_none(name):
    """Its own definition would be another."""
    own = types.FunctionType((lambda a, b: a - b).__code__, globals(), name)
    for call_it in (
        lambda: gpureduce.reduce([3.0, 1.0], own),
        lambda: gpureduce.reduceat([3.0, 1.0], [0], own),
        lambda: gpureduce.partials([3.0, 1.0], own),
    ):
        with pytest.raises(ValueError, match="is not known"):
            call_it()


def test_an_operator_of_reduce_alone():
    for call_it in (
        lambda: gpureduce.reduceat([3.0, 1.0], [0], "mean"),
        lambda: gpureduce.segments([3.0, 1.0], [0], [2], "argmax"),
    ):
        with pytest.raises(ValueError, match="is none of its operators; give one of add"):
            call_it()
