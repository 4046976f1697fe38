"""Device code that the host can ask: which kernel takes a layout and how it is cut
(tests/c/select.cpp), and how the first of a batch's best is found (tests/c/places.cpp)."""

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
