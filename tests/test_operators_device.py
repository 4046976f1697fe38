"""Users' operators as device code: what NVRTC makes of them. No GPU is needed for that."""

import pickle
import re
import subprocess
import sys
from pathlib import Path

import operator_walks as walks
import pytest
from operator_cases import CASES
from table import SANITIZED
from test_device_code import LIBRARIES, library

from gpureduce import Operator
from gpureduce.custom import textbook
from gpureduce.custom.cut import BLOCKS_FAN, FAN, FEW_DIMS, FEW_MOST, ROOM, STAGED_FAN
from gpureduce.custom.device import (
    BY_THREADS,
    BY_WARPS,
    FEW,
    STAGED,
    Device,
    arrays_of,
    device,
    shape_of,
)
from gpureduce.custom.program import with_absence
from gpureduce.custom.scalars import F4, F8, HALF, I8, Kind

KERNELS = Path(__file__).resolve().parent.parent / "kernels"
OPTIONS = ["--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--std=c++17",
           "--device-int128", "--diag-suppress=186", f"-I{KERNELS}",
           f"-I{KERNELS / 'nvrtc'}"]  # fmt: skip
CHOSEN = {
    "welford": F8,
    "hypot": F4,
    "quaternions": F8,
    "matrices": F8,
    "longest run": I8,
    "modular affine": I8,
    "argmax": F8,
    "logsumexp": F8,
    "half": HALF,
    "histogram": F4,
}

pytestmark = [
    pytest.mark.skipif(SANITIZED, reason="AddressSanitizer is not for compilers"),
    pytest.mark.skipif(not KERNELS.is_dir(), reason="the sources are not beside the tests"),
]


def program_of(name):
    op = Operator(**CASES[name].text)
    program = op._program(tuple(Kind(CHOSEN[name]) for _ in op._front.inputs))
    return with_absence(program) if CASES[name].skips else program


def compiled(path, made, kernels, arch):
    """The kernels' lowered names and their image, by a process of its own: NVRTC changes the locale
    of who loads it."""
    source = f'#include "{made.header}"\nusing namespace gpr;\n{made.defines}'
    options = [*OPTIONS, f"--gpu-architecture={arch}"]
    given = pickle.dumps((str(path), source, kernels, options, arch.startswith("compute")))
    command = [sys.executable, Path(__file__).with_name("nvrtc.py")]
    done = subprocess.run(command, input=given, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    return pickle.loads(done.stdout)


def path_of(which):
    path = library(which)
    if path is None:
        pytest.skip(f"no {LIBRARIES[which][1]}")
    return path


@pytest.mark.parametrize("name", CHOSEN)
@pytest.mark.parametrize("which", LIBRARIES)
def test_the_trees_of_an_operator_compile_exactly(which, name):
    made = device(program_of(name))
    trees = [BY_THREADS, BY_WARPS, STAGED, FEW.format(2), FEW.format(4)]
    kernels, image = compiled(path_of(which), made, trees, "compute_90")
    text = image.rstrip(b"\0").decode()
    assert all(f".entry {kernel}" in text for kernel in kernels)
    assert not re.search(r"^\.extern\s+\.func", text, re.M)
    if name == "logsumexp":  # exp() and log() are NVIDIA's own
        return
    rounded = re.findall(r"\b((?:add|sub|mul|div|sqrt|fma|mad)\.[\w.]*f(?:16|32|64))\b", text)
    assert all(re.match(r"\w+\.rn\.", op) for op in rounded), set(rounded)
    # Roots and quotients are made of one estimate and so many fused steps; no other is fused or
    # estimated.
    steps = {"rsqrt.approx.ftz.f32": 2, "rsqrt.approx.ftz.f64": 5,
             "rcp.approx.ftz.f32": 6, "rcp.approx.ftz.f64": 7}  # fmt: skip
    made_of = {op: len(re.findall(rf"\b{re.escape(op)}\b", text)) for op in steps}
    assert {op for op, n in made_of.items() if n} == (
        {"rsqrt.approx.ftz.f32"}
        if name == "hypot"
        else {"rcp.approx.ftz.f64"}
        if name == "welford"
        else set()
    )
    fused = [op for op in rounded if op.startswith(("fma", "mad"))]
    assert len(fused) == sum(n * steps[op] for op, n in made_of.items())
    assert len(re.findall(r"\.(?:ftz|approx|full)\b", text)) == 2 * sum(made_of.values())


@pytest.mark.parametrize("name", ["welford", "hypot"])
def test_an_image_for_a_device(name):
    made = device(program_of(name))
    (kernel,), image = compiled(path_of("newest"), made, [BY_WARPS], "sm_90")
    assert image[:4] == b"\x7fELF" and kernel.encode() in image


@pytest.mark.parametrize("kernel", walks.TEXTBOOK)
def test_the_textbook_kernels_compile(kernel):
    text = textbook.text(program_of("argmax"))
    made = Device(textbook.HEADER, text, None, ())
    expression = f"gpr::ladder::{kernel}<gpr::UserOperator>"
    (name,), _ = compiled(path_of("newest"), made, [expression], "sm_90")
    assert kernel in name


def test_work_is_cut_by_the_size_of_states():
    for name in CHOSEN:
        program = program_of(name)
        shape = shape_of(program)
        of_row = max(shape.packet * shape.leaf, shape.state)
        assert shape.leaves <= shape.run, name
        assert shape.rows == 1 or shape.rows * of_row <= 256, name  # bytes that registers have
        assert shape.threads * (shape.state + 8) <= 48 << 10, name
        assert sum(len(a.streams) for a in arrays_of(program)) == len(program.streams)


def test_stages_are_the_kernels():
    text = (KERNELS / "gpu/tree_staged.cuh").read_text()
    room = re.search(r"\bTREE_ROOM = (\d+) << 10, TREE_FAN_STAGE = (\d+)", text)
    assert room and (int(room[1]) << 10, int(room[2])) == (ROOM, STAGED_FAN)
    text = (KERNELS / "gpu/tree_few.cuh").read_text()
    few = re.search(r"\bTREE_FEW_DIMS = (\d+), TREE_FEW_MOST = (\d+)", text)
    assert few and (int(few[1]), int(few[2])) == (FEW_DIMS, FEW_MOST)
    text = (KERNELS / "gpu/climb.cuh").read_text()
    fans = re.search(r"\bCLIMB_FAN = (\d+), CLIMB_BLOCKS = (\d+)", text)
    assert fans and (int(fans[1]), int(fans[2])) == (FAN, BLOCKS_FAN)
