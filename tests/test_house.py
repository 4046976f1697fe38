"""Who may know whom, headers that stand alone, lists that cannot drift, instructions not fused."""

import ast
import inspect
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from table import SANITIZED, TOOLS, dtype_names

import gpureduce
from gpureduce import _core

ROOT = Path(__file__).resolve().parent.parent
ROOMS = {room: sorted((ROOT / room).rglob("*.*")) for room in ("kernels", "csrc")}
FILES = [path for paths in ROOMS.values() for path in paths]
HEADERS = [path for path in FILES if path.suffix in (".h", ".cuh")]
PUBLIC = [name for name in gpureduce.__all__ if inspect.isfunction(getattr(gpureduce, name))]

sources_here = pytest.mark.skipif(not FILES, reason="the sources are not beside the tests")


def includes(path):
    return set(re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(), re.M))


def own(path):
    """Of what a file includes the files of this tree."""
    headers = {(path.parent / name).resolve() for name in includes(path)}
    return {header for header in headers if header.is_file()}


def reached(path):
    """All that a file includes, its own headers' includes too: paths from ROOT, and names."""
    known = {path}
    while more := set().union(*map(own, known)) - known:
        known |= more
    names = {name for one in known for name in includes(one) if not (one.parent / name).is_file()}
    return names | {one.relative_to(ROOT).as_posix() for one in known - {path}}


def about(names, what):
    return {name for name in names if re.search(what, name, re.I)}


PYTHON, CUDA = "python|numpy", r"(^|/)cuda\w*\.h|nvrtc|cub/|cooperative"
# Of the C library: what kernels/nvrtc/ has a stand-in for, and more where NVRTC does not come.
STAND_INS = {path.name for path in ROOMS["kernels"] if path.parent.name == "nvrtc"}
MORE = {"as_host.h": {"math.h"}, "simd.h": {"immintrin.h"}}
# The floors of kernels/, each with those that it stands on.
FLOORS = {
    "nvrtc": set(),
    "abi": set(),
    "core": {"abi"},
    "cpu": {"core", "abi"},
    "gpu": {"core", "abi"},
    "textbook": {"gpu", "core", "abi"},
}
HOST = {"nvrtc", "abi"}  # C's
DEVICE = {"gpu", "textbook"}  # as_host.h's words


@sources_here
def test_instructions_are_named_in_one_file():
    """What another processor needs words of its own for."""
    named = {
        path.relative_to(ROOT).as_posix()
        for path in FILES
        if re.search(r"\b_mm\d*_|\b__m(128|256|512)", path.read_text())
    }
    assert named == {"kernels/cpu/simd.h"}


@sources_here
def test_kernels_know_the_floors_below_alone():
    for path in ROOMS["kernels"]:
        floor = path.parent.name
        assert path.parent.parent == ROOT / "kernels" and floor in FLOORS, path
        for header in own(path):
            assert header.parent.parent == ROOT / "kernels", (path, header)
            assert header.parent.name in FLOORS[floor] | {floor}, (path, header)
        others = {name for name in includes(path) if not (path.parent / name).is_file()}
        assert others <= STAND_INS | MORE.get(path.name, set()), path
        assert not re.search(r"\bstd::", path.read_text()), path


@sources_here
def test_no_file_is_too_long():
    paths = [*ROOMS["kernels"], *ROOMS["csrc"], *(ROOT / "gpureduce").rglob("*.py")]
    long = {path.name: n for path in paths if (n := path.read_text().count("\n")) > 400}
    assert not long


@sources_here
def test_device_code_has_no_header_of_std_or_cuda():
    """Neither itself nor by what it includes: NVRTC has none but those of kernels/nvrtc/."""
    assert sorted(STAND_INS) == ["stddef.h", "stdint.h", "string.h"]
    for path in ROOMS["kernels"]:
        if path.suffix == ".cuh" or path.parent.name == "core":
            names = {name for name in reached(path) if not name.startswith("kernels/")}
            assert names <= STAND_INS, path
            assert not {Path(name).name for name in reached(path)} & set(MORE), path


