"""Operators from the literature: as C text, and as plain Python for the tree of the tests."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """lift, combine and finish are Python's, on tuples; make(rng, shape) gives the inputs."""

    text: dict[str, Any]
    make: Callable[..., Any]
    lift: Callable[..., tuple[Any, ...]]
    combine: Callable[..., tuple[Any, ...]]
    identity: tuple[Any, ...] | None = None
    finish: Callable[..., tuple[Any, ...]] = lambda *s: s
    skips: bool = False  # two identities are none: what does not count is left out


U64 = (1 << 64) - 1


def wrap(x):
    return (int(x) + (1 << 63)) % (1 << 64) - (1 << 63)


def floats(rng, shape):
    return (rng.normal(size=shape) * 2.0 ** rng.integers(-8, 9, shape),)


def single(rng, shape):
    return (rng.normal(size=shape).astype(np.float32),)


def few(rng, shape):
    return (rng.integers(0, 3, shape),)


def matrices(n):
    return lambda rng, shape: (rng.normal(size=(*shape, n, n)),)


def times(n, add, mul):
    """The product of two square matrices, from left to right."""

    def product(a, b):
        out = []
        for i in range(n):
            for j in range(n):
                s = mul(a[n * i], b[j])
                for k in range(1, n):
                    s = add(s, mul(a[n * i + k], b[n * k + j]))
                out.append(s)
        return tuple(out)

    return product


def matrix_text(n, add, mul):
    return f"""for (int i_ = 0; i_ < {n}; i_++)
      for (int j = 0; j < {n}; j++) {{
        double s = {mul.format("a.m[i_][0]", "b.m[0][j]")};
        for (int k = 1; k < {n}; k++) s = {add.format("s", mul.format("a.m[i_][k]", "b.m[k][j]"))};
        m[i_][j] = s;
      }}"""


def copied(n):
    return f"for (int r = 0; r < {n}; r++) for (int c = 0; c < {n}; c++) m[r][c] = x[r][c]"


def welford(a, b):
    d, n = b[1] - a[1], a[0] + b[0]
    return n, a[1] + d * b[0] / n, a[2] + b[2] + d * d * a[0] * b[0] / n


def quaternions(p, q):
    a, b, c, d = p
    e, f, g, h = q
    return (
        a * e - b * f - c * g - d * h,
        a * f + b * e + c * h - d * g,
        a * g - b * h + c * e + d * f,
        a * h + b * g - c * f + d * e,
    )


def longest(a, b):
    n, left, right, best = (x for x in a)
    m, l2, r2, b2 = b
    return (
        n + m,
        left + (l2 if left == n else 0),
        r2 + (right if r2 == m else 0),
        max(best, b2, right + l2),
    )


def brackets(a, b):
    met = min(a[1], b[0])
    return a[0] + b[0] - met, a[1] + b[1] - met


def two_sum(a, b):
    s = a[0] + b[0]
    v = s - a[0]
    return s, (a[0] - (s - v)) + (b[0] - v) + (a[1] + b[1])


def covariance(a, b):
    n, dx, dy = a[0] + b[0], b[1] - a[1], b[2] - a[2]
    return (
        n,
        a[1] + dx * b[0] / n,
        a[2] + dy * b[0] / n,
        a[3] + b[3] + dx * dy * a[0] * b[0] / n,
    )


def logsumexp(a, b):
    m = b[0] if b[0] > a[0] else a[0]
    return m, a[1] * math.exp(a[0] - m) + b[1] * math.exp(b[0] - m)


def top_two(a, b):
    high = a[0] if a[0] > b[0] else b[0]
    low = a[0] if a[0] < b[0] else b[0]
    second = a[1] if a[1] > b[1] else b[1]
    return high, low if low > second else second


def runs(a, b):
    """first, its run, last, its run, n, the longest run of equal values"""
    f, fr, last, lr, n, best = a
    g, gr, m, mr, k, other = b
    joined = lr + gr if last == g else 0
    return (
        f,
        n + gr if fr == n and last == g else fr,
        m,
        k + lr if mr == k and last == g else mr,
        n + k,
        max(best, other, joined),
    )


