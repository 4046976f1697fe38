"""dtype=, initial=, device=, op=, anything array-like: as NumPy has them."""

import array
import warnings

import numpy as np
import pytest
from arrays import draw, generator, is_float, random_bits
from reference import REFERENCE, float_sum, nan, plain, prod_of
from table import OPS, ROWS, assert_bits, bits, call, dtype_names, numpy_dtype, numpys, rows

import gpureduce

FUNCTIONS = [op["name"] for op in gpureduce.operators() if op["function"]]
NUMBERS = [name for name in dtype_names() if "time" not in name]
INTEGERS = [name for name in NUMBERS if numpy_dtype(name).kind in "biu"]
PLAIN = [name for name in dtype_names() if name != "bfloat16"]  # NumPy's own
TAKE_INITIAL = [op["name"] for op in gpureduce.operators() if op["takes_initial"]]

# --- dtype ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", FUNCTIONS)
def test_result_dtype_is_numpys(function):
    for name in dtype_names():
        a = np.ones(3, np.int64).astype(numpy_dtype(name))
        try:
            want = numpys(function)(a)
        except TypeError:
            with pytest.raises(TypeError, match=a.dtype.name.split("[")[0]):
                call(function, a)
        else:
            got = call(function, a)
            for one, other in zip(np.atleast_1d(got), np.atleast_1d(want), strict=True):
                assert (type(one), one.dtype) == (type(other), other.dtype), name


@pytest.mark.parametrize("code", "bBhHiIlLqQefdFD?")
def test_every_c_type(code):
    a = np.ones(3, code)
    assert_bits(gpureduce.sum(a), np.sum(a), code)
    assert_bits(gpureduce.max(a), np.max(a), code)


@pytest.mark.parametrize("unit", ["Y", "M", "D", "h", "s", "ms", "25us", "ns"])
def test_units_of_time_are_kept(unit):
    for kind in "mM":
        a = np.array([3, 1, 2], np.int64).view(f"{kind}8[{unit}]")
        assert_bits(gpureduce.min(a), np.min(a), f"{kind}8[{unit}]")
        assert_bits(gpureduce.ptp(a), np.ptp(a), f"{kind}8[{unit}]")
    assert_bits(gpureduce.sum(a.view(f"m8[{unit}]")), np.sum(a.view(f"m8[{unit}]")), unit)
    assert_bits(gpureduce.mean(a.view(f"m8[{unit}]")), np.mean(a.view(f"m8[{unit}]")), unit)


def fits(a, to):
    """The elements whose conversion C defines."""
    if to.kind in "iu" and (is_float(a.dtype) or a.dtype.kind == "c"):
        real = np.trunc(a.real.astype(np.float64))
        info = np.iinfo(to)
        return a[(real >= float(info.min)) & (real < float(info.max))]
    return a


@pytest.mark.parametrize("to", NUMBERS)
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_dtype_converts_each_element_as_numpy_does(name, to):
    dtype, to = numpy_dtype(name), numpy_dtype(to)
    rng = generator("convert", name)
    a = np.concatenate([random_bits(rng, dtype, 300), draw(rng, dtype, 300)])
    if dtype.kind == "b":
        a = np.array([True, False])
    with np.errstate(all="ignore"):
        for x in fits(a.astype(dtype), to):
            want = np.asarray(x).astype(to)[()]
            if to.kind == "c" or is_float(to):
                want = plain(want, to)
            got = gpureduce.sum(x, dtype=to)
            assert_bits(got, want, f"{x!r} to {to}")


@pytest.mark.parametrize("function", ["sum", "prod"])
@pytest.mark.parametrize("name", INTEGERS)
def test_dtype_of_integers_is_numpys(name, function):
    a = draw(generator("integers", name), numpy_dtype(name), 1001) | numpy_dtype(name).type(1)
    for to in INTEGERS:
        want = numpys(function)(a, dtype=to)
        assert_bits(call(function, a, dtype=to), want, f"{name} to {to}")
        assert_bits(call(function, a[::-2], dtype=to), numpys(function)(a[::-2], dtype=to), to)


def test_dtype_is_the_dtype_of_the_result():
    a = np.arange(10, dtype=np.float32)
    for to in NUMBERS:
        dtype = numpy_dtype(to)
        assert gpureduce.sum(a, dtype=dtype).dtype == dtype
        assert gpureduce.mean(a, dtype=dtype).dtype == dtype


def test_dtype_of_a_sum_is_rounded_once():
    """2^24 + 1 + 1 is not reached in float32; float64 to float16 goes by way of no float32."""
    assert gpureduce.sum(np.array([2.0**24, 1, 1], "f4")) == 2**24 + 2
    a = np.array([1.0, 2.0**-11, 2.0**-40])
    assert_bits(
        gpureduce.sum(a, dtype="f2"), float_sum(a.astype("f2"), np.dtype("f2")), "converted"
    )
    assert_bits(
        gpureduce.sum(np.float64(1 + 2.0**-11 + 2.0**-40), dtype="f2"), np.float16(1.001), ""
    )


