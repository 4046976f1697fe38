"""Float64 variances of few elements, which lie between two doubles so often that a device must tell
them quickly: its arithmetic compiled for the host, by tests/c/variances.cpp."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from arrays import generator

ROOT = Path(__file__).resolve().parent.parent
ROWS = 3000

pytestmark = [
    pytest.mark.skipif(not shutil.which("g++"), reason="no g++"),
    pytest.mark.skipif(
        not (ROOT / "kernels").is_dir(), reason="the sources are not beside the tests"
    ),
]


@pytest.fixture(scope="module")
def untold(tmp_path_factory):
    target = tmp_path_factory.mktemp("variances") / "variances.so"
    flags = ["-std=gnu++17", "-O1", "-fwrapv", "-ffp-contract=off", "-shared", "-fPIC", "-w"]
    flags += ["-fno-gnu-unique", "-fvisibility=hidden"]
    command = ["g++", *flags, ROOT / "tests/c/variances.cpp", "-o", target]
    subprocess.run(command, check=True)
    function = ctypes.CDLL(str(target)).untold
    function.restype = ctypes.c_int64
    numbers = ctypes.c_int64, ctypes.c_int64, ctypes.c_double, ctypes.c_int
    function.argtypes = ctypes.c_void_p, *numbers
    return function


def scaled(rng, shape, most):
    return np.ldexp(rng.standard_normal(shape), rng.integers(0, most, shape))


DATA = {
    "floats": lambda rng, shape: rng.standard_normal(shape, np.float32).astype(float),
    "doubles": lambda rng, shape: rng.standard_normal(shape),
    "far from zero": lambda rng, shape: 1e6 + rng.standard_normal(shape, np.float32).astype(float),
    "all but one": lambda rng, shape: 1 + rng.integers(0, 5, shape) * 2.0**-52,
    "whole": lambda rng, shape: rng.integers(-4, 5, shape).astype(float),
    "of 31 bits": lambda rng, shape: rng.integers(-(2**31), 2**31, shape).astype(float),
    "hundredths": lambda rng, shape: rng.integers(-1000, 1000, shape) / 100,
    "the same": lambda rng, shape: np.repeat(rng.standard_normal((shape[0], 1)), shape[1], 1),
}
HARDER = {
    "of any size": lambda rng, shape: scaled(rng, shape, 60),
    "tiny": lambda rng, shape: scaled(rng, shape, 60) * 2.0**-480,
    "huge": lambda rng, shape: scaled(rng, shape, 500),
    "infinite": lambda rng, shape: np.where(rng.random(shape) < 0.2, np.inf, 1.5),
    "any bits": lambda rng, shape: rng.integers(0, 0x7FF0 << 48, shape).view(float),
}


@pytest.mark.parametrize("root", [False, True], ids=["var", "std"])
@pytest.mark.parametrize("data", DATA)
def test_few_are_told_quickly(untold, data, root):
    for n in (2, 3, 4, 7, 16):
        for ddof in (0.0, 1.0, 0.5):
            x = np.ascontiguousarray(DATA[data](generator("variances", data, n), (ROWS, n)))
            count = untold(x.ctypes.data, ROWS, n, ddof, root)
            assert 0 <= count <= ROWS // 300, (n, ddof)


@pytest.mark.parametrize("root", [False, True], ids=["var", "std"])
@pytest.mark.parametrize("data", HARDER)
def test_what_is_told_is_right(untold, data, root):
    for n in (2, 3, 4, 7, 16):
        for ddof in (0.0, 1.0, -2.25, 3.0):
            x = np.ascontiguousarray(HARDER[data](generator("variances", data, n), (ROWS, n)))
            assert untold(x.ctypes.data, ROWS, n, ddof, root) >= 0, (n, ddof)
