"""What a new dtype takes: a row of kernels/abi/dtypes.h, and a type with its Format in
kernels/core/types.h. float8_e4m3 is added to a copy of kernels/, whose tables have to compile and
whose sums, extremes, variances and products have to be right for numbers of one byte."""

import re
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from arrays import generator
from table import SANITIZED, TOOLS

ROOT = Path(__file__).resolve().parent.parent
ml_dtypes = pytest.importorskip("ml_dtypes")
FLOAT8 = np.dtype(ml_dtypes.float8_e4m3)

pytestmark = [
    pytest.mark.skipif(not shutil.which("g++"), reason="no g++"),
    pytest.mark.skipif(
        not (ROOT / "kernels").is_dir(), reason="the sources are not beside the tests"
    ),
    pytest.mark.skipif(SANITIZED, reason="what it compiles is not sanitized"),
]

ROW = """  X(FLOAT8_E4M3, "float8_e4m3", 'V', 1, float8_e4m3)
"""
TYPE = """
struct float8_e4m3 {
  uint8_t bits;
};
template <> struct Format<float8_e4m3> {
  enum { precision = 4, smallest = -9, beyond = 8 };
  typedef int8_t Key;
  static GPR_METHOD uint64_t infinity() { return 0x78; }
  static GPR_METHOD float8_e4m3 make(uint64_t b) { return float8_e4m3{(uint8_t)b}; }
  static GPR_METHOD float widen(float8_e4m3 x) {
    const uint32_t sign = (uint32_t)(x.bits & 0x80) << 24, rest = (x.bits & 0x7fu) << 20;
    if (rest >= 0x78u << 20) return from_bits(sign | (0x78000000u + rest));
    return from_bits(sign | bits(from_bits(rest) * 0x1p120f));
  }
  static GPR_METHOD float8_e4m3 narrow(float x) {
    const uint32_t b = bits(x), sign = b >> 24 & 0x80, magnitude = b & 0x7fffffff;
    if (x != x) return float8_e4m3{(uint8_t)(sign | 0x7c)};
    if (magnitude >= 0x43780000u) return float8_e4m3{(uint8_t)(sign | 0x78)};
    if (magnitude >= 0x3c800000u)
      return float8_e4m3{(uint8_t)(sign | (round_bits(magnitude, 20) - (120u << 3)))};
    return float8_e4m3{(uint8_t)(sign | (bits(from_bits(magnitude) + 0x1p14f) - bits(0x1p14f)))};
  }
};
"""
PROGRAM = """
#include "core/operators.h"
using namespace gpr;
typedef float8_e4m3 T;
template <class O> static void fold(const T *x, int64_t n, void *out) {
  typedef typename O::Fold F;
  typename F::State s;
  F::open(s);
  for (int64_t i = 0; i < n; i++) F::add(s, x[i], i);
  typename FinishedWith<O>::type *const nothing = nullptr;
  auto &&value = Shown<F>::of(s);
  O::finish(value, n, nothing, (typename O::Result *)out);
}
extern "C" void reduce(int op, const void *x, int64_t n, void *out) {
  const T *from = (const T *)x;
  switch (op) {
    case 0: return fold<Sum<T>>(from, n, out);
    case 1: return fold<Mean<T>>(from, n, out);
    case 2: return fold<Max<T>>(from, n, out);
    case 3: return fold<ArgMax<T>>(from, n, out);
    case 4: return fold<Any<T>>(from, n, out);
    case 5: return fold<PeakToPeak<T>>(from, n, out);
  }
}
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of kernels/ with the type in it."""
    to = tmp_path_factory.mktemp("dtype")
    shutil.copytree(ROOT / "kernels", to / "kernels")
    rows, types = to / "kernels/abi/dtypes.h", to / "kernels/core/types.h"
    text = rows.read_text()
    last = re.search(r"  X\(TIMEDELTA64,.*\n", text)
    rows.write_text(text.replace(last[0], last[0].rstrip("\n") + " \\\n" + ROW))
    text, before = types.read_text(), "template <> struct Format<float> {"
    assert text.count(before) == 1
    types.write_text(text.replace(before, f"{TYPE.lstrip()}{before}"))
    return to


def compiled(tree, *arguments):
    flags = ["-std=c++17", "-fno-exceptions", "-fno-rtti", "-ffp-contract=off", "-fwrapv"]
    command = ["g++", *flags, "-Wno-unknown-pragmas", "-I", tree / "kernels", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=TOOLS)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.parametrize("half", ["cpu", "gpu"])
def test_the_tables_take_it(tree, half):
    isa = "plain" if half == "cpu" else "gpu"
    compiled(tree, "-fsyntax-only", f"-DGPR_ISA={isa}", tree / f"kernels/{half}/table.cpp")


@pytest.fixture(scope="module")
def reduce(tree):
    import ctypes

    (tree / "program.cpp").write_text(PROGRAM)
    library = tree / "program.so"
    compiled(
        tree, "-O1", "-shared", "-fPIC", "-DGPR_ISA=plain", tree / "program.cpp", "-o", library
    )
    function = ctypes.CDLL(str(library)).reduce

    def call(op, a, dtype):
        out = np.zeros(16, np.uint8)
        n = ctypes.c_int64(a.size)
        function(op, ctypes.c_void_p(a.ctypes.data), n, ctypes.c_void_p(out.ctypes.data))
        return out.view(dtype)[0]

    return call


def rounded(exact):
    """To nearest even, by what lies nearest among all finite numbers of the type."""
    every = np.arange(256, dtype=np.uint8).view(FLOAT8)
    finite = every[np.isfinite(every.astype(float))]
    if abs(exact) >= 248:
        return np.array(np.copysign(np.inf, float(exact)), FLOAT8)[()]
    near = min(finite, key=lambda y: (abs(Fraction(float(y)) - exact), int(y.view(np.uint8)) & 1))
    return near


def test_its_numbers_are_reduced(reduce):
    rng = generator("float8")
    for n in (1, 2, 7, 33, 200):
        for scale in (0.01, 1, 40):
            a = (rng.standard_normal(n) * scale).astype(FLOAT8)
            values = [Fraction(float(x)) for x in a]
            wide, total = a.astype(float), sum(values)
            what = f"{n} of scale {scale}"
            assert float(reduce(0, a, FLOAT8)) == float(rounded(total)), f"sum of {what}"
            assert float(reduce(1, a, FLOAT8)) == float(rounded(total / n)), f"mean of {what}"
            assert float(reduce(2, a, FLOAT8)) == wide.max(), f"max of {what}"
            assert reduce(3, a, np.int64) == wide.argmax(), f"argmax of {what}"
            assert reduce(4, a, bool) == wide.any(), f"any of {what}"
            exact = Fraction(wide.max()) - Fraction(wide.min())
            assert float(reduce(5, a, FLOAT8)) == float(rounded(exact)), f"ptp of {what}"


def test_what_is_not_finite_shows(reduce):
    a = np.array([1, np.nan, -np.inf, 2], FLOAT8)
    assert np.isnan(float(reduce(0, a, FLOAT8))) and np.isnan(float(reduce(2, a, FLOAT8)))
    assert reduce(3, a, np.int64) == 1
    assert float(reduce(0, a[2:].copy(), FLOAT8)) == -np.inf
