"""The C half by itself: the plan, the public header, failing allocations. No Python in between."""

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from arrays import finite_bits, generator
from reference import max_of, mean_of, min_of, prod_of, ptp_of, sum_of
from table import SANITIZED, TOOLS

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent / "c"
CC = os.environ.get("CC", "gcc")
LIBRARY = ROOT / "build/objects/libgpureduce.flags"  # and what it needs
FLAGS = ["-O1", "-g", "-ffp-contract=off", "-fwrapv", "-Wall", "-Wextra", "-Werror"]
SECONDS = 60

pytestmark = pytest.mark.skipif(
    not LIBRARY.exists() or not shutil.which(CC), reason=f"no {LIBRARY.name} or no {CC}"
)


def program(room, name, *flags):
    target = room / name
    command = [CC, "-std=c11", *FLAGS, HERE / f"{name}.c", *flags, f"@{LIBRARY}", "-o", target]
    subprocess.run(command, check=True, env=TOOLS)
    return target


def run(target, text=""):
    done = subprocess.run(
        [target], input=text, capture_output=True, text=True, timeout=SECONDS, env=TOOLS
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_plan(tmp_path):
    run(program(tmp_path, "plan"))


@pytest.mark.parametrize("n", [1, 33, 5000])
def test_a_c_program(tmp_path, n):
    target = program(tmp_path, "reduce")
    x = finite_bits(generator("C program", n), np.dtype("f8"), n)
    got = run(target, "\n".join(float.hex(value) for value in x.tolist()))
    references = [sum_of, sum_of, mean_of, prod_of, min_of, max_of, ptp_of]
    want = [f(x, x.dtype) for f in references] + [sum_of(np.append(x, 1e300), x.dtype)]
    for line, value in zip(got.split(), want, strict=True):
        given = float(line) if "n" in line else float.fromhex(line)
        assert np.float64(given).tobytes() == value.tobytes() or (
            math.isnan(given) and math.isnan(value)
        )


def test_partials(tmp_path):
    run(program(tmp_path, "partials"))


def test_every_allocation_fails_once(tmp_path):
    wrapped = ["malloc", "aligned_alloc", "free", "pthread_create"]
    flags = [f"-Wl,--wrap={name}" for name in wrapped]
    run(program(tmp_path, "memory", *flags))


OUT_OF_MEMORY = """
import ctypes
import resource
import time
import numpy as np
import gpureduce

wide = np.broadcast_to(np.complex128(1), 1 << 22)
gpureduce.sum(wide)  # the stack has grown to what this takes
time.sleep(0.2)  # and its helper, if it has one, has begun
full = resource.getrlimit(resource.RLIMIT_AS)
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
blocks = [None] * 100_000
resource.setrlimit(resource.RLIMIT_AS, (1 << 20, full[1]))
for i in range(len(blocks)):
    blocks[i] = libc.malloc(100_000)  # until no such block is left
    if blocks[i] is None:
        break
gpureduce.set_num_threads(256)
try:
    gpureduce.sum(wide)
except MemoryError as error:
    said = str(error)
else:
    said = ""
gpureduce.set_num_threads(2)
total = gpureduce.sum(wide)  # needs little, and no thread can start
resource.setrlimit(resource.RLIMIT_AS, full)
for block in blocks:
    libc.free(block)
assert "memory" in said, said
assert total == 1 << 22
gpureduce.set_num_threads(256)
assert gpureduce.sum(wide) == 1 << 22
print("end")
"""


@pytest.mark.skipif(SANITIZED, reason="AddressSanitizer needs address space without limit")
def test_memory_error():
    """The states of 256 threads take 300 KB."""
    done = subprocess.run(
        [sys.executable, "-c", OUT_OF_MEMORY], capture_output=True, text=True, timeout=SECONDS
    )
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
