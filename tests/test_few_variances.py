"""Float64 variances and means of few elements, which lie between two doubles so often that a device
must tell them quickly, and moments, which it adds up by batches of any range: its arithmetic
compiled for the host, by tests/c/variances.cpp."""

import ctypes
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import reference
from arrays import generator
from table import numpy_dtype

ROOT = Path(__file__).resolve().parent.parent
ROWS = 3000

pytestmark = [
    pytest.mark.skipif(not shutil.which("g++"), reason="no g++"),
    pytest.mark.skipif(
        not (ROOT / "kernels").is_dir(), reason="the sources are not beside the tests"
    ),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    target = tmp_path_factory.mktemp("variances") / "variances.so"
    flags = ["-std=gnu++17", "-O1", "-fwrapv", "-ffp-contract=off", "-shared", "-fPIC", "-w"]
    flags += ["-fno-gnu-unique", "-fvisibility=hidden"]
    command = ["g++", *flags, ROOT / "tests/c/variances.cpp", "-o", target]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(target))


@pytest.fixture(scope="module")
def untold(library):
    function = library.untold
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


# Their deviation lies 2^-54 of itself beside what lies halfway between two floats.
BESIDE_A_TIE = """
0x1.0e214p+6 0x1.ae378ep+6 0x1.ff9d12p-22 0x1.1b321ap-6 0x1.94e014p-10 0x1.981636p-5
0x1.e15b64p+2 0x1.0e5f68p-6 0x1.45fa76p+12 0x1.6a3392p-1 0x1.ff74d2p+6 0x1.e426e6p+0
0x1.b82798p-2 0x1.d3882ep-7 0x1.8596c6p+12 0x1.7875a6p+0 0x1.ae8e2p+5"""
SHARED = {
    **DATA,
    "digits": lambda rng, shape: rng.integers(0, 10, shape).astype(float),
    "offset": lambda rng, shape: 1e4 + rng.standard_normal(shape),
    "lognormal": lambda rng, shape: rng.lognormal(0, 3, shape),
    "not finite": lambda rng, shape: np.where(rng.random(shape) < 0.05, np.nan, 1.5),
    "beside a tie": lambda rng, shape: np.resize(
        [float.fromhex(x) for x in BESIDE_A_TIE.split()], shape
    ),
}


def rows_of(rng, draw, shape, dtype):
    x = draw(rng, shape)
    with np.errstate(over="ignore"):
        if dtype.startswith("complex"):
            x = x + 1j * x[:, ::-1]
        return np.ascontiguousarray(x.astype(dtype))


