"""progress=: what it is told and when, that it changes no bit, and that a run can end under it."""

import os
import sys
import time

import numpy as np
import pytest
from table import OPS, assert_bits, call, numpy_dtype
from test_threads import output

import gpureduce
from gpureduce import _core
from gpureduce import progress as bars

# Hours of work in half a megabyte: only progress can end it.
ENDLESS = np.broadcast_to(np.arange(1.0, 1 + (1 << 16)), (1 << 24, 1 << 16))
MASK = np.broadcast_to(np.True_, ENDLESS.shape)
TALL = np.broadcast_to(np.arange(5.0), (1 << 16, 1 << 20, 5))
LONG = np.broadcast_to(np.arange(7.0)[:, None], (7, 1 << 36))


class Enough(Exception):
    pass


@pytest.fixture(autouse=True)
def next_call_works():
    yield
    assert gpureduce.sum([1.0, 2.0]) == 3


def told(calls):
    return lambda done, total: calls.append((done, total))


# --- what it is told ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPS)
def test_the_end_is_told_and_no_bit_changes(name):
    for dtype in ("float32", "int64"):
        if (name, dtype) not in {row[:2] for row in _core.rows()}:
            continue
        for shape in ((7,), (300, 1000)):
            a = np.arange(np.prod(shape)).astype(dtype).reshape(shape) % 100 + 1
            for axis in (None, 0):
                calls = []
                got = call(name, a, axis=axis, progress=told(calls))
                assert_bits(got, call(name, a, axis=axis), f"{name} {dtype} {shape} {axis}")
                assert calls[-1] == (a.size, a.size)


def test_nothing_to_do():
    calls = []
    assert gpureduce.sum([], progress=told(calls)) == 0
    assert gpureduce.sum(np.ones((3, 0)), axis=0, progress=told(calls)).shape == (0,)
    assert calls == [(0, 0), (0, 0)]
    with pytest.raises(ValueError):
        gpureduce.max([], progress=told(calls))
    assert len(calls) == 2


def test_segments_count_what_they_read():
    calls = []
    a = np.arange(60.0).reshape(12, 5)
    gpureduce.segments(a, [0, 5, 3], [12, 5, 1], "add", progress=told(calls))
    gpureduce.segments(a, [], [], "add", progress=told(calls))
    gpureduce.reduceat(a, [0, 4], "add", axis=1, progress=told(calls))
    gpureduce.reduceat(a, [4, 2], "maximum", axis=1, progress=told(calls))
    assert calls == [(60, 60), (0, 0), (60, 60), (12 * 4, 12 * 4)]


def test_matrices_are_elements():
    calls = []
    gpureduce.reduce(np.ones((3, 2, 2)), "matmul2x2", progress=told(calls))
    assert calls == [(3, 3)]


