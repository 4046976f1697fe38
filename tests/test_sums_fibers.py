"""How the threads of a block add up what they have of sums (kernels/gpu/warp_sums.cuh and
column_sums.cuh), by fibers where there is no device: no bit is lost, or they say so."""

import ctypes
import itertools
import math
import shutil
import subprocess
from fractions import Fraction

import numpy as np
import pytest
from arrays import SEED, generator
from operator_fibers import FLAGS, ROOT
from table import SANITIZED

pytestmark = [
    pytest.mark.skipif(not shutil.which("g++"), reason="no g++"),
    pytest.mark.skipif(
        not (ROOT / "kernels").is_dir(), reason="the sources are not beside the tests"
    ),
    pytest.mark.skipif(SANITIZED, reason="AddressSanitizer does not know these stacks"),
]

THREADS = 256
# c/sums.h's number, and how many terms each sum has: of moments that of the squares comes second.
FOLDS = {
    "floats": (0, [2]),
    "doubles": (1, [3]),
    "complex doubles": (2, [3, 3]),
    "moments of floats": (3, [2, 4]),
    "moments of doubles": (4, [4, 6]),
}
WARP, BLOCK, BLOCK_OF_LEFT, COLUMNS, COLUMNS_OF_LEFT = range(5)
# Way, columns, threads down, and how many states of each column come together.
WAYS = {
    "a warp": (WARP, 1, 32, 32),
    "a block": (BLOCK, 1, THREADS, THREADS),
    "few left": (BLOCK_OF_LEFT, 1, THREADS, 17),
    "more left than threads": (BLOCK_OF_LEFT, 1, THREADS, 300),
    "columns": (COLUMNS, 32, 8, 8),
    "narrow columns": (COLUMNS, 4, 64, 64),
    "columns that fill no block": (COLUMNS, 3, 85, 85),
    "columns left": (COLUMNS_OF_LEFT, 32, 8, 13),
    "few columns left": (COLUMNS_OF_LEFT, 3, 85, 20),
}
EACH = list(itertools.product(FOLDS, WAYS))


class Job(ctypes.Structure):
    """c/sums.h's."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("fold", "way", "width", "height", "entries")),
        ("in_", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("told", ctypes.c_int),
    )


@pytest.fixture(scope="module")
def launch(tmp_path_factory):
    target = tmp_path_factory.mktemp("sums") / "sums.so"
    command = ["g++", *FLAGS, "-DSUMS", ROOT / "tests/c/operator_fibers.cpp", "-o", target]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(target)).launch


def terms(rng, shape, bits):
    """Terms that lie within so many bits of each other."""
    return rng.standard_normal(shape) * np.exp2(rng.integers(-bits, 1, shape))


def together(launch, fold, way, numbers):
    """The sums' terms of each column, how many counted, and whether it was told."""
    which, counts = FOLDS[fold]
    of, width, height, entries = WAYS[way]
    out = np.full((width, sum(counts) + 1), np.nan)
    job = Job(which, of, width, height, entries, numbers.ctypes.data, out.ctypes.data)
    assert launch(ctypes.byref(job), 1, THREADS, 0, SEED) == 0
    return out[:, :-1], out[:, -1], bool(job.told)


def draw(rng, fold, way, bits):
    of, width, _, entries = WAYS[way]
    states = entries * width if of in (BLOCK_OF_LEFT, COLUMNS_OF_LEFT) else THREADS
    return terms(rng, (states, sum(FOLDS[fold][1])), bits)


def sums(x, counts):
    """Of each sum its terms, exactly."""
    parts = np.split(x, np.cumsum(counts)[:-1], axis=-1)
    return [sum(map(Fraction, part.ravel().tolist())) for part in parts]


@pytest.mark.parametrize(("fold", "way"), EACH)
def test_no_bit_is_lost(launch, fold, way):
    of, width, _, entries = WAYS[way]
    counts = FOLDS[fold][1]
    for bits in (0, 20):
        numbers = draw(generator("sums", fold, way, bits), fold, way, bits)
        found, n, told = together(launch, fold, way, numbers)
        assert told
        for x in range(width):
            mine = numbers[x : width * entries : width]
            assert sums(found[x], counts) == sums(mine, counts)
            assert of == WARP or n[x] == entries


@pytest.mark.parametrize(("fold", "way"), EACH)
def test_what_does_not_fit_stays_as_it_was(launch, fold, way):
    of, width, _, _ = WAYS[way]
    numbers = draw(generator("sums", fold, way, "far"), fold, way, 900)
    found, _, told = together(launch, fold, way, numbers)
    assert not told
    if of not in (BLOCK_OF_LEFT, COLUMNS_OF_LEFT):
        np.testing.assert_array_equal(found, numbers[:width])


@pytest.mark.parametrize(("fold", "way"), EACH)
def test_a_nan_decides_its_column(launch, fold, way):
    _, width, _, entries = WAYS[way]
    counts = FOLDS[fold][1]
    numbers = draw(generator("sums", fold, way, "nan"), fold, way, 10)
    numbers[width * (entries // 2) + width - 1, 0] = math.nan
    found, _, told = together(launch, fold, way, numbers)
    assert told
    assert math.isnan(found[width - 1, 0])
    for x in range(width - 1):
        assert sums(found[x], counts) == sums(numbers[x : width * entries : width], counts)
    numbers[0, 0] = math.inf
    assert not together(launch, fold, way, numbers)[2] or width == 1


@pytest.mark.parametrize(("fold", "way"), [each for each in EACH if "moments" not in each[0]])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_zeros_keep_their_sign(launch, fold, way, zero):
    _, width, _, entries = WAYS[way]
    numbers = np.full_like(draw(generator("sums"), fold, way, 0), -0.0)
    numbers[width * (entries // 2) + width - 1, 0] = zero
    found, _, told = together(launch, fold, way, numbers)
    assert told
    assert np.signbit(found[-1, 0]) == np.signbit(zero)
    assert np.signbit(found[:-1, 0]).all()


@pytest.mark.parametrize(("fold", "way"), EACH)
@pytest.mark.parametrize("scale", [5e-324, 1e-310, 2.0**-960])
def test_the_smallest_numbers(launch, fold, way, scale):
    """They are told exactly, or not at all."""
    rng, (_, width, _, entries) = generator("smallest", fold, way, scale), WAYS[way]
    numbers = draw(rng, fold, way, 0)
    numbers = rng.integers(-9, 10, numbers.shape) * scale
    found, _, told = together(launch, fold, way, numbers)
    for x in range(width if told else 0):
        mine = numbers[x : width * entries : width]
        assert sums(found[x], FOLDS[fold][1]) == sums(mine, FOLDS[fold][1])
