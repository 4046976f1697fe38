"""Every row of the table over every nasty array, equal to its reference in every bit."""

import warnings

import pytest
from arrays import cases
from reference import REFERENCE
from table import OPS, ROWS, bits, call, numpy_dtype, show


@pytest.mark.parametrize(("op", "dtype", "result", "law"), ROWS, ids=lambda x: x)
def test_row(op, dtype, result, law):
    dtype, result = numpy_dtype(dtype), numpy_dtype(result)
    wrong = []
    for label, a in cases(dtype):
        if a.size == 0 and OPS[op]["nonempty"]:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            want, got = REFERENCE[op](a, result), call(op, a)
        if bits(got) != bits(want):
            wrong.append(f"{label}: got {show(got)}, want {show(want)}")
    assert not wrong, f"{op} of {dtype}:\n" + "\n".join(wrong)
