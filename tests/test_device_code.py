"""What NVRTC makes of the kernels, looked at in PTX: no GPU is needed for that.

Exactness and the tree depend on each operation being rounded once, by itself, whichever NVRTC a
machine has: the newest that is supported compiles each kernel with each kind of fold here, and the
oldest each kernel and, with some, each kind."""

import functools
import heapq
import os
import pickle
import re
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata

import pytest
from table import SANITIZED

import gpureduce
from gpureduce import _core

SECONDS = 600
# The wheels of the test extra: (package, its library, how _core.compiler() tells of it).
LIBRARIES = {
    "oldest": ("nvidia-cuda-nvrtc-cu12", "nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "NVRTC 12.0,"),
    "newest": ("nvidia-cuda-nvrtc", "nvidia/cu13/lib/libnvrtc.so.13", "NVRTC 13."),
}

# --- which programs ------------------------------------------------------------------------------

PROGRAMS = _core.programs()  # (kernel, fold, header)
TYPES = {
    "bool": "boolean",
    "int8": "signed char",
    "int16": "short int",
    "int32": "int",
    "int64": "long int",
    "uint8": "unsigned char",
    "uint16": "short unsigned int",
    "uint32": "unsigned int",
    "uint64": "long unsigned int",
    "float32": "float",
    "float64": "double",
    "complex64": "complex<float>",
    "complex128": "complex<double>",
} | {name: name for name in ("float16", "bfloat16", "datetime64", "timedelta64")}
DTYPES = {name: dtype for dtype, name in TYPES.items()}
TYPE = re.compile("|".join(sorted(map(re.escape, DTYPES), key=len, reverse=True)))

# Which folds an operator's rows have, by its name.
FOLDS = {
    r"(nan)?sum": {"IntegerSum", "ExactFold", "TimeSum"},
    r"(nan)?mean": {"LongSum", "ExactFold", "TimeSum"},
    r"(nan)?prod|matmul2x2": {"IntegerProduct", "TreeFold"},
    r"(nan)?(min|max)|minmax|ptp": {"Extremes"},
    r"(nan)?arg(min|max)": {"Position"},
    r"argminmax": {"Positions"},
    r"any|all|count_nonzero|logical_xor": {"Counting"},
    r"bitwise_\w+": {"Bitwise"},
    r"(nan)?(var|std)": {"IntegerMoments", "PairMoments"},
}


def dtype_of(fold):
    found = TYPE.search(fold.replace("gpr::gpu::", ""))
    return found and DTYPES[found[0]]


def kind_of(fold):
    """The template's name, or "" of a type; complex numbers have their own code in what rounds."""
    name = fold.replace("gpr::gpu::", "").partition("<")[0] if "<" in fold else ""
    return name + "complex" * (name.startswith("Pair") and "complex" in fold)


def family_of(kernel, header):
    """A kernel of the library, or a chapter of the textbook's."""
    return header if header.startswith("textbook/") else kernel.partition("<")[0]


def chosen():
    """{family: numbers of programs}: each kernel with each kind of fold, on the dtype that the
    family has had least often, rare ones first. Of what sums and multiplies whole arrays all; the
    textbook's kernels, which know a fold by its name alone, with one each in turn."""
    dtypes = [dtype_of(fold) for _, fold, _ in PROGRAMS]
    alike = {}
    for number, (kernel, fold, header) in enumerate(PROGRAMS):
        kind = "" if header == "textbook/kernels.cuh" else kind_of(fold)
        alike.setdefault((family_of(kernel, header), kernel, kind), []).append(number)
    families, had, all_of = {}, Counter(), Counter(dtypes)
    for (family, _, _), numbers in alike.items():

        def rare(n, family=family):
            fold = PROGRAMS[n][1]
            return had[family, fold], had[family, dtypes[n]], all_of[dtypes[n]]

        if family not in ("flat_exact", "flat_tree"):
            numbers = [min(numbers, key=rare)]
        for number in numbers:
            had.update([(family, dtypes[number]), (family, PROGRAMS[number][1])])
        families.setdefault(family, []).extend(numbers)
    return families


CHOSEN = chosen()


def by_the_oldest():
    """Each kernel, and each kind of fold and each dtype with some of them: all of these with all by
    the newest. Of what sums and multiplies whole arrays all."""
    had, found = Counter(), {}

    def of(n):
        return kind_of(PROGRAMS[n][1]), dtype_of(PROGRAMS[n][1])

    for family, numbers in CHOSEN.items():
        kernels = {}
        for number in numbers:
            one = number if family in ("flat_exact", "flat_tree") else PROGRAMS[number][0]
            kernels.setdefault(one, []).append(number)
        found[family] = []
        for its in kernels.values():
            number = min(its, key=lambda n: [had[what] for what in of(n)])
            had.update(of(number))
            found[family].append(number)
    for family, numbers in CHOSEN.items():
        for number in numbers:
            if not all(had[what] for what in of(number)):
                had.update(of(number))
                found[family].append(number)
    return found


NUMBERS = {"oldest": by_the_oldest(), "newest": CHOSEN}


def test_every_program_is_there_once():
    blocks = Counter(PROGRAMS)
    assert not {program for program, n in blocks.items() if n > 1 and " B>" not in program[0]}
    assert {n for program, n in blocks.items() if " B>" in program[0]} == {4}  # sizes of blocks


def alike(kinds, dtype):
    """The dtypes of which one has the kernels: kernels/core/alike.h."""
    bits = {"bool": "uint8", "bfloat16": "float16", "datetime64": "uint64", "timedelta64": "uint64"}
    unsigned = "u" + dtype if dtype.startswith("int") else dtype
    if kinds == {"Counting"}:
        return {bits.get(dtype, unsigned)}
    if kinds == {"Bitwise"} or (dtype == "int64" and kinds & {"IntegerSum", "IntegerProduct"}):
        return {unsigned}
    return {"timedelta64"} if dtype == "datetime64" else {dtype}


def test_every_row_has_its_fold():
    there = {(kind_of(fold).removesuffix("complex"), dtype_of(fold)) for _, fold, _ in PROGRAMS}
    for op, dtype, _, _ in _core.rows():
        (kinds,) = (kinds for names, kinds in FOLDS.items() if re.fullmatch(names, op))
        ours = alike(kinds, dtype)
        assert there & {(kind, one) for kind in kinds for one in ours}, (op, dtype)


def test_every_kind_of_kernel_is_compiled_here():
    names = {PROGRAMS[n][0].partition("<")[0] for numbers in CHOSEN.values() for n in numbers}
    assert names == {kernel.partition("<")[0] for kernel, _, _ in PROGRAMS}
    for name in {kernel["name"] for kernel in gpureduce.kernels()} - {"default"}:
        assert re.sub(r"^unroll\d$", "unrolled", name) in names
    folds = {PROGRAMS[n][1] for numbers in CHOSEN.values() for n in numbers}
    assert {kind_of(fold) for fold in folds} == {kind_of(fold) for _, fold, _ in PROGRAMS}
    assert {dtype_of(fold) for fold in folds} - {None} == set(gpureduce.dtypes()) - {"datetime64"}
    assert len(CHOSEN["flat_exact"]) == 6 and len(CHOSEN["flat_tree"]) == 8
    for family, numbers in NUMBERS["oldest"].items():
        assert {PROGRAMS[n][0] for n in numbers} == {PROGRAMS[n][0] for n in CHOSEN[family]}
    old = {PROGRAMS[n][1] for numbers in NUMBERS["oldest"].values() for n in numbers}
    assert {kind_of(fold) for fold in old} == {kind_of(fold) for fold in folds}
    assert {dtype_of(fold) for fold in old} - {None} == set(gpureduce.dtypes()) - {"datetime64"}


# --- what the compilers make of them -------------------------------------------------------------

# Of a line of numbers {number: (lowered name, PTX), or what the compiler said}.
COMPILE = """
import pickle, sys
from gpureduce import DeviceError, _core
for line in sys.stdin:
    made = {}
    for number in map(int, line.split()):
        try:
            name, _, ptx = _core.program_image(number, "compute_90")[1].partition(b"\\0")
            made[number] = name.decode(), ptx.rstrip(b"\\0").decode()
        except DeviceError as error:
            made[number] = str(error)
    pickle.dump((_core.compiler("sm_90"), made), sys.stdout.buffer)
    sys.stdout.flush()
"""


def library(which):
    """Its path, or None."""
    package, name, _ = LIBRARIES[which]
    try:
        path = metadata.distribution(package).locate_file(name)
    except metadata.PackageNotFoundError:
        return None
    return path if path.exists() else None


class Compilers:
    """A process of each library for each thread that asks."""

    def __init__(self):
        self.mine, self.all = threading.local(), []

    def start(self, which):
        environment = {**os.environ, "GPUREDUCE_NVRTC": str(library(which))}
        command = [sys.executable, "-c", COMPILE]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.all.append(subprocess.Popen(command, env=environment, **pipes))
        return self.all[-1]

    def compiled(self, which, family):
        mine = vars(self.mine)
        process = mine[which] = mine.get(which) or self.start(which)
        process.stdin.write(" ".join(map(str, NUMBERS[which][family])).encode() + b"\n")
        process.stdin.flush()
        return pickle.load(process.stdout)

    def end(self):
        for process in self.all:
            process.kill()
            process.communicate()


@pytest.fixture(scope="module")
def tasks():
    """{(which, family): its compilation}, in the order that the tests ask for them."""
    if SANITIZED:
        pytest.skip("AddressSanitizer is not for compilers")
    compilers = Compilers()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {
            (which, family): pool.submit(compilers.compiled, which, family)
            for family in CHOSEN
            for which in LIBRARIES
            if library(which)
        }
        compilers.end()
        pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def compiled(tasks):
    def result(which, family):
        if (which, family) not in tasks:
            pytest.skip(f"no {LIBRARIES[which][1]}: pip install {LIBRARIES[which][0]}")
        return tasks[which, family].result(SECONDS)

    return result


@pytest.fixture(scope="module")
def functions(compiled):
    head = r"^(?:\.\w+ )*\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)"

    @functools.cache
    def of(which, family):
        """{(program, name): text} of every entry and function."""
        found = {}
        for number, made in compiled(which, family)[1].items():
            if isinstance(made, tuple):
                parts = re.split(head, made[1], flags=re.M)
                pairs = zip(parts[1::2], parts[2::2], strict=True)
                found |= {(number, name): text for name, text in pairs}
        return found

    return of


def lines(functions, pattern):
    """(function, instruction) of all that match."""
    instruction = re.compile(rf"^[ \t]*((?:@!?%p\d+\s+)?(?:{pattern}).*)", re.M)
    return {
        (name, found.rstrip())
        for (_, name), text in functions.items()
        for found in instruction.findall(text)
    }


each_family = pytest.mark.parametrize("family", CHOSEN)
each_library = pytest.mark.parametrize("which", LIBRARIES)


@each_family
@each_library
def test_it_compiles(compiled, functions, which, family):
    (is_there, about), made = compiled(which, family)
    assert is_there and about.startswith(LIBRARIES[which][2])
    failed = {PROGRAMS[n][:2]: text for n, text in made.items() if isinstance(text, str)}
    assert not failed
    found = functions(which, family)
    assert all((number, name) in found for number, (name, _) in made.items())
    assert all("gpr3gpu" in name for _, name in found), "names that the tests below go by"


@each_family
@each_library
def test_all_that_it_calls_is_there(compiled, which, family):
    """NVRTC 12.0 declares __dp4a() and its like and has no text of them."""
    for number, made in compiled(which, family)[1].items():
        missing = re.findall(r"^\.extern\s+\.func.*", made[1], re.M)
        assert missing == [], PROGRAMS[number]


@each_family
@each_library
def test_nothing_is_fused(functions, which, family):
    """But where fma() is written, in quotients and squares of exact sums along axes. Nor left to
    the assembler to be: without a rounding mode it may contract."""
    written = r"PairSum|Moments|MomentState|Near|near|spread|divided|LongSum"
    found = functions(which, family)
    assert all(re.search(written, name) for name, _ in lines(found, r"fma\."))
    assert not lines(found, r"mad\.(?:\w+\.)*f\d+")
    for _, line in lines(found, r"(?:add|sub|mul|div|sqrt|fma)\.(?:\w+\.)*b?f(?:32|64|16)\b"):
        assert re.match(r"(?:@!?%p\d+\s+)?\w+\.rn\.", line), line


@each_library
def test_what_is_looked_for_is_there(functions, which):
    assert lines(functions(which, "flat_exact"), r"(?:add|sub|mul)\.rn\.f64")
    assert lines(functions(which, "rows"), r"fma\.rn\.f64")
    assert lines(functions(which, "rows"), r"[\w.]*\.approx\b")


@each_family
@each_library
def test_nothing_is_flushed_or_approximated(functions, which, family):
    """But NVRTC's own division of 128-bit integers, which guesses first and mends its guess."""
    found = functions(which, family)
    assert not lines(found, r"[\w.]*\.(?:ftz|full)\b")
    divides = "LongSum|Moments|integer_spread|round_long|long_quotient"
    for name, line in lines(found, r"[\w.]*\.approx\b"):
        assert line.startswith("rcp.approx.f32") and re.search(divides, name), (name, line)


BRANCH = re.compile(r"(@!?%p\d+ +)?bra(?:\.uni)? *\t*(\$L\w+);")


def blocks(text):
    """{number: (lines without a branch among them, the blocks that may come next)}."""
    code, labels = [[]], {}
    for line in map(str.strip, text.splitlines()):
        if line.startswith("$L") and line.endswith(":"):
            code.append([])
            labels[line[:-1]] = len(code) - 1
        elif line:
            code[-1].append(line)
            if BRANCH.match(line) or line == "ret;":
                code.append([])
    found = {}
    for number, its in enumerate(code):
        branch = BRANCH.match(its[-1]) if its else None
        falls = (branch[1] if branch else not its or its[-1] != "ret;") and number + 1 < len(code)
        follow = [labels[branch[2]]] if branch else []
        found[number] = its, follow + ([number + 1] if falls else [])
    return found


def shortest_round(graph, start):
    """The lines of the loop's shortest way through a block; none if it is in no loop."""
    heap, done = [(0, start, ())], set()
    while heap:
        length, at, way = heapq.heappop(heap)
        if way and at == start:
            return [line for block in way for line in graph[block][0]]
        if not way or at not in done:
            done.add(at)
            for to in graph[at][1]:
                heapq.heappush(heap, (length + len(graph[at][0]), to, (*way, at)))
    return []


LOCAL = re.compile(r"(?:ld|st)\.local")


@each_library
def test_tiles_are_summed_without_local_arrays(functions, which):
    """What the windows do not hold is added up from a copy of the tile; copying all of them would
    halve the speed."""
    for (_, name), text in functions(which, "flat_exact").items():
        if "flat_exact" not in name:
            continue
        graph = blocks(text)
        loads = [n for n, (code, _) in graph.items() if "no_allocate.v4" in " ".join(code)]
        rounds = [way for way in (shortest_round(graph, n) for n in loads) if way]
        assert rounds, name
        found = [line for way in rounds for line in way if LOCAL.search(line)]
        assert not found, (name, found)


@each_library
def test_matrices_stay_in_registers(functions, which):
    """An indexed array would halve the speed."""
    found = functions(which, "flat_tree").items()
    entries = {key: text for key, text in found if re.search("flat_tree.*matrix", key[1])}
    assert entries and not lines(entries, LOCAL.pattern)


@each_family
def test_both_compute_the_same(functions, family):
    """As many instructions of each kind, or as many with operands of their own: one may have
    written the same product on two paths. Or it may have written a sum of two numbers with its
    rounding error, two additions and four subtractions, in more places than the other, and pieces
    of them, which two paths share, one in forty of all; and with them what else those paths add in
    single precision, to find their place, one in ten."""
    arithmetic = r"((?:add|sub|mul|div|sqrt|rcp|fma)\.[\w.]*f(?:16|32|64)\w*)\s+[%\w]+,\s*(.*);"

    def operations(which):
        """{program: (all of each opcode, those with operands of their own)}."""
        found = {number: (Counter(), Counter()) for number in NUMBERS[which][family]}
        for (number, _), text in functions(which, family).items():
            lines = re.findall(arithmetic, text)
            for counter, counted in zip(found[number], (lines, set(lines)), strict=True):
                counter.update(opcode for opcode, _ in counted)
        return found

    old, new = map(operations, LIBRARIES)
    for number in NUMBERS["oldest"][family]:
        (a, a_own), (b, b_own) = old[number], new[number]
        more, allowed = (a - b) + (b - a), [Counter()]
        if "PairSum" in PROGRAMS[number][1]:
            sums = min(more["add.rn.f64"] // 2, more["sub.rn.f64"] // 4)
            whole = Counter({"add.rn.f64": 2 * sums, "sub.rn.f64": 4 * sums})
            shares = {"add.rn.f64": 40, "sub.rn.f64": 40, "add.rn.f32": 10}
            rest = more - whole
            pieces = {op: rest[op] for op, share in shares.items() if share * rest[op] <= a[op]}
            allowed.append(whole + Counter(pieces))
        if "Moments" in PROGRAMS[number][1]:  # a product again on a rare path, of other registers
            allowed.append(+Counter({"mul.rn.f64": min(more["mul.rn.f64"], 8)}))
        assert set(a) == set(b), PROGRAMS[number]
        assert a_own == b_own or more in allowed, (PROGRAMS[number], a, b)