@pytest.mark.parametrize("root", [0, 1], ids=["var", "std"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_what_lanes_tell_is_right(library, dtype, root):
    """And they tell nearly all."""
    rows, shapes = 200, [(17, 1, 0), (17, 8, 0), (33, 4, 1), (100, 32, 0.5), (300, 2, 0)]
    if dtype == "complex64":
        shapes += [(9, 1, 1), (16, 1, 0)]
    function = getattr(library, f"lanes_{dtype}")
    function.restype = ctypes.c_int64
    function.argtypes = ctypes.c_void_p, *[ctypes.c_int64] * 3, ctypes.c_double, ctypes.c_int
    for data, draw in SHARED.items():
        for n, down, ddof in shapes:
            x = rows_of(generator("lanes", data, n), draw, (rows, n), dtype)
            count = function(x.ctypes.data, rows, n, down, ddof, root)
            assert 0 <= count <= rows // 50, (data, n, down)


@pytest.mark.parametrize("root", [0, 1], ids=["var", "std"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_what_columns_tell_is_right(library, dtype, root):
    """And they tell nearly all, but where squares tie: of doubles that hold few bits nine in ten,
    of deviations of two complex ones three in four."""
    rows, is_complex = 1000, dtype.startswith("complex")
    function = getattr(library, f"columns_{dtype}")
    function.restype = ctypes.c_int64
    function.argtypes = ctypes.c_void_p, *[ctypes.c_int64] * 2, ctypes.c_double, ctypes.c_int
    for data, draw in SHARED.items():
        for n, ddof in ((1, 0), (2, 0), (2, 1), (2, 0.5), (3, 0), (4, 1), (8, 0), (64, 0.5)):
            x = rows_of(generator("columns", data, n), draw, (rows, n), dtype)
            count = function(x.ctypes.data, rows, n, ddof, root)
            is_seldom = is_complex and root and n == 2
            is_double = dtype in ("float64", "complex128") and not root
            most = rows // (4 if is_seldom else 10 if is_double else 50)
            assert 0 <= count <= most, (data, n, ddof, count)


SPECIAL = [
    5e-324,
    -5e-324,
    1e-310,
    2.0**-1000,
    2.0**-895,
    0.0,
    -0.0,
    1.7e308,
    -1.7e308,
    1.25,
    -3e-5,
]
FEW = {
    "doubles": lambda rng, shape: rng.standard_normal(shape),
    "lognormal": lambda rng, shape: rng.lognormal(0, 5, shape),
    "any bits": lambda rng, shape: rng.integers(0, 0x7FF0 << 48, shape).view(float),
    "tiny among others": lambda rng, shape: np.where(
        rng.random(shape) < 0.5, rng.choice(SPECIAL, shape), rng.standard_normal(shape)
    ),
    "that cancel": lambda rng, shape: rng.integers(-1, 2, shape) * 1.5 + rng.choice(SPECIAL, shape),
}


@pytest.mark.parametrize("data", FEW)
def test_means_that_are_told_are_right(library, data):
    rows = 1000
    for n in (2, 3, 7):
        x = np.ascontiguousarray(FEW[data](generator("means", data, n), (rows, n)))
        out, told = np.empty(rows), np.empty(rows, bool)
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, out, told)]
        sizes = [ctypes.c_int64(size) for size in (rows, n)]
        library.means(pointers[0], *sizes, *pointers[1:])
        wanted = np.array([reference.mean_of(row, x.dtype) for row in x])
        assert data == "any bits" or told.mean() > 0.2, n
        assert out[told].tobytes() == wanted[told].tobytes(), n


RANGES = {
    "near": lambda rng, shape: rng.standard_normal(shape),
    "few binades": lambda rng, shape: scaled(rng, shape, 20),
    "more": lambda rng, shape: scaled(rng, shape, 50),
    "squares beyond a window": lambda rng, shape: scaled(rng, shape, 90) * 2.0**-40,
    "lognormal": lambda rng, shape: rng.lognormal(0, 5, shape),
    "half zeros": lambda rng, shape: scaled(rng, shape, 60) * (rng.random(shape) < 0.5),
    "tiny": lambda rng, shape: scaled(rng, shape, 60) * 2.0**-149,
    "batches far apart": lambda rng, shape: (
        scaled(rng, shape, 30) * np.repeat(2.0 ** rng.integers(-60, 60, shape[-1] // 16), 16)
    ),
    "whole": lambda rng, shape: np.ldexp(1.0, rng.integers(0, 45, shape)) - 1,
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("data", RANGES)
def test_batches_of_any_range_lose_nothing(library, data, dtype):
    """Windows of bfloat16 serve many batches: they move, become wide ones, and are full."""
    function = getattr(library, f"unlike_{dtype}")
    function.restype = ctypes.c_int64
    function.argtypes = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
    rng = generator("moments", data, dtype)
    rows, batches = (4, 3000) if dtype == "bfloat16" else (400, 8)
    for shrink in (0, 8, 64):
        x = RANGES[data](rng, (rows, batches * 16))
        x[:, ::16] *= 2.0**-shrink
        if dtype.startswith("complex"):
            x = x + 1j * RANGES[data](rng, x.shape)
        x = np.ascontiguousarray(x.astype(numpy_dtype(dtype)))
        assert function(x.ctypes.data, rows, batches) == 0


def is_nearest(x, wanted, power):
    """Whether no double is nearer to the root of that degree, and none even that is as near."""
    ends = [(Fraction(x) + Fraction(float(np.nextafter(x, to)))) / 2 for to in (0, np.inf)]
    low, high = (end**power for end in ends)
    is_even = not np.float64(x).view(np.int64) & 1
    return low <= wanted <= high if is_even else low < wanted < high


@pytest.mark.parametrize("root", [0, 1], ids=["var", "std"])
@pytest.mark.parametrize("bits", [4, 10, 16, 31, 45, 62])
def test_variances_of_integers_between_two_doubles(library, bits, root):
    """Of a power of two of them so many lie there that a device decides them by doubles."""
    rng = generator("integers", bits, root)
    library.of_integers.restype = ctypes.c_double
    for _ in range(400):
        n, ddof = 1 << int(rng.integers(2, 22)), int(rng.integers(0, 2))
        total = int(rng.integers(-(2**bits), 2**bits)) * n // 3
        squares = -(-total * total // n) + int(rng.integers(0, 2**bits)) ** 2
        wanted = Fraction(n * squares - total * total, n * (n - ddof))
        words = [
            (ctypes.c_uint64 * count)(*((x >> 64 * i) % 2**64 for i in range(count)))
            for x, count in ((total, 2), (squares, 3))
        ]
        found = library.of_integers(*words, ctypes.c_int64(n), ctypes.c_double(ddof), root)
        assert found == wanted == 0 or is_nearest(found, wanted, 1 + root)
