"""Device code that the host can ask: which kernel takes a layout and how it is cut
(tests/c/select.cpp), how the first of a batch's best is found (tests/c/places.cpp), and whether
every kernel is C++."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from table import SANITIZED

from gpureduce import _core

ROOT = Path(__file__).resolve().parent.parent

pytestmark = [
    pytest.mark.skipif(not shutil.which("g++"), reason="no g++"),
    pytest.mark.skipif(
        not (ROOT / "kernels").is_dir(), reason="the sources are not beside the tests"
    ),
    pytest.mark.skipif(SANITIZED, reason="it is compiled without"),
]


def compiled(name, tmp_path):
    target = tmp_path / f"{name}.so"
    flags = ["-std=c++17", "-O1", "-fwrapv", "-shared", "-fPIC", "-w", "-fvisibility=hidden"]
    flags += ["-ffunction-sections", "-Wl,--gc-sections", "-fno-exceptions", "-fno-rtti"]
    subprocess.run(["g++", *flags, ROOT / f"tests/c/{name}.cpp", "-o", target], check=True)
    return ctypes.CDLL(str(target))


def test_random_layouts(tmp_path):
    counts = (ctypes.c_int64 * 18)()
    assert compiled("select", tmp_path).select_all(200_000, counts) == 0
    assert min(counts) > 4, list(counts)


def test_the_first_of_the_best(tmp_path):
    assert compiled("places", tmp_path).wrong_places() == 0


def test_every_kernel_for_many_outputs_is_instantiated(tmp_path):
    """By g++, which takes seconds for all: NVRTC compiles some of them in these tests."""
    head = "gpu/axes_kernels.cuh"
    text = [f'#include "{ROOT}/kernels/{name}"' for name in ("gpu/as_host.h", head)]
    text.append("namespace gpr { inline namespace gpu {")
    for n, (kernel, fold, header) in enumerate(_core.programs()):
        if header == head:
            own = re.sub(r"\bF\b", f"F{n}", kernel)
            text.append(f"typedef {fold} F{n};\ntemplate void {own}(const gpr_axes_args);")
    source = tmp_path / "all.cpp"
    source.write_text("\n".join([*text, "}}"]))
    assert len(text) > 1000
    command = ["g++", "-std=c++17", "-fsyntax-only", "-w", "-DGPR_ISA=gpu", source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr[:5000]