def subarray(a, b):
    return (
        a[0] + b[0],
        max(a[1], a[0] + b[1]),
        max(b[2], b[0] + a[2]),
        max(a[3], b[3], a[2] + b[1]),
    )


P = 1_000_003
F4 = np.float32

CASES = {
    "welford": Case(
        {
            "state": "n: i8, mean: f8, m2: f8",
            "lift": "n = 1; mean = x; m2 = 0",
            "combine": """d = b.mean - a.mean; n = a.n + b.n
                mean = a.mean + d*b.n/n; m2 = a.m2 + b.m2 + d*d*a.n*b.n/n""",
            "identity": "n = 0; mean = 0; m2 = 0",
            "finish": {"mean": "mean", "var": "m2/n"},
        },
        floats,
        lambda x, i: (1, x, 0.0),
        welford,
        (0, 0.0, 0.0),
        lambda n, mean, m2: (mean, m2 / n if n else math.nan),
        True,
    ),
    "quaternions": Case(
        {
            "state": "q: f8[4]",
            "inputs": "x[4]",
            "lift": "for (k = 0; k < 4; k++) q[k] = x[k]",
            "combine": """q[0] = a.q[0]*b.q[0] - a.q[1]*b.q[1] - a.q[2]*b.q[2] - a.q[3]*b.q[3]
                q[1] = a.q[0]*b.q[1] + a.q[1]*b.q[0] + a.q[2]*b.q[3] - a.q[3]*b.q[2]
                q[2] = a.q[0]*b.q[2] - a.q[1]*b.q[3] + a.q[2]*b.q[0] + a.q[3]*b.q[1]
                q[3] = a.q[0]*b.q[3] + a.q[1]*b.q[2] - a.q[2]*b.q[1] + a.q[3]*b.q[0]""",
            "identity": {"q": [1, 0, 0, 0]},
        },
        lambda rng, shape: (rng.normal(size=(*shape, 4)),),
        lambda x, i: tuple(x),
        quaternions,
        (1.0, 0.0, 0.0, 0.0),
    ),
    "matrices": Case(
        {
            "state": "m: f8[3][3]",
            "inputs": "x[3][3]",
            "lift": copied(3),
            "combine": matrix_text(3, "{} + {}", "{} * {}"),
            "identity": {"m": np.eye(3)},
        },
        matrices(3),
        lambda x, i: tuple(x.reshape(-1).tolist()),
        times(3, lambda x, y: x + y, lambda x, y: x * y),
        tuple(np.eye(3).reshape(-1).tolist()),
    ),
    "max-plus": Case(
        {
            "state": "m: f8[2][2]",
            "inputs": "x[2][2]",
            "lift": copied(2),
            "combine": matrix_text(2, "max({}, {})", "({} + {})"),
        },
        matrices(2),
        lambda x, i: tuple(x.reshape(-1).tolist()),
        times(2, lambda x, y: y if y > x else x, lambda x, y: x + y),
    ),
    "longest run": Case(
        {
            "state": "n: i8, left: i8, right: i8, best: i8",
            "lift": "n = 1; left = x != 0; right = left; best = left",
            "combine": """n = a.n + b.n
                left = a.left == a.n ? a.n + b.left : a.left
                right = b.right == b.n ? b.n + a.right : b.right
                best = max(max(a.best, b.best), a.right + b.left)""",
            "identity": (0, 0, 0, 0),
            "finish": "best",
        },
        lambda rng, shape: (rng.random(shape) < 0.8,),
        lambda x, i: (1, int(x), int(x), int(x)),
        longest,
        (0, 0, 0, 0),
        lambda n, left, right, best: (best,),
    ),
    "affine": Case(
        {
            "state": "m: f8, c: f8",
            "inputs": "slope, shift",
            "lift": "m = slope; c = shift",
            "combine": "m = a.m * b.m; c = a.c * b.m + b.c",
            "identity": (1.0, 0.0),
        },
        lambda rng, shape: (rng.normal(size=shape), rng.normal(size=shape[-1:])),
        lambda m, c, i: (m, c),
        lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]),
        (1.0, 0.0),
    ),
    "modular affine": Case(
        {
            "state": "m: u8, c: u8",
            "lift": "m = x % 1000u + 1; c = x",
            "combine": f"m = a.m * b.m % {P}u; c = (a.c * b.m + b.c) % {P}u",
        },
        lambda rng, shape: (rng.integers(0, P, shape).astype(np.uint32),),
        lambda x, i: (int(x) % 1000 + 1, int(x)),
        lambda a, b: (a[0] * b[0] % P, (a[1] * b[0] + b[1]) % P),
    ),
    "brackets": Case(
        {
            "state": "close: i4, open: i4",
            "lift": "close = x == 0; open = x == 1",
            "combine": """met = min(a.open, b.close)
                close = a.close + b.close - met; open = a.open + b.open - met""",
            "identity": "close = 0; open = 0",
        },
        few,
        lambda x, i: (int(x == 0), int(x == 1)),
        brackets,
        (0, 0),
    ),
    "argmax": Case(
        {
            "state": "best: f8, at: i8, payload: f8",
            "inputs": "x, y",
            "lift": "best = x; at = i; payload = y",
            "combine": """right = b.best > a.best
                best = right ? b.best : a.best
                if (right) { at = b.at; payload = b.payload }
                else { at = a.at; payload = a.payload }""",
            "finish": {"at": "at", "payload": "payload"},
        },
        lambda rng, shape: (rng.integers(0, 9, shape), rng.normal(size=shape)),
        lambda x, y, i: (float(x), i, y),
        lambda a, b: b if b[0] > a[0] else a,
        None,
        lambda best, at, payload: (at, payload),
    ),
    "logsumexp": Case(
        {
            "state": "m: f8, s: f8",
            "lift": "m = x; s = 1",
            "combine": """m = max(a.m, b.m)
                s = a.s * exp(a.m - m) + b.s * exp(b.m - m)""",
            "finish": "m + log(s)",
        },
        floats,
        lambda x, i: (x, 1.0),
        logsumexp,
        None,
        lambda m, s: (m + math.log(s),),
    ),
    "polynomial hash": Case(
        {
            "state": "p: u8, h: u8",
            "lift": "p = 0x100000001b3; h = x",
            "combine": "p = a.p * b.p; h = a.h * b.p + b.h",
            "identity": (1, 0),
            "finish": "h",
        },
        lambda rng, shape: (rng.integers(0, 256, shape).astype(np.uint8),),
        lambda x, i: (0x100000001B3, int(x)),
        lambda a, b: (a[0] * b[0] & U64, a[1] * b[0] + b[1] & U64),
        (1, 0),
        lambda p, h: (h,),
    ),
    "interval hull": Case(
        {
            "state": "low: f8, high: f8, covered: f8",
            "inputs": "x, length",
            "lift": "low = x; high = x + length; covered = length",
            "combine": """low = fmin(a.low, b.low); high = fmax(a.high, b.high)
                covered = a.covered + b.covered""",
        },
        lambda rng, shape: (rng.normal(size=shape), np.abs(rng.normal(size=shape)) * 4),
        lambda x, length, i: (x, x + length, length),
        lambda a, b: (min(a[0], b[0]), max(a[1], b[1]), a[2] + b[2]),
    ),
    "two sum": Case(
        {
            "state": "s: f8, c: f8",
            "lift": "s = x; c = 0",
            "combine": """s = a.s + b.s; v = s - a.s
                c = (a.s - (s - v)) + (b.s - v) + (a.c + b.c)""",
            "identity": (0.0, 0.0),
            "finish": "s + c",
        },
        floats,
        lambda x, i: (x, 0.0),
        two_sum,
        (0.0, 0.0),
        lambda s, c: (s + c,),
    ),
    "covariance": Case(
        {
            "state": "n: f8, x: f8, y: f8, c: f8",
            "inputs": "u, v",
            "lift": "n = 1; x = u; y = v; c = 0",
            "combine": """n = a.n + b.n; dx = b.x - a.x; dy = b.y - a.y
                x = a.x + dx*b.n/n; y = a.y + dy*b.n/n
                c = a.c + b.c + dx*dy*a.n*b.n/n""",
            "finish": {"cov": "c / n"},
        },
        lambda rng, shape: (rng.normal(size=shape), rng.normal(size=shape)),
        lambda u, v, i: (1.0, u, v, 0.0),
        covariance,
        None,
        lambda n, x, y, c: (c / n,),
    ),
    "histogram": Case(
        {
            "state": "h: u4[8]",
            "lift": "for (k = 0; k < 8; k++) h[k] = ((int)x & 7) == k",
            "combine": "for (k = 0; k < 8; k++) h[k] = a.h[k] + b.h[k]",
            "identity": {"h": 0},
        },
        lambda rng, shape: (rng.integers(0, 8, shape).astype(np.float32),),
        lambda x, i: tuple(int(int(x) == k) for k in range(8)),
        lambda a, b: tuple(x + y for x, y in zip(a, b, strict=True)),
        (0,) * 8,
    ),
    "runs": Case(
        {
            "state": "first: i8, left: i8, last: i8, right: i8, n: i8, best: i8",
            "lift": "first = x; last = x; left = 1; right = 1; n = 1; best = 1",
            "combine": """same = a.last == b.first
                first = a.first; last = b.last; n = a.n + b.n
                left = same && a.left == a.n ? a.n + b.left : a.left
                right = same && b.right == b.n ? b.n + a.right : b.right
                best = max(max(a.best, b.best), same ? a.right + b.left : 0)""",
            "finish": "best",
        },
        few,
        lambda x, i: (int(x), 1, int(x), 1, 1, 1),
        runs,
        None,
        lambda *s: (s[5],),
    ),
    "bounding box": Case(
        {
            "state": "left: f4, right: f4, low: f4, high: f4",
            "inputs": "x, y",
            "lift": "left = x; right = x; low = y; high = y",
            "combine": """left = fminf(a.left, b.left); right = fmaxf(a.right, b.right)
                low = fminf(a.low, b.low); high = fmaxf(a.high, b.high)""",
            "identity": "left = INFINITY; low = INFINITY; right = -INFINITY; high = -INFINITY",
            "commutative": True,
        },
        lambda rng, shape: (*single(rng, shape), *single(rng, shape)),
        lambda x, y, i: (x, x, y, y),
        lambda a, b: (min(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), max(a[3], b[3])),
        (math.inf, -math.inf, math.inf, -math.inf),
    ),
    "line": Case(
        {
            "state": "n: f8, x: f8, y: f8, xx: f8, xy: f8",
            "inputs": "u, v",
            "lift": "n = 1; x = u; y = v; xx = u * u; xy = u * v",
            "combine": """n = a.n + b.n; x = a.x + b.x; y = a.y + b.y
                xx = a.xx + b.xx; xy = a.xy + b.xy""",
            "identity": (0, 0, 0, 0, 0),
            "finish": {
                "slope": "(n * xy - x * y) / (n * xx - x * x)",
                "n": "(int)n",
            },
        },
        lambda rng, shape: (rng.normal(size=shape), rng.normal(size=shape)),
        lambda u, v, i: (1.0, u, v, u * u, u * v),
        lambda a, b: tuple(x + y for x, y in zip(a, b, strict=True)),
        (0.0,) * 5,
        lambda n, x, y, xx, xy: (
            float(np.float64(n * xy - x * y) / np.float64(n * xx - x * x)),
            int(n),
        ),
    ),
    "top two": Case(
        {
            "state": "high: f8, second: f8",
            "lift": "high = x; second = -INFINITY",
            "combine": """high = a.high > b.high ? a.high : b.high
                low = a.high < b.high ? a.high : b.high
                second = max(b.second, a.second)
                second = max(second, low)""",
            "identity": (-math.inf, -math.inf),
        },
        floats,
        lambda x, i: (x, -math.inf),
        top_two,
        (-math.inf, -math.inf),
    ),
    "hypot": Case(
        {"state": "f4", "combine": "sqrtf(a*a + b*b)", "identity": 0.0, "commutative": True},
        single,
        lambda x, i: (x,),
        lambda a, b: (np.sqrt(F4(F4(a[0] * a[0]) + F4(b[0] * b[0]))),),
        (F4(0),),
    ),
    "complex product": Case(
        {"state": "c16", "combine": "a * b", "identity": 1},
        lambda rng, shape: (rng.normal(size=shape) + 1j * rng.normal(size=shape),),
        lambda x, i: (x.real, x.imag),
        lambda a, b: (a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]),
        (1.0, 0.0),
        lambda re, im: (complex(re, im),),
    ),
    "first that counts": Case(
        {
            "state": "there: b1, value: i2",
            "lift": "there = x > 0; value = there ? x : 0",
            "combine": "there = a.there || b.there; value = a.there ? a.value : b.value",
            "identity": (False, 0),
            "finish": "value",
        },
        lambda rng, shape: (rng.integers(-90, 5, shape).astype(np.int16),),
        lambda x, i: (x > 0, int(x) if x > 0 else 0),
        lambda a, b: (a[0] or b[0], a[1] if a[0] else b[1]),
        (False, 0),
        lambda there, value: (value,),
    ),
    "best subarray": Case(
        {
            "state": "total: i8, head: i8, tail: i8, best: i8",
            "lift": "total = x; head = x; tail = x; best = x",
            "combine": """total = a.total + b.total
                head = max(a.head, a.total + b.head); tail = max(b.tail, b.total + a.tail)
                best = max(max(a.best, b.best), a.tail + b.head)""",
            "finish": "best",
        },
        lambda rng, shape: (rng.integers(-9, 10, shape).astype(np.int8),),
        lambda x, i: (int(x),) * 4,
        subarray,
        None,
        lambda *s: (s[3],),
    ),
    "exact mean": Case(
        {
            "state": "s: exact f4, n: i8",
            "lift": "s = x; n = 1",
            "combine": "s = a.s + b.s; n = a.n + b.n",
            "identity": (0, 0),
            "finish": {"total": "s", "mean": "n ? (double)s / n : 0"},
        },
        lambda rng, shape: (
            (rng.normal(size=shape) * np.exp2(rng.integers(-60, 60, shape))).astype(F4),
        ),
        lambda x, i: (Fraction(float(x)), 1),
        lambda a, b: (a[0] + b[0], a[1] + b[1]),
        (Fraction(0), 0),
        lambda s, n: (F4(float(s)), float(F4(float(s))) / n if n else 0.0),
    ),
    "half": Case(
        {"state": "f2", "combine": "a + b", "identity": 0},
        lambda rng, shape: (rng.normal(size=shape).astype(np.float16),),
        lambda x, i: (x,),
        lambda a, b: (np.float16(F4(a[0]) + F4(b[0])),),
        (np.float16(0),),
    ),
}  # fmt: skip


