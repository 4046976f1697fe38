"""Operators written as Python functions: what the functions themselves give along the tree."""

import ast
import functools
import importlib.util
import linecache
import math
import pickle
import warnings
from collections import namedtuple
from math import sqrt

import numpy as np
import pytest
from arrays import generator
from table import SANITIZED

import gpureduce
from gpureduce import OperatorError

pytestmark = pytest.mark.skipif(SANITIZED, reason="AddressSanitizer is not for compilers")

SCALE = 2.5
HALF = np.float32(0.5)
WEIGHTS = (1.0, -2.0, 0.5)
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


def tree(combine, leaves):
    while len(leaves) > 1:
        pairs = [combine(*leaves[k : k + 2]) for k in range(0, len(leaves) - 1, 2)]
        leaves = pairs + leaves[len(pairs) * 2 :]
    return leaves[0]


# --- of numbers -----------------------------------------------------------------------------------


def hypot(a, b):
    """A docstring has no effect."""
    return math.sqrt(a * a + b * b)


def branches(a, b):
    if a > b:
        t = a - b
    elif a == b:
        t = a
    else:
        t = b * HALF
        t += 1
    return t


def returns(a, b):
    if a < 0 and not b > 1:
        return a
    if a > 3 or b < -3:
        return b / 2
    return a if abs(a) < abs(b) else b


def chained(a, b):
    c = -1 < a <= b < 5
    return (a * SCALE if c else b) + max(a, b, 0.25) - min(a, 1)


def loops(a, b):
    s = 0.0
    for k in range(3):
        s += WEIGHTS[k] * (a if k % 2 else b)
    for w in WEIGHTS:
        s = s - w * a
    return s + sum(w * b for w in WEIGHTS)


def numpys(a, b):
    return np.where(a > b, np.floor(a), np.copysign(b, a)) + np.square(a) - np.fmin(a, b)


def taken_apart(a, b):
    x, (y, z) = a, (b, a)
    return x * TURN[0, 1] + y * TURN[1][0] - z**2 + sqrt(abs(b)) ** 1


def whole(a, b):
    return a // 3 + b % 7 - (a ^ b) + (a << 1) - (b >> 1) + ~a


def floor_of_floats(a, b):
    return a // 0.7 + b % -1.3


def casts(a, b):
    return float(int(a)) + np.float64(np.float32(b)) + bool(a) + math.floor(b)


def ways_of_constants(a, b):
    t = 0.0
    for k in range(3):
        if k > 0:
            t += 0.5
            if k == 5:
                return a
        t += 1
    if t > 2:
        if a < b:
            return b - t
        t = t * 2
    return t + a + b


FLOATS = [hypot, branches, returns, ways_of_constants, chained, loops, numpys, taken_apart,
          floor_of_floats, casts]  # fmt: skip


@pytest.mark.parametrize("function", FLOATS, ids=lambda f: f.__name__)
def test_of_doubles_it_is_the_function(function):
    x = generator("python", function.__name__).normal(size=(7, 33)) * 3
    op = gpureduce.operator(function)
    with np.errstate(all="ignore"):
        wanted = [np.float64(tree(function, list(row))) for row in x]
    assert op.name == function.__name__
    assert op(x, axis=1).tobytes() == np.array(wanted).tobytes()


def test_of_single_floats_types_are_numpys():
    x = generator("python", "single").normal(size=300).astype(np.float32)

    def combine(a, b):
        return np.sqrt(a * a + 2 * b * b) * HALF

    found = gpureduce.operator(combine)(x)
    assert found.dtype == np.float32 and found == tree(combine, list(x))


def test_of_integers_types_are_numpys():
    x = generator("python", "integers").integers(-1000, 1000, 200)
    op = gpureduce.operator(whole)
    with np.errstate(over="ignore"):
        assert op(x) == tree(whole, list(x))
    assert op(x).dtype == np.int64
    mean = gpureduce.operator(lambda a, b: (a + b) / 2)
    assert mean(np.array([1, 2])).dtype == np.float64


