"""gpureduce.array_api: the standard's signatures, dtypes and refusals; gpureduce's values."""

import inspect

import numpy as np
import pytest
from arrays import draw, generator
from table import assert_bits, dtype_names, numpy_dtype

import gpureduce
from gpureduce import array_api as xp

# From the standard, 2024.12: what each function is given beside x and keepdims, and takes.
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
REAL = INTEGERS + FLOATS
NUMERIC = REAL + COMPLEX
EVERY = ["bool", *NUMERIC]
STANDARD = {
    "sum": ({"dtype": None}, NUMERIC),
    "prod": ({"dtype": None}, NUMERIC),
    "min": ({}, REAL),
    "max": ({}, REAL),
    "mean": ({}, FLOATS + COMPLEX),
    "var": ({"correction": 0.0}, FLOATS),
    "std": ({"correction": 0.0}, FLOATS),
    "any": ({}, EVERY),
    "all": ({}, EVERY),
    "count_nonzero": ({}, EVERY),
    "argmin": ({}, REAL),
    "argmax": ({}, REAL),
}
BESIDE = {"float16", "bfloat16"}  # floats that the standard does not know


def result_dtype(name, dtype):
    if name in ("any", "all"):
        return np.dtype(bool)
    if name in ("argmin", "argmax", "count_nonzero"):
        return np.dtype(np.int64)
    if name in ("sum", "prod") and dtype.kind in "iu":
        return np.dtype(dtype.kind + "8")
    return dtype


def test_the_names():
    assert sorted(xp.__all__) == sorted(STANDARD)
    assert gpureduce.array_api is xp


@pytest.mark.parametrize("name", STANDARD)
def test_signatures(name):
    parameters = inspect.signature(getattr(xp, name)).parameters
    x, *others = parameters.values()
    assert (x.name, x.kind) == ("x", inspect.Parameter.POSITIONAL_ONLY)
    assert {p.kind for p in others} == {inspect.Parameter.KEYWORD_ONLY}
    own, _ = STANDARD[name]
    assert {p.name: p.default for p in others} == {"axis": None, "keepdims": False, **own}


@pytest.mark.parametrize("name", STANDARD)
def test_help(name):
    function = getattr(xp, name)
    text = inspect.getdoc(function)
    assert function.__name__ == name and function.__module__ == "gpureduce.array_api"
    for parameter in inspect.signature(function).parameters:
        assert f"\n{parameter} : " in text
    for part in ("Returns", "Raises", "Examples"):
        assert f"\n{part}\n---" in text


@pytest.mark.parametrize("dtype", [name for name in dtype_names() if "time" not in name])
@pytest.mark.parametrize("name", STANDARD)
def test_dtypes_and_values(name, dtype):
    function, numpys = getattr(xp, name), getattr(gpureduce, name)
    _, takes = STANDARD[name]
    x = draw(generator("array api", name, dtype), numpy_dtype(dtype), 24).reshape(2, 3, 4)
    if dtype not in takes and not (dtype in BESIDE and "float32" in takes):
        with pytest.raises(TypeError, match=f"array_api.{name}: x is of dtype {dtype}"):
            function(x)
        return
    axes = [None, 0, -1] if name.startswith("arg") else [None, 0, -1, (0, 2), (0, 1, 2)]
    for axis in axes:
        for keepdims in (False, True):
            got = function(x, axis=axis, keepdims=keepdims)
            assert type(got) is np.ndarray and got.dtype == result_dtype(name, x.dtype)
            want = np.asarray(numpys(x, axis=axis, keepdims=keepdims))
            assert got.shape == want.shape
            assert_bits(got, want, f"{name} {dtype} {axis} {keepdims}")


def test_no_scalars():
    for name in STANDARD:
        got = getattr(xp, name)(np.ones(3, np.float32))
        assert type(got) is np.ndarray and got.shape == ()


def test_dtype():
    x = np.array([200, 100], np.uint8)
    assert_bits(xp.sum(x, dtype=np.uint8), np.uint8(44), "sum")
    assert_bits(xp.sum(x, dtype=np.float32), np.float32(300), "sum")
    assert_bits(xp.prod(x, dtype=np.complex64, keepdims=True), np.array([20000], "c8"), "prod")


def test_correction():
    x = np.arange(6.0).reshape(2, 3)
    assert_bits(xp.var(x, correction=1), gpureduce.var(x, ddof=1), "var")
    assert_bits(xp.std(x, axis=1, correction=1.5), gpureduce.std(x, axis=1, ddof=1.5), "std")


def test_byte_orders_and_lists():
    assert_bits(xp.mean(np.arange(5, dtype=">f8")), np.float64(2), "mean")
    assert_bits(xp.max([1, 3, 2]), np.int64(3), "max")
    with pytest.raises(TypeError, match="int64"):
        xp.mean([1, 2])


class Foreign:
    """A device array whose dtype has no name, as PyTorch's."""

    class Dtype:
        def __str__(self):
            return "torch.int32"

    dtype = Dtype()


def test_dtypes_without_a_name():
    with pytest.raises(TypeError, match=r"var: x is of dtype int32"):
        xp.var(Foreign())


@pytest.mark.parametrize("x", [np.array(["a"]), np.array([None]), np.ones(2, "m8[s]"), "abc"])
def test_what_the_standard_does_not_know(x):
    for name in STANDARD:
        with pytest.raises(TypeError, match=f"array_api.{name}"):
            getattr(xp, name)(x)


def test_errors():
    x = np.ones((2, 3))
    with pytest.raises(np.exceptions.AxisError):
        xp.sum(x, axis=2)
    with pytest.raises(ValueError, match="duplicate"):
        xp.max(x, axis=(0, -2))
    with pytest.raises(ValueError, match="zero-size"):
        xp.min(np.ones(0))
    with pytest.raises(TypeError):
        xp.argmax(x, axis=(0, 1))
    with pytest.raises(TypeError):
        xp.sum(x, 0)
    with pytest.raises(TypeError):
        xp.sum(x=x)
    assert xp.sum(np.ones(0)) == 0 and xp.prod(np.ones(0)) == 1