def tree(case, leaves):
    """The root of the tree: a missing right sibling passes its left through, and so does a leaf
    that is None."""

    def both(a, b):
        return b if a is None else a if b is None else case.combine(a, b)

    while len(leaves) > 1:
        pairs = [both(*leaves[k : k + 2]) for k in range(0, len(leaves) - 1, 2)]
        leaves = pairs + leaves[len(pairs) * 2 :]
    return leaves[0] if leaves else None


def expected(case, inputs, shape, axes, where=None, initial=None):
    """For each output in C order the results, by the tree in Python."""
    axes = sorted(axes)
    kept = [d for d in range(len(shape)) if d not in axes]
    found = []
    with np.errstate(all="ignore"):
        for outer in np.ndindex(*(shape[d] for d in kept)):
            leaves: list[Any] = []
            for i, place in enumerate(np.ndindex(*(shape[d] for d in axes))):
                at = [0] * len(shape)
                for d, p in [*zip(kept, outer, strict=True), *zip(axes, place, strict=True)]:
                    at[d] = p
                if where is not None and not where[tuple(at)]:
                    leaves.append(None if case.skips else case.identity)
                    continue
                taken = [a[tuple(at)] for a in inputs]
                leaves.append(case.lift(*[_plain(t) for t in taken], i))
            root = tree(case, leaves)
            if root is None:
                root = case.identity
            if initial is not None:
                root = initial if root is None else case.combine(initial, root)
            found.append(case.finish(*root))
    return found


def _plain(x):
    """float64 as Python's, which is quicker; arrays and all others as they are."""
    return float(x) if isinstance(x, np.float64) else x