@sources_here
def test_who_may_know_whom():
    csrc = {path.relative_to(ROOT / "csrc").as_posix(): path for path in ROOMS["csrc"]}
    for name, path in csrc.items():
        text, all_of_it = path.read_text(), reached(path)
        is_cuda, is_python = name.startswith("cuda/"), name.startswith("python/")
        known = {header.relative_to(ROOT).as_posix() for header in own(path)}
        kernels = {one for one in known if one.startswith("kernels/")}
        assert all(one.startswith("kernels/abi/") for one in kernels), f"{name} knows kernels"
        cuda = {one for one in known if one.startswith("csrc/cuda/")}
        names = {one for one in includes(path) if not (path.parent / one).is_file()}
        driver = {"csrc/cuda/driver.h", "csrc/cuda/nvrtc.h"}
        assert is_python or not about(all_of_it, PYTHON), f"{name} knows Python"
        assert not about(names, CUDA), f"{name}: a toolkit"
        assert is_cuda or cuda <= {"csrc/cuda/gpu.h"}, f"{name} knows more of cuda/ than gpu.h"
        assert is_cuda or not driver & all_of_it, f"{name} knows the driver"
        assert is_cuda or not re.search(r"\bdl(open|sym|fcn)\b", text), f"{name} loads libraries"
        assert not is_cuda or "csrc/cpu.h" not in all_of_it, f"{name} knows the other backend"
        starts = re.search(r"pthread_create|thrd_create|omp parallel", text)
        assert name == "threads.c" or not starts, f"{name} starts threads"
    assert "csrc/cpu.h" not in reached(csrc["plan.c"])
    assert "csrc/cuda/gpu.h" not in reached(csrc["plan.c"]) | reached(csrc["cpu.c"])


@sources_here
def test_csrc_knows_no_operator_by_name():
    """Strings of one operator: the lists are in kernels/. ("all" names devices too.)"""
    operators = gpureduce.operators()
    names = {f'"{key}"' for op in operators for key in (op["name"], op["ufunc"]) if key}
    for path in ROOMS["csrc"]:
        if path.suffix == ".c":
            code = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
            assert not names & set(re.findall(r'"\w+"', code)) - {'"add"', '"sum"', '"all"'}, path


@sources_here
def test_no_printing_and_no_exit():
    for path in ROOMS["csrc"]:
        code = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        assert not re.search(r"\b(printf|puts|exit|abort)\s*\(", code), path


@sources_here
@pytest.mark.parametrize("path", HEADERS, ids=lambda p: p.name)
def test_every_header_compiles_alone(path, tmp_path):
    """Headers of device code by the host's compiler, as kernels/gpu/table.cpp reads them."""
    floor = path.parent.name
    if floor == "nvrtc":
        pytest.skip("in place of a C library's header, for a compiler that has none")
    device, cpp = floor in DEVICE, floor in FLOORS.keys() - HOST
    compiler, standard = ("g++", "-std=c++17") if cpp else ("gcc", "-std=c11")
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    alone = tmp_path / ("alone.cpp" if cpp else "alone.c")
    alone.write_text(f'#include "{path}"\n#include "{path}"\n')  # twice: guards
    command = [compiler, standard, "-fsyntax-only", "-Wall", "-Wno-unused-function"]
    command += [f"-I{sysconfig.get_paths()['include']}", f"-I{np.get_include()}"]
    if device:
        command += ["-include", ROOT / "kernels/gpu/as_host.h"]
        command += ["-Wno-unknown-pragmas", "-DGPR_ISA=gpu"]
    done = subprocess.run([*command, alone], capture_output=True, text=True, env=TOOLS)
    assert done.returncode == 0, done.stderr


