"""Which kernel takes a layout and how it is cut, asked without a device: tests/c/select.cpp."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
from table import SANITIZED

ROOT = Path(__file__).resolve().parent.parent

pytestmark = [
    pytest.mark.skipif(not shutil.which("g++"), reason="no g++"),
    pytest.mark.skipif(
        not (ROOT / "kernels").is_dir(), reason="the sources are not beside the tests"
    ),
    pytest.mark.skipif(SANITIZED, reason="it is compiled without"),
]


def test_random_layouts(tmp_path):
    target = tmp_path / "select.so"
    flags = ["-std=c++17", "-O1", "-fwrapv", "-shared", "-fPIC", "-w", "-fvisibility=hidden"]
    flags += ["-ffunction-sections", "-Wl,--gc-sections", "-fno-exceptions", "-fno-rtti"]
    subprocess.run(["g++", *flags, ROOT / "tests/c/select.cpp", "-o", target], check=True)
    counts = (ctypes.c_int64 * 13)()
    assert ctypes.CDLL(str(target)).select_all(200_000, counts) == 0
    assert min(counts) > 4, list(counts)
