"""The textbook kernels where there is no GPU: compiled for the host by tests/c/fibers.cpp, their
threads as fibers in random order between barriers. Launched here as csrc/cuda/ladder.c does."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from arrays import SEED, draw, generator, matrices
from table import SANITIZED, assert_bits, call

import gpureduce

ROOT = Path(__file__).resolve().parent.parent
KERNELS = {kernel["name"]: (i, kernel) for i, kernel in enumerate(gpureduce.kernels())}
OPS = {op["name"]: i for i, op in enumerate(gpureduce.operators()) if op["takes_kernel"]}
LIFT, PARTIALS = -1, -2
BLOCKS = 5  # that a device runs at the same time, of any size
VALUE = 32  # the most bytes of a value

# A row of each operator and of each type: the bodies are templates, and a barrier is theirs.
ROWS = [("sum", "int32"), ("prod", "int64"), ("min", "float32"), ("max", "float64")]

pytestmark = [
    pytest.mark.skipif(not shutil.which("g++"), reason="no g++"),
    pytest.mark.skipif(
        not (ROOT / "kernels").is_dir(), reason="the sources are not beside the tests"
    ),
    pytest.mark.skipif(SANITIZED, reason="AddressSanitizer does not know these stacks"),
]


class Arguments(ctypes.Structure):
    """gpr_ladder_args."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("n", ctypes.c_int64),
        ("copy", ctypes.c_void_p),
        ("copied", ctypes.c_int64),
        ("partials", ctypes.c_void_p),
        ("blocks", ctypes.c_int64),
        ("ticket", ctypes.c_void_p),
        ("result", ctypes.c_void_p),
    )


@pytest.fixture(scope="module")
def launch(tmp_path_factory):
    target = tmp_path_factory.mktemp("fibers") / "fibers.so"
    flags = ["-std=c++17", "-O1", "-fwrapv", "-ffp-contract=off", "-shared", "-fPIC", "-w"]
    command = ["g++", *flags, ROOT / "tests/c/fibers.cpp", "-o", target]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(target)).launch


def fold(launch, kernel, op, a):
    """The result's bytes."""
    index, about = KERNELS[kernel]
    (threads, most), unroll, n = about["threads"], about["unroll"], len(a)
    while threads < most and threads * unroll < n:
        threads *= 2
    tile = threads * unroll
    blocks = {"one": 1, "tiles": -(-n // tile) or 1, "device": min(BLOCKS, -(-n // tile) or 1)}[
        about["grid"]
    ]
    copied = blocks * tile if about["in_place"] else 0
    copy, partials = (np.full(count * VALUE, 0x5A, np.uint8) for count in (copied, blocks))
    ticket, result = np.zeros(1, np.uint32), np.zeros(VALUE, np.uint8)
    where = [x.ctypes.data for x in (a, copy, partials, ticket, result)]
    arguments = Arguments(where[0], n, where[1], copied, where[2], blocks, where[3], where[4])
    steps = [(LIFT, 3, 1024)] if copied else []
    steps.append((index, blocks, threads))
    steps += [(PARTIALS, 1, 1024)] if about["second_launch"] else []
    size = max(0, (threads // 128).bit_length() - 1)
    dtype = gpureduce.dtypes().index(a.dtype.name)
    for which, grid, block in steps:
        failed = launch(OPS[op], dtype, which, size, grid, block, ctypes.byref(arguments), SEED)
        assert not failed, {1: "a barrier that not all threads reach", 2: "no kernel"}[failed]
    return result


def suited(op, dtype, n):
    """Integers of any size, floats whose sums and products are exact in any order."""
    rng = generator("fibers", op, dtype, n)
    if np.dtype(dtype).kind == "i":
        return draw(rng, np.dtype(dtype), n) | (op == "prod")
    if op == "prod":
        return (1 - 2 * rng.integers(0, 2, n)).astype(dtype)
    return rng.integers(-9, 10, n).astype(dtype)


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name != "default"])
def test_each_kernel(launch, kernel):
    about = KERNELS[kernel][1]
    least, most = (threads * about["unroll"] for threads in about["threads"])
    sizes = {1, 2, 31, 32, 33, least - 1, least, least + 1, most + 1, 2 * most + 77}
    for n in sorted({n for n in sizes if not about["limit"] or n <= about["limit"]}):
        for op, dtype in ROWS:
            a = suited(op, dtype, n)
            before, want = a.copy(), np.asarray(call(op, a, device="cpu"))
            got = fold(launch, kernel, op, a)[: want.nbytes].view(want.dtype)[0]
            assert_bits(got, want, f"{kernel}: {op} of {n} {dtype}")
            assert np.array_equal(a, before)


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name != "default"])
def test_none_and_what_floats_have(launch, kernel):
    n = KERNELS[kernel][1]["limit"] or 1500
    zero, nan = -np.zeros(n), np.arange(float(n))
    nan[n - 1] = -np.nan
    for op, a in (("sum", zero), ("sum", nan), ("min", nan), ("max", nan), ("sum", zero[:0])):
        want = np.asarray(call(op, a, device="cpu"))
        got = fold(launch, kernel, op, a)[: want.nbytes].view(want.dtype)[0]
        assert_bits(got, want, f"{kernel}: {op} of {a}")


@pytest.mark.parametrize(
    "kernel", [k for k in KERNELS if KERNELS[k][1]["in_order"] and k != "default"]
)
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_the_order_is_kept(launch, kernel, dtype):
    about = KERNELS[kernel][1]
    for n in (0, 1, 2, 31, 32, 511, 512, 513, 5000):
        if about["limit"] and n > about["limit"]:
            continue
        m = matrices(generator("fibers", n), np.dtype(dtype), n)
        got = fold(launch, kernel, "matmul2x2", m).view(dtype).reshape(2, 2)
        want = gpureduce.reduce(m, "matmul2x2", device="cpu")
        assert_bits(got, want, f"{kernel}: {n} matrices")
