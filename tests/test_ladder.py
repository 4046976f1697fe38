"""The textbook kernels: every one on every operator, type and size that it takes, against NumPy for
integers and the CPU half for floats, whose values here have exact sums and products in any order.
"""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from arrays import draw, generator, matrices
from device import Interface, copy_out, interface_of, on_device
from table import assert_bits, call

import gpureduce
from gpureduce import _core, ladder, story

COUNT, WHY = _core.device_count()
ROOT = Path(__file__).resolve().parent.parent
SECONDS = 300
KERNELS = {kernel["name"]: kernel for kernel in gpureduce.kernels()}
TEXTBOOK = [name for name in KERNELS if name != "default"]
OPS = [op["name"] for op in gpureduce.operators() if op["takes_kernel"] and op["function"]]
DTYPES = _core.kernel_dtypes()

gpu = [pytest.mark.gpu, pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")]


def on_gpu(test):
    for mark in gpu:
        test = mark(test)
    return test


each_kernel = pytest.mark.parametrize("kernel", KERNELS)
each_op = pytest.mark.parametrize("op", OPS)
each_dtype = pytest.mark.parametrize("dtype", DTYPES)


# --- without a GPU --------------------------------------------------------------------------------


def test_the_list():
    sections = [kernel["section"] for kernel in KERNELS.values()]
    assert len(KERNELS) == 25 and len(gpureduce.kernels()) == 25
    assert sections == sorted(sections), "in the order of the chapters"
    assert next(iter(KERNELS)) == "neighbored" and [*KERNELS][-1] == "default"
    for kernel in KERNELS.values():
        assert kernel["sentence"].endswith(".") and len(kernel["sentence"]) > 40
        assert kernel["limit"] == (32 if "single_warp" in kernel["name"] else 0)
        assert "noncomm" not in kernel["name"] or kernel["in_order"]


def test_an_unknown_name():
    with pytest.raises(ValueError) as raised:
        gpureduce.sum([1, 2], kernel="nonsense")
    assert "nonsense" in str(raised.value)
    assert all(name in str(raised.value) for name in KERNELS)
    for wrong in (3, b"shfl", ""):
        with pytest.raises(ValueError, match="is not one of"):
            gpureduce.sum([1, 2], kernel=wrong)


@pytest.mark.parametrize("kernel", [name for name in KERNELS if KERNELS[name]["limit"]])
def test_too_many_elements(kernel):
    with pytest.raises(ValueError, match=f"{kernel} takes at most 32 elements, not 33"):
        gpureduce.sum(np.arange(33), kernel=kernel)


@pytest.mark.parametrize("kernel", TEXTBOOK)
def test_what_no_kernel_takes(kernel):
    for dtype in set(gpureduce.dtypes()) & {"int8", "uint64", "float16", "complex64", "bool"} - {
        *DTYPES
    }:
        with pytest.raises(TypeError, match=f"{kernel} is made for {', '.join(DTYPES)}, not for"):
            gpureduce.max(np.zeros(3, dtype), kernel=kernel)
    with pytest.raises(TypeError, match=f"{kernel} is made for"):
        gpureduce.reduce([1, 2], "bitwise_or", kernel=kernel)
    with pytest.raises(ValueError, match="no initial"):
        gpureduce.sum([1, 2], initial=3, kernel=kernel)
    with pytest.raises(ValueError, match="cpu"):
        gpureduce.sum([1, 2], device="cpu", kernel=kernel)
    with pytest.raises(ValueError, match="zero-size"):
        gpureduce.min(np.zeros(0), kernel=kernel)


@pytest.mark.parametrize("kernel", TEXTBOOK)
def test_matrices_want_their_order(kernel):
    m = np.zeros((3, 2, 2), "int32")
    with pytest.raises(TypeError, match="not defined for dtype int32"):
        gpureduce.reduce(m, "matmul2x2", kernel=kernel)
    if not KERNELS[kernel]["in_order"]:
        with pytest.raises(TypeError, match=f"{kernel} does not keep the order"):
            gpureduce.reduce(m.astype("f8"), "matmul2x2", kernel=kernel)
    elif KERNELS[kernel]["limit"]:
        with pytest.raises(ValueError, match="at most 32 elements, not 33"):
            gpureduce.reduce(np.zeros((33, 2, 2)), "matmul2x2", kernel=kernel)
    with pytest.raises(ValueError, match="shape"):
        gpureduce.reduce(np.zeros((3, 2)), "matmul2x2", kernel=kernel)


def test_only_where_it_is_a_keyword():
    for op in gpureduce.operators():
        if op["function"] and not op["takes_kernel"]:
            with pytest.raises(TypeError, match="kernel"):
                getattr(gpureduce, op["name"])([1], kernel="shfl")


@pytest.mark.skipif(COUNT > 0, reason="there is a GPU")
@each_kernel
def test_without_a_gpu(kernel):
    """Nothing is advised that takes no kernel, as the CPU."""
    for work, way_out in (
        (lambda: gpureduce.sum([1, 2], kernel=kernel), ", or leave out kernel="),
        (
            lambda: gpureduce.reduce([1.0], np.minimum, kernel=kernel, device="cuda"),
            ", or leave out kernel= and device=",
        ),
        (lambda: _core.kernel_time(kernel, "sum", [1, 2], "auto", 3), ""),
    ):
        with pytest.raises(gpureduce.DeviceError, match="CUDA") as caught:
            work()
        assert str(caught.value) == WHY + way_out


def test_what_cannot_be_timed():
    for arguments in (
        ("shfl", "sum", [1, 2], "auto", 0),
        ("shfl", "nonsense", [1, 2], "auto", 3),
        (None, "sum", [1, 2], "auto", 3),
        ("nonsense", "sum", [1, 2], "auto", 3),
        ("shfl", "sum", [1, 2], "cpu", 3),
    ):
        with pytest.raises(ValueError):
            _core.kernel_time(*arguments)
    with pytest.raises(TypeError):
        _core.kernel_time("shfl", "sum", np.zeros(3, bool), "auto", 3)


def climb(*arguments):
    command = [sys.executable, "-m", "gpureduce", "ladder", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


@pytest.mark.skipif(COUNT > 0, reason="there is a GPU")
def test_the_command_without_a_gpu():
    done = climb("--n", 1000)
    assert done.returncode == 1 and "CUDA" in done.stderr and "Traceback" not in done.stderr


def test_the_command_checks_its_arguments():
    done = climb("--n", 0)
    assert done.returncode == 1 and "0 elements" in done.stderr
    assert climb("--dtype", "int8").returncode == 2


def pretended():
    steps = [
        {
            "name": kernel["name"],
            "section": kernel["section"],
            "sentence": kernel["sentence"],
            "elements": kernel["limit"] or 1 << 20,
            "microseconds": 100.0 / (i + 1),
            "rate": 1e10 * (i + 1),
        }
        for i, kernel in enumerate(gpureduce.kernels())
    ]
    return ladder.Ladder(
        device="a GPU", dtype="int32", elements=1 << 20, repeats=3, read_limit=4e12, steps=steps
    )


def test_the_tables():
    made = pretended()
    for text in (ladder.table(made), ladder.markdown(made)):
        places = [text.index(f"{name} ") for name in KERNELS if not name.startswith("single_warp")]
        assert places == sorted(places)
        assert "1,048,576" in text and "4,000 GB/s" in text
    assert ladder.markdown(made).count("\n|") == len(KERNELS) + 2


def test_each_step_has_its_reason():
    assert [*story.WHY] == [*KERNELS]
    seen = {""}
    for name, (before, _) in story.WHY.items():
        assert before in seen, f"{name} is held against {before}, which comes later"
        assert "{" not in ladder.why(pretended(), name)
        seen.add(name)
    assert "1.25 times as fast as unroll2, -5.0 µs" in ladder.why(pretended(), "unroll4")


def test_the_committed_results():
    """Every kernel is there, none faster than the library, and the table is made from them."""
    results = ROOT / "benchmarks/results"
    if not results.exists():
        pytest.skip("the results are not beside the tests")
    run = json.loads((results / "ladder.json").read_text())
    assert [step["name"] for step in run["steps"]] == [*KERNELS]
    assert [step["sentence"] for step in run["steps"]] == [k["sentence"] for k in KERNELS.values()]
    assert (results / "ladder.md").read_text() == ladder.markdown(run)
    assert max(run["steps"], key=lambda step: step["rate"])["name"] == "default"


def test_the_chart(tmp_path):
    pytest.importorskip("matplotlib", reason="no matplotlib")
    ladder.plot(pretended(), tmp_path / "ladder.png")
    assert (tmp_path / "ladder.png").read_bytes()[:4] == b"\x89PNG"


def test_progress_without_tqdm(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert [*ladder._progress("timed", gpureduce.kernels())] == gpureduce.kernels()
    assert "timed 25/25" in capsys.readouterr().err


NO_CHART = "the chart needs results and matplotlib\n"


def test_the_notebook(tmp_path):
    """Its cells one after the other, as a kernel of Jupyter would run them."""
    path = ROOT / "examples/ladder.ipynb"
    if not path.exists():
        pytest.skip("the examples are not beside the tests")
    cells = json.loads(path.read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    outputs = [one for cell in cells for one in cell.get("outputs", [])]
    shown = "".join("".join(one["text"]) for one in outputs if one["output_type"] == "stream")
    assert any("image/png" in one.get("data", {}) for one in outputs), "the chart is in it"
    script = tmp_path / "notebook.py"
    script.write_text("\n\n".join(code))
    done = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,  # from any folder
        env={
            **os.environ,
            "MPLBACKEND": "Agg",
            "PYTHONPATH": str(Path(gpureduce.__file__).parent.parent),
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "neighbored" in done.stdout and "default" in done.stdout
    if not gpureduce.devices():  # but for the chart, which takes matplotlib
        assert done.stdout.replace(NO_CHART, "") == shown, "jupyter execute --inplace it"


# --- on a GPU -------------------------------------------------------------------------------------

MOST = 1 << 24


@functools.cache
def pool(op, dtype):
    """2^24 elements, in host and device memory."""
    rng, dtype = generator("ladder", op, dtype), np.dtype(dtype)
    if dtype.kind == "i":
        a = draw(rng, dtype, MOST)
        a |= op == "prod"  # odd, so that products do not vanish
    elif op == "sum":
        a = rng.integers(-1, 2, MOST).astype(dtype)
        a[:1_000_000] = rng.integers(-8, 9, 1_000_000)
        assert np.abs(a).sum(dtype="f8") < 1 << 24  # of any part, in any order: exact
    elif op == "prod":
        a = np.where(rng.integers(0, 2, MOST) == 1, 1, -1).astype(dtype)
        for power, places in ((2, 40), (0.5, 40)):  # no part's product leaves the range
            a[rng.integers(0, 20_000, places // 2)] *= power
            a[rng.integers(0, MOST, places // 2)] *= power
    else:
        a = rng.standard_normal(MOST).astype(dtype)
        a[[3, 17]] = [-0.0, 0.0]
    return a, on_device(a)


@functools.cache
def wanted(op, dtype, n):
    a = pool(op, dtype)[0][:n]
    return getattr(np, op)(a) if a.dtype.kind == "i" else call(op, a, device="cpu")


def first(device, a, n):
    return Interface(interface_of(a[:n], device.__cuda_array_interface__["data"][0]), device)


def sizes(kernel):
    """Around what a warp, a block, a tile and several tiles take, as far as it may."""
    least, most = kernel["threads"]
    blocks = {least << k for k in range(11) if least and least << k <= most} | {32}
    edges = blocks | {kernel["unroll"] * block for block in blocks}
    edges |= {3 * edge for edge in edges} | {1024, 132 * 2048, 512 * 4 * 132}
    every = {0, 1, 2, 10_000, 1_000_000, MOST} | {e + d for e in edges for d in (-1, 0, 1)}
    return sorted(n for n in every if not kernel["limit"] or n <= kernel["limit"])


@on_gpu
@each_dtype
@each_op
@each_kernel
def test_sizes(kernel, op, dtype):
    a, device = pool(op, dtype)
    for n in sizes(KERNELS[kernel]):
        given = first(device, a, n)
        if n == 0 and op in ("min", "max"):
            with pytest.raises(ValueError, match="zero-size"):
                call(op, given, kernel=kernel)
            continue
        assert_bits(call(op, given, kernel=kernel), wanted(op, dtype, n), f"{n} elements")
    if KERNELS[kernel]["limit"]:
        with pytest.raises(ValueError, match="at most 32 elements, not 33"):
            call(op, first(device, a, 33), kernel=kernel)


@on_gpu
@each_kernel
def test_a_hundred_million(kernel):
    if KERNELS[kernel]["limit"]:
        pytest.skip("takes 32 elements")
    a, device = hundred_million()
    assert_bits(gpureduce.sum(device, kernel=kernel), np.sum(a), kernel)


@functools.cache
def hundred_million():
    a = np.resize(draw(generator("many"), np.dtype("i4"), 1_000_003), 100_000_000)
    return a, on_device(a)


@on_gpu
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@each_kernel
def test_what_floats_have(kernel, dtype):
    """NaN wherever it is, zeros of both signs, infinities."""
    n = KERNELS[kernel]["limit"] or 5000
    a = np.random.default_rng(1).integers(-9, 9, n).astype(dtype)
    cases = [np.zeros(n, dtype), -np.zeros(n, dtype), np.where(a > 0, a, -0.0).astype(dtype)]
    for place in (0, 1, n // 2, n - 1):
        for value in (np.nan, -np.nan, np.inf, -np.inf):
            cases.append(a.copy())
            cases[-1][place] = value
            cases[-1][n // 3] = np.inf
    for case in cases:
        for op in ("min", "max", "sum"):
            want = call(op, case, device="cpu")
            assert_bits(call(op, case, kernel=kernel), want, f"{op} of {case}")


@on_gpu
@each_kernel
def test_any_layout_and_the_input_unchanged(kernel):
    n = KERNELS[kernel]["limit"] or 6000
    a = draw(generator("laid", kernel), np.dtype("i4"), 2 * n)
    odd = np.frombuffer(b"\0" + a.tobytes(), np.uint8)[1:].view("i4")
    for laid in (
        a[:n],
        a[::2],
        a[::-2],
        a[:n].reshape(2, -1).T,
        a[:n].astype(">i4"),
        odd[:n],
        np.broadcast_to(a[:1], n),
    ):
        before = laid.copy()
        want = np.sum(laid)
        assert_bits(gpureduce.sum(laid, kernel=kernel), want, "host")
        assert np.array_equal(before, laid)
        if laid.dtype.isnative:
            given = on_device(laid)
            whole = given.holders[0]
            there = copy_out(whole)
            assert_bits(gpureduce.sum(given, kernel=kernel), want, "device")
            assert copy_out(whole) == there
    floats = a[:n] % 100 / 1
    assert_bits(gpureduce.sum(a[:n] % 100, dtype="f8", kernel=kernel), np.sum(floats), "dtype")


def in_order():
    return [name for name in KERNELS if KERNELS[name]["in_order"]]


def product(m):
    """Pairs of neighbours until one is left; integers wrap, and so any bracketing is the same."""
    while len(m) > 1:
        m = np.concatenate([m, np.eye(2, dtype=m.dtype)[None]]) if len(m) % 2 else m
        m = m[::2] @ m[1::2]
    return m[0] if len(m) else np.eye(2, dtype=m.dtype)


@on_gpu
@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize("kernel", in_order())
def test_matrices(kernel, dtype):
    m = matrices(generator("matrices"), np.dtype(dtype), 1_000_000)
    device = on_device(m)
    for n in sizes(KERNELS[kernel]):
        if n > len(m):
            continue
        given = first(device, m, n)
        want = (
            product(m[:n])
            if dtype == "int64"
            else gpureduce.reduce(m[:n], "matmul2x2", device="cpu")
        )
        assert_bits(gpureduce.reduce(given, "matmul2x2", kernel=kernel), want, f"{n} matrices")
    few = m[: KERNELS[kernel]["limit"] or 3000]
    for laid in (few, few[::-1], few.swapaxes(1, 2), few.astype(few.dtype.newbyteorder())):
        want = gpureduce.reduce(laid, "matmul2x2", device="cpu")
        assert_bits(gpureduce.reduce(laid, "matmul2x2", kernel=kernel), want, "host")
        if laid.dtype.isnative:
            given = on_device(laid)
            assert_bits(gpureduce.reduce(given, "matmul2x2", kernel=kernel), want, "device")


@on_gpu
@each_kernel
def test_times(kernel):
    a, device = pool("sum", "int32")
    n = KERNELS[kernel]["limit"] or MOST
    for given in (first(device, a, n), a[: min(n, 5000)], first(device, a, 0)):
        times = _core.kernel_time(kernel, "sum", given, "auto", 5)
        assert len(times) == 5 and all(0 <= time < 1000 for time in times)


@on_gpu
def test_the_command(tmp_path):
    files = {kind: tmp_path / f"ladder.{kind}" for kind in ("json", "markdown")}
    done = climb(
        "--n",
        100_000,
        "--repeats",
        3,
        "--dtype",
        "float32",
        *(word for kind, path in files.items() for word in (f"--{kind}", path)),
    )
    assert done.returncode == 0, done.stderr
    assert [step["name"] for step in json.loads(files["json"].read_text())["steps"]] == [*KERNELS]
    assert all(name in done.stdout for name in KERNELS)
    assert files["markdown"].read_text().count("\n|") == len(KERNELS) + 2


@on_gpu
@pytest.mark.sanitized
@pytest.mark.parametrize("kernel", TEXTBOOK)
def test_each_kernel_under_the_sanitizers(kernel):
    """One element, one block that is not full, and several; lean: tools are slow."""
    about = KERNELS[kernel]
    tile = about["threads"][1] * about["unroll"]
    for n in (1, 29) if about["limit"] else (1, 77, 2 * tile + 5):
        for dtype in DTYPES:
            a = np.random.default_rng(n).integers(-2, 3, n).astype(dtype)
            a[a == 0] = 1
            for op in OPS:
                if op == "prod" and a.dtype.kind == "f":
                    a = np.sign(a)
                want = call(op, a, device="cpu")
                assert_bits(call(op, a, kernel=kernel), want, f"{op} of {n} {dtype}")
        for dtype in ("int64", "float64") if about["in_order"] else ():
            m = matrices(np.random.default_rng(n), np.dtype(dtype), n)
            want = gpureduce.reduce(m, "matmul2x2", device="cpu")
            assert_bits(gpureduce.reduce(m, "matmul2x2", kernel=kernel), want, f"{n} matrices")