@sources_here
def test_the_public_header_is_for_cpp_too(tmp_path):
    if not shutil.which("g++"):
        pytest.skip("no g++")
    program = tmp_path / "program.cpp"
    program.write_text(f'#include "{ROOT}/csrc/gpureduce.h"\n')
    command = ["g++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", program]
    done = subprocess.run(command, capture_output=True, text=True, env=TOOLS)
    assert done.returncode == 0, done.stderr


def test_every_operator_is_public():
    for op in gpureduce.operators():
        if op["function"]:
            assert op["name"] in gpureduce.__all__
            assert getattr(gpureduce, op["name"]).__name__ == op["name"]
            if op["alias"]:
                assert op["alias"] in gpureduce.__all__
        if op["ufunc"] or not op["function"]:
            name = op["ufunc"] or op["name"]
            assert name in inspect.getdoc(gpureduce.reduce), name
    assert sorted(set(gpureduce.__all__)) == sorted(gpureduce.__all__)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_function_is_documented(name):
    function = getattr(gpureduce, name)
    text = inspect.getdoc(function)
    assert text and text.splitlines()[0].endswith(".")
    if "a" in inspect.signature(function).parameters:
        for parameter in inspect.signature(function).parameters:
            assert re.search(rf"^{parameter} : ", text, re.M), parameter
        assert "Returns\n-------" in text and "Raises\n------" in text


def test_every_row_has_a_known_law():
    assert {law for *_, law in _core.rows()} == {"free", "exact", "tree"}
    assert {name for _, name, _, _ in _core.rows()} == set(dtype_names())
    assert {op for op, *_ in _core.rows()} == {op["name"] for op in gpureduce.operators()}


def test_the_stub_lists_what_is_public():
    stub = Path(gpureduce.__file__).with_name("__init__.pyi")
    if not stub.exists():
        pytest.skip("there is no stub file")
    body = ast.parse(stub.read_text()).body
    named = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in body:
        if isinstance(node, ast.ImportFrom):
            named |= {alias.asname or alias.name for alias in node.names}
        if isinstance(node, ast.Assign):
            named.add(node.targets[0].id)
            if node.targets[0].id == "__all__":
                assert sorted(ast.literal_eval(node.value)) == sorted(gpureduce.__all__)
        if isinstance(node, ast.AnnAssign):
            named.add(node.target.id)
    functions = {name for name in named if callable(getattr(gpureduce, name, None))}
    assert functions >= set(gpureduce.__all__)
    assert not {name for name in functions if name.islower()} - set(gpureduce.__all__)


def test_import_is_light():
    """NumPy and what it brings; no other package."""
    script = """
import sys, numpy
before = set(sys.modules)
import gpureduce
print(sorted({name.split(".")[0] for name in set(sys.modules) - before} - {"gpureduce"}))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not set(ast.literal_eval(done.stdout)) & {"ml_dtypes", "scipy", "cupy", "torch"}


def test_the_module_needs_nothing_of_cuda():
    """It loads what there is when it is first asked for a device."""
    if not shutil.which("readelf"):
        pytest.skip("no readelf")
    done = subprocess.run(
        ["readelf", "-d", "-W", _core.__file__], capture_output=True, text=True, env=TOOLS
    )
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout)
    assert done.returncode == 0 and any(name.startswith("libc.so") for name in needed)
    assert not [name for name in needed if re.match("libcuda|libnvrtc|libstdc", name)]


def test_import_loads_nothing_of_cuda():
    """Neither a library nor what serves the compiler."""
    script = """
import sys, numpy
before = set(sys.modules)  # which differs from one Python to the next
import gpureduce
late = {"gpureduce.compiler", "gpureduce.pack", "gpureduce.cache", "lzma", "_lzma", "logging"}
with open("/proc/self/maps") as maps:
    loaded = [line for line in maps if "libcuda" in line or "libnvrtc" in line]
