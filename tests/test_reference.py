"""The references themselves, against what Python and NumPy are known to do right."""

import math
from fractions import Fraction

import numpy as np
import pytest
from arrays import draw, finite_bits, generator
from reference import FORMATS, exact_integer, nan, nearest, prod_of, tree
from table import numpy_dtype

FLOATS = [numpy_dtype(name) for name in FORMATS]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nearest_keeps_every_number_of_the_format(dtype):
    for x in finite_bits(generator("kept", dtype), dtype, 3000):
        if x != 0:
            assert nearest(Fraction(float(x)), dtype).tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", [np.dtype(name) for name in ("float16", "float32")], ids=str)
def test_nearest_rounds_as_the_processor_does(dtype):
    rng = generator("rounds", dtype)
    with np.errstate(all="ignore"):
        for x in np.concatenate(
            [rng.standard_normal(1000), finite_bits(rng, np.dtype("f8"), 2000)]
        ):
            assert nearest(Fraction(x), dtype).tobytes() == dtype.type(x).tobytes()


def test_nearest_rounds_fractions_as_python_does():
    rng = generator("fractions")
    for num, den in rng.integers(1, 2**62, (3000, 2)).tolist():
        assert nearest(Fraction(num, den), np.dtype("f8")) == num / den


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nearest_takes_ties_to_even(dtype):
    precision, smallest, largest = FORMATS[dtype.name]
    ulp = Fraction(2) ** (1 - precision)
    least = Fraction(2) ** smallest
    top = (2 - ulp) * Fraction(2) ** largest
    half = ulp / 2
    tiny = Fraction(1, 10**400)
    assert nearest(1 + half, dtype) == 1
    assert nearest(1 + half + tiny, dtype) == float(1 + ulp)
    assert nearest(1 + ulp + half, dtype) == float(1 + 2 * ulp)
    assert nearest(1 + ulp + half - tiny, dtype) == float(1 + ulp)
    assert nearest(2 - half, dtype) == 2
    assert nearest(least / 2, dtype) == 0 and nearest(least / 2 + tiny, dtype) == float(least)
    assert np.signbit(nearest(-tiny, dtype)) and not np.signbit(nearest(Fraction(0), dtype))
    assert nearest(top * (1 + half / 4), dtype) == float(top)
    assert nearest(top + half * Fraction(2) ** largest, dtype) == math.inf
    assert nearest(-top * 2, dtype) == -math.inf


def test_exact_integer_is_the_sum_of_fractions():
    x = finite_bits(generator("integer"), np.dtype("f8"), 2000)
    assert Fraction(exact_integer(x), 2**1074) == sum(map(Fraction, x.tolist()))


def test_exact_integer_agrees_with_fsum():
    x = draw(generator("fsum"), np.dtype("f8"), 200_001)
    assert nearest(Fraction(exact_integer(x), 2**1074), np.dtype("f8")) == math.fsum(x)


def test_tree_is_the_picture():
    """a b c d e f g: ((ab)(cd))((ef)g), with concatenation for the operator."""
    pairs = np.array([list("abcdefg")], object)
    assert tree(pairs, lambda a, b: "(" + a + b + ")")[0] == "(((ab)(cd))((ef)g))"


def test_prod_of_complex_is_the_plain_formula():
    a = np.array([1 + 2j, 3 - 1j, 0.5j])
    assert prod_of(a, a.dtype) == (1 + 2j) * (3 - 1j) * 0.5j


def test_the_nan():
    assert [nan(d).tobytes()[::-1].hex() for d in FLOATS] == [
        "7e00",
        "7fc0",
        "7fc00000",
        "7ff8000000000000",
    ]
