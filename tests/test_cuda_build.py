"""What nvcc makes of the kernels, looked at in PTX: no GPU is needed for that.

Exactness and the tree depend on each operation being rounded once, by itself."""

import os
import re
import runpy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from table import TOOLS

import gpureduce
from gpureduce import _core

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 600


def setup_py():
    """setup.py's names, without the call that builds and without setuptools."""
    if not (ROOT / "setup.py").exists():
        pytest.skip("the sources are not beside the tests")
    nothing = mock.Mock()
    stand_in = SimpleNamespace(Extension=nothing, setup=nothing, build_ext=object)
    names = ("setuptools", "setuptools.command", "setuptools.command.build_ext")
    with mock.patch.dict(sys.modules, dict.fromkeys(names, stand_in)):
        return runpy.run_path(str(ROOT / "setup.py"))


def kept_by_the_build(source):
    """The PTX that a build of these very sources kept (GPUREDUCE_PTX=1), or None."""
    made_of = [ROOT / "setup.py", *(ROOT / "kernels").rglob("*")]  # the flags are in setup.py
    newest = max(path.stat().st_mtime for path in made_of)
    for path in (ROOT / "build/objects/ptx" / source.stem).glob("*.ptx"):
        text = path.read_text()
        if path.stat().st_mtime > newest and ".target sm_90" in text:
            return text
    return None


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """{name: text} of every entry and function of kernels/gpu*.cu for sm_90."""
    build = setup_py()
    toolkit = build["Toolkit"]()
    if not toolkit.nvcc:
        pytest.skip("no nvcc")
    room = tmp_path_factory.mktemp("ptx")
    flags = ["--ptx", "--gpu-architecture=compute_90", *build["CUDA_FLAGS"]]
    head = r"^(?:\.\w+ )*\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)"

    def text_of(source):
        if text := kept_by_the_build(source):
            return text
        target = room / f"{source.stem}.ptx"
        command = [toolkit.nvcc, *flags, source, "-o", target]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=TOOLS)
        assert done.returncode == 0, done.stderr
        return target.read_text()

    found = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for text in pool.map(text_of, sorted((ROOT / "kernels").glob("gpu*.cu"))):
            parts = re.split(head, text, flags=re.M)
            found |= zip(parts[1::2], parts[2::2], strict=True)
    return found


def lines(functions, pattern):
    """(function, instruction) of all that match."""
    return {
        (name, line.strip())
        for name, text in functions.items()
        for line in text.splitlines()
        if re.match(rf"\s*(?:@!?%p\d+\s+)?(?:{pattern})", line)
    }


def test_every_kernel_is_there(functions):
    named = {kind: [n for n in functions if kind in n] for kind in ("flat_exact", "flat_tree")}
    assert len(named["flat_exact"]) == 6 and len(named["flat_tree"]) == 8
    assert any("flat_free" in name for name in functions)
    assert any("gather" in name for name in functions)
    for kind in ("rows", "columns", "staged", "shallow", "packed", "segments", "general", "trees"):
        assert any(f"{len(kind)}{kind}I" in name for name in functions), kind
    for name in {kernel["name"] for kernel in gpureduce.kernels()} - {"default"}:
        body = "unrolled" if re.fullmatch(r"unroll\d", name) else name
        assert any(f"ladder{len(body)}{body}I" in entry for entry in functions), name


def test_nothing_is_fused(functions):
    """But where fma() is written, in quotients and squares of exact sums along axes. Nor left to
    the assembler to be: without a rounding mode it may contract."""
    written = r"PairSum|Moments|MomentState|Near|near|spread"
    assert all(re.search(written, name) for name, _ in lines(functions, r"fma\."))
    assert not lines(functions, r"mad\.(?:\w+\.)*f\d+")
    assert not lines(functions, r"(?:add|sub|mul)\.(?:sat\.)?f(?:32|64|16)\b")
    assert lines(functions, r"(?:add|sub|mul)\.rn\.f64"), "these are the ones looked for"


def test_nothing_is_flushed_or_approximated(functions):
    """But nvcc's own division of 128-bit integers, which guesses first and mends its guess."""
    assert not lines(functions, r"[\w.]*\.(?:ftz|full)\b")
    divides = "LongSum|Moments|integer_spread|round_long|8quotientE"
    for name, line in lines(functions, r"[\w.]*\.approx\b"):
        assert line.startswith("rcp.approx.f32") and re.search(divides, name), (name, line)


def test_nothing_is_spilled_into_local_arrays_on_the_way(functions):
    """An indexed array in the exact kernels' entry would halve their speed; matrices' too."""
    flat = {
        name: text
        for name, text in functions.items()
        if re.search("flat_exact|flat_tree.*matrix", name)
    }
    assert not lines(flat, r"(?:ld|st)\.local")


def test_a_build_without_cuda_says_so():
    count, why = _core.device_count()
    if count or "built without CUDA" not in why:
        pytest.skip("built with CUDA")
    with pytest.raises(gpureduce.DeviceError, match=r"built without CUDA.*nvcc"):
        gpureduce.sum([1.0], device="cuda")