def test_of_complex_numbers():
    rng = generator("python", "complex")
    x = rng.normal(size=9) + 1j * rng.normal(size=9)
    op = gpureduce.operator(lambda a, b: a * b.conjugate() + a.real - 2j * b.imag)
    wanted = tree(lambda a, b: a * b.conjugate() + a.real - 2j * b.imag, x.tolist())
    assert op(x) == wanted


# --- of states ------------------------------------------------------------------------------------

Moments = namedtuple("Moments", "n mean m2")


def welford(a, b):
    n = a.n + b.n
    if n == 0:
        return a
    d = b.mean - a.mean
    return n, a.mean + d * b.n / n, a.m2 + b.m2 + d * d * a.n * b.n / n


def welford_of(**more):
    return gpureduce.operator(
        state="n: i8, mean: f8, m2: f8",
        lift=lambda x: (1, x, 0),
        finish=lambda a: {"mean": a.mean, "var": a.m2 / a.n},
        **more,
    )(welford)


def test_states_are_read_by_names_and_given_as_tuples():
    x = generator("python", "welford").normal(size=(100, 3))
    op = welford_of(identity=(0, 0, 0))
    found = op(x, axis=0, where=x > -1)
    np.testing.assert_allclose(found.var, x.var(axis=0, where=x > -1))
    leaves = [Moments(np.int64(1), v, np.float64(0)) for v in x[:, 0]]
    root = tree(lambda a, b: Moments(*welford(a, b)), leaves)
    assert op(x, axis=0).mean[0] == root.mean and op(x, axis=0).var[0] == root.m2 / root.n


def test_arrays_and_several_inputs():
    @gpureduce.operator(
        state="m: f8[2][2]",
        inputs="x[2][2]",
        lift=lambda x: (x,),
        identity={"m": np.eye(2)},
    )
    def product(a, b):
        rows = [[sum(a.m[i][k] * b.m[k, j] for k in range(2)) for j in range(2)] for i in range(2)]
        return (rows,)

    x = generator("python", "matrices").normal(size=(5, 2, 2))

    def rows_by_columns(a, b):
        return [[sum(a[i][k] * b[k][j] for k in range(2)) for j in range(2)] for i in range(2)]

    assert product(x).m.tolist() == tree(rows_by_columns, x.tolist())

    @gpureduce.operator(state="s: f8, at: i8", lift=lambda x, w, i: (x * w, i))
    def heaviest(a, b):
        return b if b.s > a.s else a

    assert heaviest.inputs == ("x", "w")
    assert tuple(heaviest([1.0, 5.0, 2.0], [1, 2, 3])) == (10.0, 1)


def test_they_pickle_by_their_text():
    op = pickle.loads(pickle.dumps(welford_of()))
    x = np.arange(10.0)
    assert op(x) == welford_of()(x)
    assert pickle.loads(pickle.dumps(gpureduce.operator(chained)))(x) == gpureduce.operator(
        chained
    )(x)


def test_a_constant_is_that_of_its_time():
    scale = 3.0

    def scaled(a, b):
        return a + scale * b

    op = gpureduce.operator(scaled)
    scale = 5.0
    assert op(np.array([1.0, 2.0])) == 7.0
    weights = [2.0, 3.0]
    op = gpureduce.operator(lambda a, b: weights[0] * a + weights[1] * b)
    weights[1] = 5.0
    assert op(np.array([1.0, 2.0])) == op(np.array([1, 2])) == 8.0


def test_results_of_several_ways():
    def finish(a):
        if a.n == 0:
            return {"n": a.n, "mean": -1.0}
        return {"n": a.n, "mean": a.s / a.n}

    op = gpureduce.operator(
        lambda a, b: (a.n + b.n, a.s + b.s),
        state="n: i8, s: f8",
        lift=lambda x: (1, x),
        identity=(0, 0),
        finish=finish,
    )
    assert tuple(op([1.0, 3.0])) == (2, 2.0) and tuple(op([])) == (0, -1.0)


