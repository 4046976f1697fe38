"""The C half by itself: the plan, the public header, failing allocations. No Python in between."""

import math
import os
import runpy
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from arrays import finite_bits, generator
from reference import max_of, mean_of, min_of, prod_of, ptp_of, sum_of
from table import SANITIZED, TOOLS

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent / "c"
CC, CXX = os.environ.get("CC", "gcc"), os.environ.get("CXX", "g++")
FLAGS = ["-O1", "-g", "-ffp-contract=off", "-fwrapv", "-Wall", "-Wextra", "-Werror"]
SECONDS = 60

pytestmark = [
    pytest.mark.skipif(
        not shutil.which(CC) or not shutil.which(CXX), reason=f"no {CC} or no {CXX}"
    ),
    pytest.mark.skipif(not (ROOT / "csrc").is_dir(), reason="the sources are not beside the tests"),
]


def setup_py():
    """setup.py's names, without the call that builds and without setuptools."""
    nothing = mock.Mock()
    stand_in = SimpleNamespace(Extension=nothing, setup=nothing, build_ext=object)
    names = ("setuptools", "setuptools.command", "setuptools.command.build_ext")
    with mock.patch.dict(sys.modules, dict.fromkeys(names, stand_in)):
        return runpy.run_path(str(ROOT / "setup.py"))


def headers_c():
    """What the build makes of kernels/'s headers of device code."""
    here = os.getcwd()
    os.chdir(ROOT)
    try:
        return setup_py()["headers_c"]()
    finally:
        os.chdir(here)


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    """{path: object} of the library as a build without Python and instruction sets makes it."""
    room = tmp_path_factory.mktemp("objects")
    sources = [ROOT / "kernels/cpu" / name for name in ("table.cpp", "partials.cpp")]
    sources += [ROOT / name for name in setup_py()["TABLES"]]
    csrc = sorted((ROOT / "csrc").rglob("*.c"))
    sources += [path for path in csrc if path.parent.name != "python"]
    sources += [ROOT / "kernels/abi/lists.c", room / "headers.c"]
    (room / "headers.c").write_text(headers_c())

    def compile(source):
        name = str(source.relative_to(room if source.parent == room else ROOT))
        target = room / f"{name.replace('/', '_')}.o"
        if source.suffix == ".cpp":
            isa = "plain" if source.parent.name == "cpu" else "gpu"
            command = [CXX, "-std=c++17", "-fno-exceptions", "-fno-rtti", f"-DGPR_ISA={isa}"]
            command += ["-fno-threadsafe-statics", "-Wno-unknown-pragmas"]
        else:
            command = [CC, "-std=c11", f"-I{ROOT}"]
        subprocess.run([*command, *FLAGS, "-c", source, "-o", target], check=True, env=TOOLS)
        return name, target

    with ThreadPoolExecutor(2) as pool:
        return dict(pool.map(compile, sources))


def program(room, name, objects, *flags):
    target = room / name
    source = HERE / f"{name}.c"
    command = [CC, "-std=c11", *FLAGS, source, *objects, *flags, "-o", target]
    command += ["-lpthread", "-ldl", "-lm"]
    subprocess.run(command, check=True, env=TOOLS)
    return target


def run(target, text=""):
    done = subprocess.run(
        [target], input=text, capture_output=True, text=True, timeout=SECONDS, env=TOOLS
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_plan(objects, tmp_path):
    names = ["csrc/plan.c", "csrc/layout.c", "kernels/abi/lists.c"]
    run(program(tmp_path, "plan", [objects[name] for name in names]))


@pytest.mark.parametrize("n", [1, 33, 5000])
def test_a_c_program(objects, tmp_path, n):
    target = program(tmp_path, "reduce", objects.values())
    x = finite_bits(generator("C program", n), np.dtype("f8"), n)
    got = run(target, "\n".join(float.hex(value) for value in x.tolist()))
    references = [sum_of, sum_of, mean_of, prod_of, min_of, max_of, ptp_of]
    want = [f(x, x.dtype) for f in references] + [sum_of(np.append(x, 1e300), x.dtype)]
    for line, value in zip(got.split(), want, strict=True):
        given = float(line) if "n" in line else float.fromhex(line)
        assert np.float64(given).tobytes() == value.tobytes() or (
            math.isnan(given) and math.isnan(value)
        )


def test_partials(objects, tmp_path):
    run(program(tmp_path, "partials", objects.values()))


def test_every_allocation_fails_once(objects, tmp_path):
    wrapped = ["malloc", "aligned_alloc", "free", "pthread_create"]
    flags = [f"-Wl,--wrap={name}" for name in wrapped]
    run(program(tmp_path, "memory", objects.values(), *flags))


OUT_OF_MEMORY = """
import ctypes
import resource
import numpy as np
import gpureduce

wide = np.broadcast_to(np.complex128(1), 1 << 22)
gpureduce.sum(wide)  # the stack has grown to what this takes
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
