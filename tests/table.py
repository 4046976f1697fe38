"""The extension's own list of rows, and how a test calls one. There is no second list."""

import os

import numpy as np
import pytest

import gpureduce
from gpureduce import _core

# AddressSanitizer keeps what is freed and reserves the address space, and is not for compilers.
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
TOOLS = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}

# Of scalars; the operators on matrices have tests of their own (test_matmul.py).
OPS = {op["name"]: op for op in gpureduce.operators() if not op["matrices"]}
ROWS = [row for row in _core.rows() if row[0] in OPS]


def is_on_devices(op):
    """Whether a device has kernels of its own for whole arrays by it; the others are one output of
    the kernels for many, which test_axes.py is about."""
    return not (op["spread"] or op["skips_nan"] or (op["position"] and op["results"] > 1))


DEVICE_OPS = {name: op for name, op in OPS.items() if is_on_devices(op)}
DEVICE_ROWS = [row for row in ROWS if row[0] in DEVICE_OPS]


def rows(*, op=None, law=None):
    """(op, dtype, result dtype, law) of the rows asked for."""
    return [row for row in ROWS if op in (None, row[0]) and law in (None, row[3])]


def numpy_dtype(name):
    if name == "bfloat16":
        return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    return np.dtype({"datetime64": "M8[s]", "timedelta64": "m8[s]"}.get(name, name))


def dtype_names():
    return gpureduce.dtypes()


def call(op, a, **arguments):
    """The function of the package, or reduce() where the operator is no function."""
    if OPS[op]["function"]:
        return getattr(gpureduce, op)(a, **arguments)
    return gpureduce.reduce(a, op, **arguments)


def numpys(op):
    """NumPy's function of this name, or what the two that it has not are made of."""
    if hasattr(np, op):
        return getattr(np, op)
    low, high = getattr(np, op.replace("max", "")), getattr(np, op.replace("min", ""))
    return lambda a, **arguments: (low(a, **arguments), high(a, **arguments))


def bits(value):
    """A scalar's dtype and bytes: signs of zeros and of NaNs are part of it."""
    value = np.asarray(value)
    return value.dtype.str, value.dtype.name, value.tobytes()


def show(value):
    value = np.asarray(value)
    return f"{value[()]!r} ({value.dtype} {value.tobytes().hex()})"


def assert_bits(got, want, what):
    assert bits(got) == bits(want), f"{what}: got {show(got)}, want {show(want)}"