# --- what is refused ------------------------------------------------------------------------------

REFUSED = {
    "import os; return a": "line 2, column 5: an import has no place",
    "return foo(a)": "there is no foo here",
    "return print(a)": "print is a builtin_function_or_method",
    "return combine(a, b)": "combine calls itself",
    "while a: a = b\n    return a": "a while loop has no place",
    "return [a for a in b]": "this is one number",
    "return open": "which an operator cannot use",
    "return a.field": ".field is not known",
    "return 'text'": "is no number",
    "return math.gcd(a, b)": "math.gcd is not known",
    "return np.linalg.norm(a)": "numpy.linalg is not known",
    "return np.nothing(a)": "numpy has no nothing",
    "return a if b in a else b": "in and is have no place",
    "try:\n        return a\n    except ValueError:\n        return b": "try has no place",
    "x = lambda: 3\n    return a": "a lambda has no place",
    "def inner(): pass\n    return a": "a function inside has no place",
    "if a > b:\n        t = 1\n    return t": "assigned on one way alone",
    "if a > b:\n        return a": "does not return a value on every way",
    "t = a": "may end here without a return",
    "return": "a return without a value",
    "return a, b": "give back one number",
    "a.x = 3\n    return a": "only names can be assigned",
    "for k in range(a): pass\n    return a": "a whole number that is known",
    "for k in range(99999): pass\n    return a": "turns of loops",
    "return max(a, key=b)": "by keyword",
    "return a @ b": "no place in an operator",
    "return f'{a}'": "a string has no place",
    "yield a": "yield has no place",
    "return WEIGHTS[3]": "there is no WEIGHTS here",
    "global t\n    return a": "global has no place",
    "assert a\n    return a": "assert has no place",
    "return -a if math.isnan(b) else ~(b * 0.5)": "~ is for integers",
    "return 10 ** 400 * a": "too large for a float",
    "return int(a) | 2 ** 70": "does not fit",
    "return 1 / 0": "division by zero",
    "for k in range(10**12): pass\n    return a": "so long a range",
    "return sum(range(10**30)) + a": "so long a range",
    "return sum(range(1, 9, 0)) + a": "arg 3 must not be zero",
    "return sum(range()) + a": "expected at least 1 argument",
    "k = 3\n    for _ in range(99): k = k * k\n    return a + k": "of more than 4096 bits",
    "return a + 10 ** 10 ** 10": "of more than 4096 bits",
    "return a + BIG": "of more than 4096 bits",
    "return a + math.floor(math.inf)": "floor: cannot convert float infinity",
    "return a + math.ceil(math.nan)": "ceil: cannot convert float NaN",
    "return a + math.trunc(1j)": "trunc: ",
    "return a + 2 ** 1100 // 1.0": "too large",
    "return {'r': a} if a > b else {'r': b}": "give back one number",
    "return {'r': a} if a > b else {'s': b}": "cannot be chosen from",
    "return (math.sin if a > b else math.cos)(a)": "cannot be chosen from",
    "return a + RAGGED[0][0]": "RAGGED is a list, which an operator cannot use",
    "return a + MASKED[0]": "MASKED is a MaskedArray, which an operator cannot use",
}


OUTSIDE = {
    "BIG": 1 << 99_999,
    "RAGGED": [[1, 2], [3]],
    "MASKED": np.ma.array([1.0, 2.0], mask=[True, False]),
}


def from_file(tmp_path, text):
    path = tmp_path / "operators_of_mine.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("operators_of_mine", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("body", REFUSED)
def test_what_it_does_not_know_is_refused_by_name_and_line(tmp_path, body):
    text = f"import math\nimport numpy as np\ndef combine(a, b):\n    {body}\n"
    module = from_file(tmp_path, text)
    vars(module).update(OUTSIDE)
    with pytest.raises(OperatorError) as failed:
        gpureduce.operator(module.combine)
    wanted = REFUSED[body].replace("line 2", "line 4")
    assert wanted in str(failed.value)
    assert "combine in operators_of_mine.py, line " in str(failed.value)