print(loaded, late & (set(sys.modules) - before))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[] set()\n"


def test_the_sources_alone_say_what_to_do(tmp_path):
    """With the module of another Python beside them, too."""
    room = tmp_path / "gpureduce"
    fewer = shutil.ignore_patterns("*.so", "packs", "__pycache__")
    shutil.copytree(Path(gpureduce.__file__).parent, room, ignore=fewer)
    for name in ("none", "_core.cpython-39-x86_64-linux-gnu.so"):
        (room / name).touch()
        done = subprocess.run(
            [sys.executable, "-S", "-c", "import gpureduce"], cwd=tmp_path, capture_output=True,
            text=True, env=TOOLS | {"PYTHONPATH": ""},
        )  # fmt: skip
        assert "source folder, without its compiled module" in done.stderr, done.stderr


@pytest.mark.skipif(SANITIZED, reason="AddressSanitizer takes its time")
def test_import_is_quick():
    """The time of this process alone, on top of NumPy's, where others disturbed it least: 30 ms, or
    a third of NumPy's own on a machine that is slow at the time."""
    script = """
import time
times = [time.process_time()]
import numpy
times.append(time.process_time())
import gpureduce
times.append(time.process_time())
print(*times)
"""
    command = [sys.executable, "-c", script]
    taken = []
    for _ in range(7):
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        start, between, end = map(float, out.split())
        taken.append((end - between) / max(0.030, (between - start) / 3))
    assert min(taken) <= 1, taken


# Differences of exact sums, and what squares of doubles leave over. objdump leaves long names as
# they are in the file: 5LevelsId and not Levels<double>.
MEANT = (
    (
        r"(::|\d)(add_near|Adder\w*|Levels|Near\w*|(Quick)?Sum|Twofold\w*|Tracked|MomentsFold)[<I]",
        r"\bvfnmadd\d+p[sd]",
    ),
    (r"(NearColumns|Folder)<gpr::\w+::Var<(gpr::\w+::complex<)?double", r"\bvfmsub\d+pd"),
    (r"::finish_sums<true>", r"\bvfmsub\d+pd"),
    (r"QuickSpread<.*double>, double>::of_few", r"\bvf(nmadd|msub)\d+pd"),
)
FUSED = r"\bvfn?m(add|sub)|\bfn?m(add|sub|la|ls)\b"


def test_nothing_is_fused():
    """A multiply-add with one rounding would break products and exact sums without a sound.

    GCC makes them in spite of -ffp-contract=off: see GPR_PRODUCT. Conversions of uint32 may have
    them, where they are exact; what a product leaves over is made by one; and exact sums have one
    form, which their differences are written in: see minus() of simd.h."""
    if not shutil.which("objdump"):
        pytest.skip("no objdump")
    command = ["objdump", "-d", "-C", "--no-show-raw-insn", _core.__file__]
    fewer = ["grep", "-E", f">:$|{FUSED}"]  # a hundred megabytes, of which a thousandth counts
    with subprocess.Popen(command, stdout=subprocess.PIPE) as dump:
        done = subprocess.run(fewer, stdin=dump.stdout, capture_output=True, text=True)
    assert dump.returncode == 0 and done.returncode == 0, done.stderr
    if "<gpr_open" not in done.stdout:
        pytest.skip("the module is a wheel's, without the names of functions")
    fused, function = set(), ""
    for line in done.stdout.splitlines():
        if line.endswith(">:"):
            function = line
        elif not any(re.search(one, function) and re.search(other, line) for one, other in MEANT):
            fused.add(function)
    meant = ("Cast<unsigned int", "exact_squares", "TwofoldColumns", "bound_spreads")
    meant += ("round_sums", "QuickSum", "NearBlock<double, true>::add_again", "SlicedBlock")
    meant += ("FewSpreads",)
    assert not {name for name in fused if not any(known in name for known in meant)}