WAYS = {
    **{
        name: lambda p, f=name: getattr(gpureduce, f)(ENDLESS, progress=p)
        for name in ("sum", "prod", "argmax", "var", "nanmean", "all", "minmax")
    },
    "ufunc": lambda p: gpureduce.reduce(ENDLESS, np.fmin, progress=p),
    "packed": lambda p: gpureduce.sum(ENDLESS.view(">f8"), progress=p),
    "cast": lambda p: gpureduce.prod(ENDLESS, dtype="f4", progress=p),
    "columns": lambda p: gpureduce.sum(ENDLESS, axis=0, progress=p),
    "few columns": lambda p: gpureduce.max(TALL, axis=(0, 1), progress=p),
    "rows": lambda p: gpureduce.sum(LONG, axis=1, progress=p),
    "tree of rows": lambda p: gpureduce.prod(LONG, axis=1, progress=p),
    "mask": lambda p: gpureduce.sum(ENDLESS, where=MASK, progress=p),
    "segments": lambda p: gpureduce.segments(ENDLESS, [0, 1], [3, 1 << 24], "add", progress=p),
    "reduceat": lambda p: gpureduce.reduceat(ENDLESS, [0, 1 << 20], "maximum", progress=p),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("way", WAYS)
def test_under_way(way, threads):
    """At most ten times a second, always more of the same whole; and it can end the run."""
    gpureduce.set_num_threads(threads)
    calls, times = [], [time.monotonic()]

    def progress(done, total):
        times.append(time.monotonic())
        calls.append((done, total))
        if len(calls) == 3:
            raise Enough

    with pytest.raises(Enough):
        WAYS[way](progress)
    done, (total, *others) = [d for d, _ in calls], [t for _, t in calls]
    assert others == [total] * 2 and total > 1 << 24
    assert 0 < done[0] < done[1] < done[2] < total
    assert min(np.diff(times)) >= 0.1


@pytest.mark.gpu
@pytest.mark.skipif(not _core.device_count()[0], reason="no GPU")
@pytest.mark.parametrize("dtype", ["f8", ">f8"])
def test_streamed_to_a_device(dtype):
    calls = []

    def progress(done, total):
        calls.append((done, total))
        if len(calls) == 3:
            raise Enough

    with pytest.raises(Enough):
        gpureduce.sum(ENDLESS.view(dtype), device="cuda", progress=progress)
    (first, _), (second, _), (third, total) = calls
    assert 0 < first < second < third < total == ENDLESS.size
    calls.clear()
    assert gpureduce.sum(np.ones(1 << 22, dtype), device="cuda", progress=told(calls)) == 1 << 22
    assert calls[-1] == (1 << 22, 1 << 22)


def test_any_is_settled_at_once():
    calls = []
    assert gpureduce.any(ENDLESS, progress=told(calls))
    assert gpureduce.any(ENDLESS.T[:7], axis=1, progress=told(calls)).all()
    assert calls == [(1 << 40,) * 2, (7 << 24,) * 2]


@pytest.mark.parametrize("dtype", ["float64", "int16", "bfloat16"])
def test_files(tmp_path, dtype):
    a = (np.arange(300_000) % 251).astype(numpy_dtype(dtype)).reshape(3000, 100)
    a.tofile(tmp_path / "a")
    mapped = np.memmap(tmp_path / "a", a.dtype, "r", shape=a.shape)
    for axis in (None, 0, 1):
        calls = []
        got = gpureduce.sum(mapped, axis=axis, progress=told(calls))
        assert_bits(got, gpureduce.sum(a, axis=axis), axis)
        assert calls[-1] == (a.size, a.size)


# --- functions that misbehave ---------------------------------------------------------------------


def test_what_it_raises_comes_out():
    error = Enough("mine")

    def progress(done, total):
        raise error

    before = sys.getrefcount(progress)
    for a in (ENDLESS, [1.0]):
        with pytest.raises(Enough) as caught:
            gpureduce.sum(a, progress=progress)
        assert caught.value is error
        error.__traceback__ = None
        del caught
    assert sys.getrefcount(progress) == before


def test_it_may_reduce_itself():
    sums = []

    def progress(done, total):
        sums.append(gpureduce.sum(np.ones(1 << 20), progress=told([])))
        if len(sums) == 3:
            raise Enough

    gpureduce.set_num_threads(3)
    with pytest.raises(Enough):
        gpureduce.sum(ENDLESS, progress=progress)
    assert sums == [1 << 20] * 3


def test_wrong_arity():
    with pytest.raises(TypeError):
        gpureduce.sum([1.0], progress=lambda done: None)


@pytest.mark.parametrize("progress", [3, "yes", [1]])
def test_what_is_no_progress(progress):
    with pytest.raises(TypeError, match=f"progress {progress!r} is not".replace("[", r"\[")):
        gpureduce.mean([1.0], progress=progress)
    with pytest.raises(TypeError, match=r"progress .* is not True"):
        gpureduce.segments([1.0], [0], [1], "add", progress=progress)


def test_none_is_off():
    assert gpureduce.sum([1.0, 2.0], progress=None) == 3
    assert gpureduce.reduce([1.0, 2.0], "add", progress=False) == 3


INTERRUPTED = """
import signal, sys, threading, time
from test_progress import ENDLESS
import gpureduce
gpureduce.set_num_threads({threads})
main = threading.main_thread().ident
def interrupt():
    global sent
    sent = time.monotonic()
    signal.pthread_kill(main, signal.SIGINT)
threading.Timer(0.3, interrupt).start()
try:
    gpureduce.sum(ENDLESS, axis={axis}, progress={progress})
except KeyboardInterrupt:
    print(time.monotonic() - sent)
assert gpureduce.sum([1.0, 2.0]) == 3
"""


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("axis", [None, 0])
@pytest.mark.parametrize("progress", ["True", "lambda done, total: None"])
def test_ctrl_c(progress, axis, threads):
    if progress == "True":
        pytest.importorskip("tqdm")
    script = INTERRUPTED.format(progress=progress, axis=axis, threads=threads)
    assert float(output(script, PYTHONPATH=os.pathsep.join(sys.path))) < 1


# --- the bar --------------------------------------------------------------------------------------


def test_what_ends_soon_shows_nothing(capsys):
    pytest.importorskip("tqdm")
    assert gpureduce.sum([1.0, 2.0], progress=True) == 3
    assert capsys.readouterr() == ("", "")


def test_what_takes_long_shows_a_bar(capsys, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(bars, "_SECONDS", 0)
    assert gpureduce.max([1.0, 2.0], axis=0, progress=True) == 2
    gpureduce.reduceat([1.0, 2.0], [0], "add", progress=True)
    out, err = capsys.readouterr()
    assert not out and "max: 100%" in err and "2.00/2.00" in err and "reduceat: 100%" in err


class Bar:
    """tqdm's, as far as it is used; the third step fails."""

    opened = None

    def __init__(self, **given):
        type(self).opened = self
        self.given, self.n, self.total, self.steps, self.closed = given, 0, None, 0, False

    def update(self, n):
        self.n += n
        self.steps += 1
        if self.steps == 3:
            raise Enough

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closed = True


def test_the_bar_is_closed_by_what_goes_wrong(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", type(sys)("tqdm"))
    sys.modules["tqdm"].tqdm = Bar
    with pytest.raises(Enough):
        gpureduce.std(ENDLESS, progress=True)
    bar = Bar.opened
    assert bar.closed and bar.total == ENDLESS.size and 0 < bar.n < bar.total
    assert bar.given["desc"] == "std"
    with pytest.raises(np.exceptions.AxisError):
        gpureduce.sum([1.0], axis=1, progress=True)
    assert Bar.opened is not bar and Bar.opened.closed and Bar.opened.steps == 0


@pytest.mark.parametrize("function", [gpureduce.sum, gpureduce.argminmax])
def test_without_tqdm(monkeypatch, function):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match=r"a bar by tqdm.*pip install tqdm"):
        function([1.0], progress=True)
    assert gpureduce.sum([1.0], progress=False) == 1


def test_tqdm_is_imported_when_it_is_asked_for():
    script = "import sys, gpureduce; gpureduce.sum([1.0]); print('tqdm' in sys.modules)"
    assert output(script) == "False\n"