LAMBDAS = """\
import math
import numpy as np

def made(k):
    return lambda a, b: a + k * b, lambda a, b: a - k * b

def local():
    import math as m
    return lambda a, b: m.sqrt(a * a + b * b)

found = [lambda a, b: math.sqrt(a * a + b * b), lambda a, b: np.maximum(a, b), *made(2.0), local()]
"""


def test_choices_that_double_come_to_an_end(tmp_path):
    text = "def found(a, b):\n    t, u = (a, b), (b, a)\n"
    text += "    for k in range(40):\n        t, u = (t, t), (u, u)\n"
    with pytest.raises(OperatorError, match="numbers to choose from"):
        gpureduce.operator(
            from_file(tmp_path, f"{text}    v = t if a > b else u\n    return a\n").found
        )


def test_no_function():
    with pytest.raises(TypeError, match="a function of two states, not None"):
        gpureduce.operator(identity=0)(None)


def test_a_finish_of_nothing():
    with pytest.raises(OperatorError, match="it names no result"):
        gpureduce.operator(finish=lambda a: {})(lambda a, b: a + b)(np.ones(3))


def test_ways_that_double_come_to_an_end(tmp_path):
    one = "    if a > {0}:\n        if b > {0}:\n            return a\n        t += 1\n"
    text = "def found(a, b):\n    t = 0.0\n" + "".join(one.format(k) for k in range(40))
    with pytest.raises(OperatorError, match="statements on all ways"):
        gpureduce.operator(from_file(tmp_path, f"{text}    return t + b\n").found)


def test_lambdas_know_what_is_around_them(tmp_path):
    found = from_file(tmp_path, LAMBDAS).found
    wanted = [5.0, 4.0, 11.0, -5.0, 5.0]
    assert [gpureduce.operator(one)([3.0, 4.0]) for one in found] == wanted


DEFS = """\
from __future__ import annotations
import functools, math
import numpy as np

def plain(f): return f

def kept(f):
    @functools.wraps(f)
    def wrapper(*args): return f(*args)
    return wrapper

def near(a: Unknown, b: float = ...) -> Unknown: return a  # of the other's name

@plain
@(lambda f: f)
def near(a: Unknown, b: Unknown) -> Unknown:
    \"""A docstring,
       of two lines.\"""
    c: float = 2 * 3 - 1.0
    return a + c * b if a > b or 0 else b - 1e-3 * -0.0

@(lambda f: f)
def first(a, b): return max(a, b)

def made(k):
    @plain
    def inner(a, b):
        s = 0
        for w in [v * k for v in (1, 2)]:
            s += w * a if math.pi < 3 else w * b
        return s
    return inner

class Space:
    TWICE = 2
    @staticmethod
    def __near(a, b):
        return np.where(a > b, a, b)
    found = __near
    if TWICE:
        def near(a, b): return sum(x * y for x, y in ((a, 2), (b, 3)))

def wrapped(a, b): return 1 is 1 and a - b
for _ in range(99): near(2.0, 1.0)
found = [near, first, made(2.0), made(5), Space.found, Space.near, kept(plain(near)).__wrapped__]
"""


@pytest.mark.filterwarnings("ignore:.is. with")
def test_functions_are_those_of_their_code(tmp_path):
    found = from_file(tmp_path, DEFS).found
    for one in found:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert gpureduce.operator(one)([3.0, 4.0]) == one(3.0, 4.0)


CHANGED = {
    "def f(a, b): return a + b\n": "def f(a, b): return a * b * 10\n",
    "def f(a, b): return a + 1\n": "def f(a, b): return a + 1.0\n",
    "def f(a, b): return a\n": "def f(b, a): return a\n",
    "def f(a): b = 1; return a\n": "def f(a, b=2): b = 1; return a\n",
    "def f(a, b): return a - b\n": "def g(a, b): return a - b\n",
    "f = lambda a, b: a + b\n": "f = lambda a, b: a - b\n",
    "f = lambda a, b: (lambda q: q + b)(a)\n": "f = lambda a, b: (lambda q: q - b)(a)\n",
}


