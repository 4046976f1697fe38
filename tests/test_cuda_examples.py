"""examples/*.cu: each compiles with nvcc alone, and runs."""

import shutil
import subprocess
from pathlib import Path

import pytest
from table import TOOLS

from gpureduce import _core

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
COUNT, WHY = _core.device_count()
SECONDS = 120
PRINTED = {
    "hello": ["hello from the host"]
    + [f"hello from thread {t} of block {b}" for b in range(2) for t in range(4)],
    "fill": ["1000003 of 1000003 elements are 7"],
    "add": ["1000003 of 1000003 sums are right"],
}

pytestmark = [
    pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc"),
    pytest.mark.skipif(not EXAMPLES.exists(), reason="the examples are not beside the tests"),
]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A function: the example of this name, compiled with warnings for errors."""
    folder = tmp_path_factory.mktemp("examples")

    def compile_one(name):
        target = folder / name
        if not target.exists():
            command = ["nvcc", "-Werror=all-warnings", "-o", target, EXAMPLES / f"{name}.cu"]
            done = subprocess.run(command, capture_output=True, text=True, env=TOOLS)
            assert done.returncode == 0, done.stderr
        return target

    return compile_one


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.cu")} == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_compiles(compiled, name):
    assert compiled(name).exists()


@pytest.mark.gpu
@pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")
@pytest.mark.parametrize("name", PRINTED)
def test_runs(compiled, name):
    done = subprocess.run([compiled(name)], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(PRINTED[name])


@pytest.mark.skipif(COUNT > 0, reason="there is a GPU")
@pytest.mark.parametrize("name", PRINTED)
def test_says_what_is_missing(compiled, name):
    done = subprocess.run([compiled(name)], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 1 and "CUDA driver" in done.stderr
