"""The C entry: random arguments, a header that stands alone, a library that can be linked."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from arrays import SEED
from table import SANITIZED, TOOLS

import gpureduce

ROOT = Path(__file__).resolve().parent.parent
HEADER = ROOT / "csrc/gpureduce.h"
BUILD = ROOT / ("build/objects-address-undefined" if SANITIZED else "build/objects")
FLAGS = BUILD / "libgpureduce.flags"
STRICT = ["-O1", "-Wall", "-Wextra", "-Werror"]
CALLS = 20_000
PROGRAM = """
#include <stdio.h>
#include "gpureduce.h"
int main(void) {
  static const double x[] = {1e16, 1, -1e16};
  const gpr_view view = gpr_view_of(x, GPR_FLOAT64, 3);
  gpr_value sum;
  if (gpr_reduce("sum", &view, 0, &sum) != GPR_OK) return puts(gpr_error()), 1;
  return printf("%g %s %s", gpr_as_double(&sum, 0), gpr_version(), GPUREDUCE_VERSION) < 0;
}
"""

pytestmark = pytest.mark.skipif(
    not FLAGS.exists() or not shutil.which("gcc"), reason=f"no {FLAGS.name} or no gcc"
)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, env=TOOLS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_random_calls(tmp_path):
    source = ROOT / "tests/c/fuzz.c"
    run("gcc", "-std=gnu11", "-g", *STRICT, source, f"@{FLAGS}", "-o", tmp_path / "fuzz")
    sound = int(run(tmp_path / "fuzz", str(SEED % 2**32), str(CALLS)).split()[0])
    assert CALLS * 0.7 < sound < CALLS * 0.8


def test_wrong_calls_say_what_was_given(tmp_path):
    source, program = ROOT / "tests/c/wrong.c", tmp_path / "wrong"
    run("gcc", "-std=gnu11", "-g", *STRICT, "-I", ROOT / "csrc", source, f"@{FLAGS}", "-o", program)
    lines = run(program).splitlines()
    assert len(lines) == 39
    for line in lines:
        what, status, message = line.split(" | ")
        assert status in ("bad value", "bad type") and what.split(" is ")[0] in message, line
        assert what in message or what == "no identity" or "2^63" in message, line


@pytest.mark.parametrize("language", ["c", "c++"])
def test_the_header_can_be_copied_alone(tmp_path, language):
    compiler, standard = ("gcc", "-std=c11") if language == "c" else ("g++", "-std=c++17")
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    (tmp_path / "far/away").mkdir(parents=True)
    shutil.copy(HEADER, tmp_path / "far/away")
    (tmp_path / "program.c").write_text(PROGRAM)
    include = ["-I", tmp_path / "far/away"]
    run(compiler, standard, *STRICT, *include, "-c", "-x", language, tmp_path / "program.c",
        "-o", tmp_path / "program.o")  # fmt: skip
    run("gcc", tmp_path / "program.o", f"@{FLAGS}", "-o", tmp_path / "program")
    version = gpureduce.__version__
    assert run(tmp_path / "program") == f"1 {version} {version}"


@pytest.mark.skipif(SANITIZED, reason="there is none")
def test_the_shared_library(tmp_path):
    """It has the soname of its version, and what the header declares and nothing else."""
    (shared,) = BUILD.glob("libgpureduce.so.*")
    (tmp_path / "program.c").write_text(PROGRAM)
    command = ["gcc", *STRICT, "-I", ROOT / "csrc", tmp_path / "program.c", shared]
    run(*command, f"-Wl,-rpath,{BUILD}", "-o", tmp_path / "program")
    assert run(tmp_path / "program").startswith("1 ")
    assert shared.name == f"libgpureduce.so.{gpureduce.__version__.rpartition('.')[0]}"
    if shutil.which("readelf") and shutil.which("nm"):
        assert f"[{shared.name}]" in run("readelf", "-d", shared)
        lines = run("nm", "-D", "--defined-only", shared).splitlines()
        declared = re.findall(r"^[A-Za-z][^(;{]*?[ *](gpr_\w+)\(", HEADER.read_text(), re.M)
        assert sorted(line.split()[-1] for line in lines) == sorted(declared)


def test_the_header_lists_what_there_is():
    text = HEADER.read_text()
    enum = text[text.index("enum gpr_dtype {") : text.index("GPR_DTYPE_COUNT")]
    assert [name.lower() for name in re.findall(r"GPR_(\w+),", enum)] == gpureduce.dtypes()
    listed = text[text.index("Operators: ") : text.index("Every function may")]
    for op in gpureduce.operators():
        for name in {op["name"], op["ufunc"]} - {""}:
            assert re.search(rf"\b{name}\b", listed), name