@pytest.mark.parametrize("text", CHANGED)
def test_a_file_that_has_changed_is_refused(tmp_path, text):
    f = from_file(tmp_path, text).f
    (tmp_path / "operators_of_mine.py").write_text(CHANGED[text])
    with pytest.raises(OperatorError, match="source has changed since it was imported"):
        gpureduce.operator(f)


def test_changes_elsewhere_in_the_file_do_no_harm(tmp_path):
    text = "@(lambda f: f)\ndef f(a, b):\n    return a - b\n"
    f = from_file(tmp_path, text).f
    path = tmp_path / "operators_of_mine.py"
    path.write_text(f"async def f(a, b): return a\n\n{text}")
    assert gpureduce.operator(f)([3.0, 4.0]) == -1.0
    path.write_text(f"{text}return\n")
    with pytest.raises(OperatorError, match="its file cannot be read: 'return' outside function"):
        gpureduce.operator(f)


def test_a_function_of_exec_does_not_take_the_text_of_another(tmp_path):
    module = from_file(tmp_path, "def f(a, b): return a + b\n")
    exec(compile("def f(a, b): return a * b", module.__file__, "exec"), vars(module))
    with pytest.raises(OperatorError, match=r"operators_of_mine\.py does not give its code.* exec"):
        gpureduce.operator(module.f)


def test_a_lambda_inside_a_lambda_is_refused_for_what_it_is():
    with pytest.raises(OperatorError, match=r"in test_operators_python\.py, line") as failed:
        gpureduce.operator(lambda a, b: (lambda q: q + b)(a))
    assert "changed" not in str(failed.value)


def test_what_has_no_text_is_refused_with_what_would_work():
    space = {}
    exec("def unseen(a, b): return a", space)
    with pytest.raises(OperatorError, match=r"source cannot be read.*save it in a file.*Operator$"):
        gpureduce.operator(space["unseen"])
    method, part = Moments(1, 2, 3).count, functools.partial(hypot)
    for one in (np.add, max, method, part, functools.lru_cache(hypot)):
        with pytest.raises(TypeError, match=r"no function of Python's: .* plain .* two states"):
            gpureduce.operator(one)
    with pytest.raises(TypeError, match="a plain function of an element"):
        gpureduce.operator(state="x: f8", lift=abs)(hypot)

    async def later(a, b):
        return a

    with pytest.raises(OperatorError, match="later: an async function is no operator"):
        gpureduce.operator(later)


def test_other_things_are_refused():
    with pytest.raises(OperatorError, match="without defaults"):
        gpureduce.operator(lambda a, b=1: a + b)
    with pytest.raises(OperatorError, match="takes 1 arguments, not 2"):
        gpureduce.operator(lambda a: a)
    with pytest.raises(OperatorError, match="a tuple of 2, x, y"):
        gpureduce.operator(state="x: f8, y: f8", lift=lambda x: x)(welford)
    with pytest.raises(OperatorError, match="lift is missing"):
        gpureduce.operator(state="x: f8, y: f8")(welford)
    with pytest.raises(OperatorError, match="a has no field n; it has x"):
        gpureduce.operator(state="x: f8", lift=lambda x: (x,))(welford)


@pytest.mark.parametrize("text", ["def f(a, b):\n    return math.sqrt(a*a + b*b)\n",
                                  "f = lambda a, b: math.sqrt(a*a + b*b)\n"])  # fmt: skip
def test_a_notebooks_cell_is_compiled_a_statement_at_a_time(text):
    """Of which an import may be one."""
    name, cell = f"<ipython-input-{len(text)}>", "import math\n" + text
    linecache.cache[name] = len(cell), None, cell.splitlines(keepends=True), name
    space = {}
    for statement in ast.parse(cell).body:
        exec(compile(ast.Module([statement], []), name, "exec", dont_inherit=True), space)
    assert gpureduce.operator(space["f"])(np.array([3.0, 4.0])) == 5
