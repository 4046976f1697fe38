"""Exact sums in states, calls of a kind that came before, and the notebook of operators."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import operator_walks as walks
import pytest
from arrays import generator
from table import SANITIZED

import gpureduce
from gpureduce import Operator

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(SANITIZED, reason="AddressSanitizer is not for compilers")


def special(rng, dtype):
    """Arrays of floats whose sums are hard to round."""
    f = np.finfo(dtype)
    size = int(rng.integers(1, 400))
    bits = rng.integers(0, 2**63, size, dtype=np.uint64).astype(f"u{f.bits // 8}").view(dtype)
    x = rng.normal(size=size).astype(dtype)
    yield x
    yield np.concatenate([x, -x[::-1]])
    yield bits[np.isfinite(bits)]
    yield np.concatenate([bits[np.isfinite(bits)][:9], x * f.smallest_subnormal])
    one = dtype(1)
    for few in ([f.max, f.max, -f.max], [f.max, f.max], [one, f.eps / 2], [-one, -f.eps / 2],
                [one, f.eps / 2, f.smallest_subnormal], [f.tiny, -f.smallest_subnormal],
                [f.max, f.max / 2**f.nmant / 4], [one, np.inf], [np.inf, -np.inf], [np.nan],
                [-np.inf, -one], []):  # fmt: skip
        yield np.array(few, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exact_sums_are_rounded_once(dtype, monkeypatch):
    rng = generator("exact operators", np.dtype(dtype).name)
    op = walks.exact(np.dtype(dtype))
    for x in special(rng, dtype):
        with np.errstate(all="ignore"):
            wanted = gpureduce.sum(x)
        found = op(x)
        assert found.dtype == wanted.dtype == x.dtype
        assert found == wanted or (found != found and wanted != wanted), x
        assert np.signbit(found) == np.signbit(wanted) or found == 0 or found != found
    x = rng.normal(size=(30, 50)).astype(dtype)
    assert (op(x, axis=0) == gpureduce.sum(x, axis=0)).all()
    assert op(x, initial=2.5) == gpureduce.sum(x, initial=dtype(2.5))
    where = rng.random(x.shape) < 0.5
    assert (op(x, axis=1, where=where) == gpureduce.sum(x, axis=1, where=where)).all()


def test_what_exact_sums_take():
    text = "s = c > 0 ? a.s - b.s : -a.s + 1.5"
    op = Operator("s: exact f4, c: f4", lift="s = x; c = x", combine=f"c = b.c; {text}")
    assert op(np.array([3, 1], np.float32)).s == 2 and op(np.array([3, -1], np.float32)).s == -1.5
    pair = Operator(
        "s: exact f4[2]", lift="s[0] = x; s[1] = x * x",
        combine="for (k = 0; k < 2; k++) s[k] = a.s[k] + b.s[k]", finish="s[1] - s[0]",
    )  # fmt: skip
    assert pair(np.array([1, 2, 3], np.float32)) == 8
    product = Operator("s: exact f4", lift="s = x", combine="s = a.s * b.s")
    assert product(np.arange(1, 6, dtype=np.float32)).s == 120
    with pytest.raises(ValueError, match="do not go together"):
        Operator("s: exact f4, t: exact f8", lift="s = x; t = x", combine="s = a.t; t = b.t")

    @gpureduce.operator(state="exact f4", identity=0)
    def total(a, b):
        return a + b

    x = np.array([1e10, 1, -1e10], np.float32)
    assert total(x) == 1


# --- calls of a kind that came before -------------------------------------------------------------


def test_the_second_call_reads_its_own_arrays():
    rng = generator("kept operators")
    op = Operator(
        "n: f8, s: f8[2]", inputs="u, v", lift="n = 1; s[0] = u; s[1] = v",
        combine="n = a.n + b.n; s[0] = a.s[0] - 0.5 * b.s[1]; s[1] = a.s[1] + b.s[0]",
        finish={"s": "s[0] / n", "t": "s[1]"}, name="kept",
    )  # fmt: skip
    x, y = rng.normal(size=(2, 40, 30)), rng.normal(size=(2, 40, 30))
    for axis in (0, 1, (0, 1), None, ()):
        for keepdims in (False, True):
            wanted = [op(x[k], y[k], axis=axis, keepdims=keepdims, device="cpu") for k in (0, 1)]
            for k in (0, 1, 0):
                found = op(x[k], y[k], axis=axis, keepdims=keepdims)
                assert type(found) is type(wanted[k])
                for one, other in zip(found, wanted[k], strict=True):
                    assert np.array_equal(one, other) and np.shape(one) == np.shape(other)
                    assert type(one) is type(other)
    assert op.kept and op(x[0].T, y[0].T, axis=0).s.shape == (40,)
    first, second = op(x[0], y[0], axis=0), op(x[1], y[1], axis=0)
    assert not np.array_equal(first.s, second.s)


def test_what_is_kept_does_not_forgive():
    op = Operator("f8", combine="a + b", name="strict")
    x = np.ones((3, 4))
    assert op(x, axis=1).tolist() == [4, 4, 4] == op(x, axis=1).tolist()
    for wrong in (1.0, (1.0,), "1"):
        with pytest.raises(TypeError):
            op(x, axis=wrong)
    with pytest.raises(ValueError, match="axis 2"):
        op(x, axis=2)
    with pytest.raises(ValueError, match="no identity"):
        op(x[:0], axis=0)
    for _ in range(2):
        with pytest.raises(TypeError, match="takes 1 inputs"):
            op(x, x)
    for n in range(200):  # more kinds than are kept
        assert op(np.ones(n + 1)) == n + 1
    assert len(op.kept) <= 64


def test_threads_share_what_is_kept():
    op, wrong = Operator("f8", combine="a - 0.5 * b", name="shared"), []
    x = np.arange(300.0)
    wanted = [float(op(x + k)) for k in range(4)]

    def work(k):
        for _ in range(300):
            if float(op(x + k)) != wanted[k]:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_notebook(tmp_path):
    """Its cells one after the other; it comes with what they printed."""
    path = ROOT / "examples/operators.ipynb"
    if not path.exists():
        pytest.skip("the examples are not beside the tests")
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    assert all(cell["outputs"] for cell in cells if "print(" in "".join(cell["source"]))
    script = tmp_path / "notebook.py"
    script.write_text("\n\n".join("".join(cell["source"]) for cell in cells))
    env = {**os.environ, "PYTHONPATH": str(Path(gpureduce.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, script], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "matches" in done.stdout