def test_byte_order_of_dtype_is_ignored():
    assert_bits(gpureduce.sum([1, 2], dtype=">f8"), np.float64(3), ">f8")


# --- initial --------------------------------------------------------------------------------------


def test_initial_is_part_of_the_exact_sum():
    assert_bits(gpureduce.sum([1e30, 1.0], initial=-1e30), np.float64(1), "")
    assert_bits(
        gpureduce.sum(np.array([3e38], "f4"), initial=np.float32(3e38)), np.float32(np.inf), ""
    )
    assert_bits(gpureduce.sum(np.array([3e38, 3e38], "f4"), initial=-3e38), np.float32(3e38), "")
    assert_bits(gpureduce.sum([-0.0], initial=-0.0), np.float64(-0.0), "")
    assert_bits(gpureduce.sum([-0.0], initial=0.0), np.float64(0.0), "")
    assert_bits(gpureduce.sum([], initial=-0.0), np.float64(-0.0), "")
    assert_bits(gpureduce.sum([1.0], initial=np.nan), nan(np.dtype("f8")), "")
    assert_bits(gpureduce.sum([1j], initial=1 - 1j), np.complex128(1), "")


@pytest.mark.parametrize(("op", "name", "result", "law"), rows(op="prod"), ids=lambda x: x)
def test_initial_of_a_product_stands_to_the_left(op, name, result, law):
    a = draw(generator("left", name), numpy_dtype(name), 9)
    result = numpy_dtype(result)
    initial = draw(generator("initial", name), result, 1)[0]
    want = prod_of(a, result, initial) if law == "tree" else np.prod(a, initial=initial)
    assert_bits(gpureduce.prod(a, initial=initial), want, f"{initial!r}")


@pytest.mark.parametrize("function", TAKE_INITIAL)
@pytest.mark.parametrize("name", PLAIN)
def test_initial_is_numpys(name, function):
    dtype = numpy_dtype(name)
    if not any(row[:2] == (function, name) for row in ROWS):
        with pytest.raises(TypeError):
            call(function, np.zeros(2, dtype), initial=0)
        return
    ones = np.ones(3, np.int64).astype(dtype)
    for a in (ones, ones[:0]):
        for initial in (np.int64(0).astype(dtype), np.int64(1).astype(dtype), ones[:1].reshape(())):
            want = numpys(function)(a, initial=initial)
            assert_bits(call(function, a, initial=initial), want, f"{a} and {initial!r}")


OTHER_KINDS = [300, -1, 2**70, 0.5, 1j, "a", "3", None, np.nan, np.int64(300), np.float64(1e300)]
OTHER_KINDS += [
    np.float32(0.5),
    np.array(3),
    np.array([2]),
    np.str_("3"),
    np.timedelta64(1, "s"),
    [1],
    [1, 2],
]


@pytest.mark.parametrize("initial", OTHER_KINDS, ids=repr)
@pytest.mark.parametrize("name", ["int8", "uint8", "int64", "float16", "float64", "bool"])
def test_initial_of_another_kind_is_taken_or_refused_as_numpy_does(name, initial):
    a = np.ones(3, name)
    for function in ("sum", "min", "max"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                want = numpys(function)(a, initial=initial)
            except Exception as error:
                with pytest.raises(type(error)):
                    call(function, a, initial=initial)
            else:
                assert_bits(call(function, a, initial=initial), want, f"{function}, {initial!r}")


def test_initial_and_dtype():
    a = np.array([100, 100], np.int8)
    assert_bits(gpureduce.sum(a, dtype=np.int8, initial=5), np.sum(a, dtype=np.int8, initial=5), "")
    with pytest.raises(OverflowError):
        np.sum(a, dtype=np.int8, initial=300)
    with pytest.raises(OverflowError):
        gpureduce.sum(a, dtype=np.int8, initial=300)


# --- op -------------------------------------------------------------------------------------------

UFUNCS = [op["ufunc"] for op in gpureduce.operators() if op["ufunc"]]


@pytest.mark.parametrize("name", UFUNCS)
def test_reduce_takes_names_and_ufuncs(name):
    ufunc = getattr(np, name)
    for dtype in ("bool", "int8", "uint64", "int32"):
        a = draw(generator("reduce", dtype), np.dtype(dtype), 333)
        want = ufunc.reduce(a, axis=None)
        assert_bits(gpureduce.reduce(a, ufunc), want, f"{ufunc}")
        assert_bits(gpureduce.reduce(a, name), want, name)
        assert_bits(gpureduce.reduce(a, op=name, device="cpu"), want, name)


@pytest.mark.parametrize("op", UFUNCS)
@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_reduce_takes_or_refuses_dtype_as_the_ufunc_does(name, op):
    """Times are asked for without their unit; of others only truth is asked, as README's limits
    say."""
    a = np.array([3, 0, 2, 1]).astype(numpy_dtype(name))
    for to in map(np.dtype, (*(n for n in PLAIN if "time" not in n), "M8", "m8")):
        times = {a.dtype.kind, to.kind} & set("mM")
        if times and a.dtype.kind != to.kind and "logical" not in op:
            continue
        try:
            want = getattr(np, op).reduce(a, axis=None, dtype=to)
        except TypeError:
            with pytest.raises(TypeError):
                gpureduce.reduce(a, op, dtype=to)
        else:
            assert_bits(gpureduce.reduce(a, op, dtype=to), want, f"{op} of {name} as {to}")


def test_logical_operators_give_bool_alone():
    for name in ("logical_and", "logical_or", "logical_xor", "all", "any"):
        with pytest.raises(
            TypeError, match="dtype int64 is not possible, the result is always bool"
        ):
            gpureduce.reduce([1, 2], name, dtype=int)


@pytest.mark.parametrize(
    "op", [op for op in gpureduce.operators() if op["ufunc"]], ids=lambda o: o["name"]
)
def test_reduce_is_the_function(op):
    a = draw(generator("functions"), np.dtype("i4"), 100)
    assert bits(gpureduce.reduce(a, op["name"])) == bits(gpureduce.reduce(a, op["ufunc"]))
    if op["function"]:
        assert bits(gpureduce.reduce(a, op["name"])) == bits(getattr(gpureduce, op["name"])(a))


def test_aliases():
    assert gpureduce.amin is gpureduce.min
    assert gpureduce.amax is gpureduce.max


def test_reduce_takes_dtype_and_initial():
    a = np.array([1.5, 2.5])
    assert_bits(gpureduce.reduce(a, "add", dtype="i8"), np.add.reduce(a, dtype="i8"), "dtype")
    assert_bits(
        gpureduce.reduce(a, np.minimum, initial=1), np.minimum.reduce(a, initial=1), "initial"
    )
    for initial in (True, False):
        for name in ("logical_and", "logical_or", "logical_xor"):
            want = getattr(np, name).reduce([1, 0, 1], initial=initial)
            assert_bits(gpureduce.reduce([1, 0, 1], name, initial=initial), want, name)


# --- device ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", OPS)
def test_devices_agree(op):
    a = draw(generator("device"), np.dtype("i8"), 1000)
    assert bits(call(op, a, device="cpu")) == bits(call(op, a, device="auto")) == bits(call(op, a))


# --- array-likes ----------------------------------------------------------------------------------


class Subclass(np.ndarray):
    pass


class HasArray:
    def __array__(self, dtype=None, copy=None):
        return np.arange(6.0)


class HasInterface:
    def __init__(self):
        self.kept = np.arange(6.0)
        self.__array_interface__ = self.kept.__array_interface__


ARRAY_LIKES = {
    "list": [0, 1, 2, 3.0, 4, 5],
    "nested list": [[0, 1, 2], [3.0, 4, 5]],
    "tuple": (0, 1, 2, 3, 4, 5),
    "range": range(6),
    "list of arrays": [np.arange(3), np.arange(3, 6)],
    "list of bools": [True, False],
    "list of complex": [1j, 2],
    "int": 5,
    "float": 2.5,
    "bool": True,
    "NumPy scalar": np.float32(2.5),
    "datetime64 scalar": np.datetime64("2024-02-29"),
    "memoryview": memoryview(np.arange(6, dtype=np.int16)),
    "array.array": array.array("f", range(6)),
    "subclass": np.arange(6.0).view(Subclass),
    "__array__": HasArray(),
    "__array_interface__": HasInterface(),
    "record field": np.zeros(5, "i1,f8")["f1"] + 1,
    "unaligned record field": np.ones(5, "i1,f8")["f1"],
    "real part": np.array([1 + 2j, 3 - 4j]).real,
    "imaginary part": np.array([1 + 2j, 3 - 4j]).imag,
}


@pytest.mark.parametrize("label", ARRAY_LIKES)
@pytest.mark.parametrize("op", FUNCTIONS)
def test_array_likes(op, label):
    a = ARRAY_LIKES[label]
    try:
        want = numpys(op)(np.asarray(a))
    except TypeError:
        with pytest.raises(TypeError):
            call(op, a)
    else:
        assert_bits(call(op, a), want, label)


def test_memmap(tmp_path):
    a = draw(generator("memmap"), np.dtype("f8"), 100_000)
    a.tofile(tmp_path / "a")
    for mode in ("r", "r+", "c"):
        mapped = np.memmap(tmp_path / "a", np.float64, mode)
        assert_bits(gpureduce.sum(mapped), REFERENCE["sum"](a, a.dtype), mode)


def test_the_array_is_never_written():
    a = draw(generator("unwritten"), np.dtype("f8"), 5000)
    for view in (a, a[::-3], a.reshape(50, 100).T, a.astype(">f8")):
        kept = view.copy()
        for op, dtype, _, _ in ROWS:
            if dtype == "float64":
                call(op, view)
        assert view.tobytes() == kept.tobytes()
