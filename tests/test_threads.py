"""Many callers, fork, exit, Ctrl-C: nothing hangs, and the next call works."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import sysconfig
import threading
import time

import numpy as np
import pytest
from arrays import draw, finite_bits, generator
from table import SANITIZED, bits

import gpureduce

LARGE = finite_bits(generator("threads"), np.dtype("f8"), 1_000_000)  # 8 MB: several threads join
SECONDS = 60  # beyond this a test hangs


def reductions(a):
    with np.errstate(all="ignore"):  # a thread starts with the default
        return [bits(getattr(gpureduce, name)(a)) for name in ("sum", "prod", "argmax", "min")]


@contextlib.contextmanager
def working(work, number=1):
    """Threads at work on it; at the end they are to come to theirs."""
    threads = [threading.Thread(target=work) for _ in range(number)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join(SECONDS)
        assert not any(thread.is_alive() for thread in threads)


def python(script, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(script, **environment):
    """What the script prints; it has to end by itself, with 0."""
    process = python(script, **environment)
    try:
        out, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode == 0, err
    return out


# --- many callers ---------------------------------------------------------------------------------


def test_many_python_threads_at_once():
    gpureduce.set_num_threads(3)
    want = reductions(LARGE)
    wrong, start = [], threading.Barrier(8)

    def work():
        start.wait()
        for _ in range(20):
            if reductions(LARGE) != want:
                wrong.append(1)

    with working(work, 8):
        pass
    assert not wrong


@pytest.mark.skipif(SANITIZED, reason="AddressSanitizer's frames are several times as large")
def test_a_small_stack_is_enough():
    """Of numbers beyond what quick sums hold, packed, under masks and along axes."""
    script = """
import threading
import numpy as np, gpureduce

rng = np.random.default_rng(5)
found = []
for name, low, high in ("f8", -300, 300), ("c16", -100, 200), ("c16", -100, 100), ("f4", -40, 38):
    x = 10 ** rng.uniform(low, high, 90_000) * rng.choice([-1, 1], 90_000)
    x = (x + 1j * x[::-1] if name == "c16" else x).astype(name)
    rows = x.reshape(300, 300)[:, 1:-1]
    for a in (x, x.astype(x.dtype.newbyteorder()), x[::3], x[::-2], rows):
        found += [(op, a, None) for op in ("sum", "mean", "var", "nanstd", "prod", "max")]
        found += [("var", a, a.real > 0), ("sum", a, a.real > 0)]
done = []
def work():
    with np.errstate(all="ignore"):
        for op, a, where in found:
            for axis in range(-1, a.ndim):
                options = {} if where is None else {"where": where}
                done.append(getattr(gpureduce, op)(a, axis=None if axis < 0 else axis, **options))
work()
wanted, done = done, []
threading.stack_size(512 << 10)
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert [np.asarray(x).tobytes() for x in done] == [np.asarray(x).tobytes() for x in wanted]
print(len(done))
"""
    assert int(output(script, GPUREDUCE_NUM_THREADS="1")) > 100


def test_thread_counts_may_change_under_way():
    want, stop = reductions(LARGE), threading.Event()

    def change():
        for n in (1, 2, 3, 7, 256) * 10_000:
            gpureduce.set_num_threads(n)
            if stop.is_set():
                return

    with working(change), contextlib.ExitStack() as at_end:
        at_end.callback(stop.set)
        for _ in range(40):
            assert reductions(LARGE) == want


def test_set_and_get():
    for n in (1, 2, 7):
        gpureduce.set_num_threads(n)
        assert gpureduce.get_num_threads() == n
    gpureduce.set_num_threads(0)
    assert 1 <= gpureduce.get_num_threads() <= os.cpu_count()


def test_the_environment_says_how_many():
    script = "import gpureduce; print(gpureduce.get_num_threads())"
    assert output(script, GPUREDUCE_NUM_THREADS="5").strip() == "5"
    assert 1 <= int(output(script, GPUREDUCE_NUM_THREADS="")) <= os.cpu_count()


@pytest.mark.parametrize(
    ("name", "value"),
    [("NUM_THREADS", "0"), ("NUM_THREADS", "-3"), ("NUM_THREADS", "many"), ("NUM_THREADS", "2.5"),
     ("ISA", "v9"), ("ISA", "avx2"), ("ISA", "V4")],
)  # fmt: skip
def test_nonsense_in_the_environment_is_told(name, value):
    process = python("import gpureduce", **{f"GPUREDUCE_{name}": value})
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert err.splitlines()[-1].startswith(f"ValueError: GPUREDUCE_{name}={value}: give "), err


def test_the_affinity_mask_says_how_many():
    script = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import gpureduce
print(gpureduce.get_num_threads())
"""
    assert output(script).strip() == "1"


def test_small_arrays_start_no_thread():
    script = """
import os, numpy as np, gpureduce
before = len(os.listdir("/proc/self/task"))
gpureduce.set_num_threads(4)
gpureduce.sum(np.ones(10_000))
print(len(os.listdir("/proc/self/task")) - before)
gpureduce.sum(np.ones(10_000_000))
print(len(os.listdir("/proc/self/task")) - before)
"""
    assert output(script).split() == ["0", "3"]


# --- the GIL --------------------------------------------------------------------------------------


def slow(times=20_000):
    """Scattered exponents, many times over, without memory for them: seconds to sum."""
    scattered = finite_bits(generator("slow"), np.dtype("f8"), 100_003 + times)
    return np.lib.stride_tricks.sliding_window_view(scattered, 100_003)[:times]


def level(times=200_000):
    """Their product is 1, and that of every second one."""
    return np.broadcast_to(np.tile([2.0, 2.0, 0.5, 0.5], 25_000), (times, 100_000))


def near(times=20_000):
    """Of numbers that are quick to sum along rows too: a second."""
    numbers = generator("near").standard_normal(100_003)
    return np.broadcast_to(numbers, (times, len(numbers)))


def test_other_python_threads_run_meanwhile():
    """A thread that can only be stopped by this one, while it is in a call without end."""
    script = """
import os, sys, threading
sys.path[:0] = [sys.argv[1] if len(sys.argv) > 1 else "tests"]
from test_threads import slow
import gpureduce
a = slow()
threading.Thread(target=gpureduce.sum, args=(a,), daemon=True).start()
n = 0
for _ in range(100_000):
    n += 1
print(n, flush=True)
os._exit(0)
"""
    started = time.monotonic()
    assert output(script, PYTHONPATH=os.pathsep.join(sys.path)).strip() == "100000"
    assert time.monotonic() - started < SECONDS


# --- fork -----------------------------------------------------------------------------------------


def in_fork(work):
    """Runs work() in a forked child; its exit status says whether it returned true."""
    child = os.fork()
    if child == 0:
        os._exit(0 if work() else 1)
    return ended(child)


def ended(child):
    """How it ended: its exit status, or that it hangs."""
    deadline = time.monotonic() + SECONDS
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "hangs"
        os.sched_yield()


# Python 3.12 warns of any fork in a process that has threads; that it works is the point here.
FORK = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@FORK
def test_fork_after_use():
    gpureduce.set_num_threads(4)
    want = reductions(LARGE)
    assert in_fork(lambda: reductions(LARGE) == want) == 0
    assert reductions(LARGE) == want


@FORK
def test_fork_of_a_fork():
    gpureduce.set_num_threads(4)
    want = reductions(LARGE)

    def work():
        return reductions(LARGE) == want and in_fork(lambda: reductions(LARGE) == want) == 0

    assert in_fork(work) == 0


@FORK
def test_fork_while_others_reduce():
    gpureduce.set_num_threads(4)
    want, stop, wrong = reductions(LARGE), threading.Event(), []

    def work():
        while not stop.is_set():
            if reductions(LARGE) != want:
                wrong.append(1)

    with working(work, 3), contextlib.ExitStack() as at_end:
        at_end.callback(stop.set)
        codes = [in_fork(lambda: reductions(LARGE) == want) for _ in range(15)]
    assert codes == [0] * 15
    assert not wrong


class Enough(Exception):
    pass


def fork_once(function, a, axis):
    """The result, whether there was more to do when it forked, and how the child ended."""
    forked = []
    with np.errstate(all="ignore"):  # they overflow: nobody looks for the reason meanwhile
        want = bits(function(a, axis))
    got = None

    def fork(done, total):
        if not forked:
            forked.extend([done < total, os.fork()])

    try:
        with np.errstate(all="ignore"):
            got = bits(function(a, axis, progress=fork))
    finally:
        if forked and not forked[1]:
            os._exit(0 if got == want else 1)
    under_way, child = forked
    assert got == want
    return under_way, ended(child)


UNDER_WAY = [
    ("sum", None, slow, 1000),
    ("sum", 0, slow, 1000),
    ("sum", 1, near, 4000),
    ("prod", 1, slow, 8000),
    ("prod", None, slow, 8000),
]


@FORK
@pytest.mark.parametrize(("name", "axis", "of", "times"), UNDER_WAY)
def test_fork_under_way(name, axis, of, times):
    """The child has none of the threads that took parts, and starts again alone. On a fast machine
    the first look at the progress may come when all is done: then there is to be more of it."""
    gpureduce.set_num_threads(4)
    for more in (1, 4, 16):
        under_way, code = fork_once(getattr(gpureduce, name), of(more * times), axis)
        assert code == 0
        if under_way:
            break
    assert under_way


@FORK
@pytest.mark.parametrize(("axis", "of"), [(None, slow), (1, near)])
def test_a_fork_may_end_its_call(axis, of):
    gpureduce.set_num_threads(4)
    want, children = reductions(LARGE), []

    def fork(done, total):
        children.append(os.fork())
        raise Enough

    try:
        gpureduce.sum(of(), axis, progress=fork)
    except Enough:
        if not children[0]:
            os._exit(0 if reductions(LARGE) == want else 1)
    assert ended(children[0]) == 0
    assert reductions(LARGE) == want


def pool_work(seed):
    return bits(gpureduce.sum(draw(generator("pool", seed), np.dtype("f8"), 300_000)))


@FORK
def test_multiprocessing():
    gpureduce.set_num_threads(4)
    want = [pool_work(seed) for seed in range(6)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(pool_work, range(6)).get(SECONDS) == want


# --- exit -----------------------------------------------------------------------------------------

USE = """
import numpy as np, gpureduce, threading
gpureduce.set_num_threads(4)
a = np.ones(1 << 20)
assert gpureduce.sum(a) == 1 << 20
"""


def test_exit_while_the_pool_waits():
    assert output(USE + "print('end')") == "end\n"


def test_exit_while_another_thread_reduces():
    script = (
        USE
        + """
wide = np.broadcast_to(a, (1 << 16, 1 << 20))
threading.Thread(target=gpureduce.sum, args=(wide,), daemon=True).start()
print('end', flush=True)
"""
    )
    started = time.monotonic()
    assert output(script) == "end\n"
    assert time.monotonic() - started < SECONDS / 2


def test_use_at_exit():
    script = USE + "import atexit; atexit.register(lambda: print(gpureduce.sum(a)))"
    assert output(script) == "1048576.0\n"


# --- Ctrl-C ---------------------------------------------------------------------------------------

INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
from test_threads import level, slow
import gpureduce
a = {array}
gpureduce.set_num_threads({threads})
main = threading.main_thread().ident
def interrupt():
    global sent
    sent = time.monotonic()
    signal.pthread_kill(main, signal.SIGINT)
timer = threading.Timer({after}, interrupt)
timer.start()
try:
    gpureduce.{function}(a)
except KeyboardInterrupt:
    print(time.monotonic() - sent)
else:
    print("not interrupted")
assert gpureduce.sum([1.0, 2.0]) == 3
assert gpureduce.sum(a[:1, :1]) == a[0, 0]
"""


def waited_for(function, array, threads, after=0.3):
    script = INTERRUPTED.format(function=function, array=array, threads=threads, after=after)
    return float(output(script, PYTHONPATH=os.pathsep.join(sys.path)))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("view", ["", "[:, ::-2]", ".byteswap"])
@pytest.mark.parametrize("function", ["sum", "prod"])
def test_ctrl_c(function, threads, view):
    array = "slow()" if function == "sum" else "level()"  # whose product no NaN ends
    if view == ".byteswap":
        array = f"np.broadcast_to({array}[0].byteswap().view('>f8'), {array}.shape)"
    else:
        array += view
    assert waited_for(function, array, threads) < 1


def test_ctrl_c_while_a_warning_is_explained():
    """A NaN is known at once, and none is found where it came from."""
    assert waited_for("prod", "slow(400_000)", 1, after=1.5) < 1


def test_free_threaded_python_stays_so():
    """Without a GIL calls run at once, on one array and on arrays of their own."""
    enabled = getattr(sys, "_is_gil_enabled", lambda: True)()
    assert not (enabled and sysconfig.get_config_var("Py_GIL_DISABLED")), "importing switched it on"
    mine = [np.arange(i, i + 1000.0) for i in range(16)]
    want, wrong, start = [reductions(a) for a in mine], [], threading.Barrier(16)

    numbers = iter(range(16))

    def work():
        i = next(numbers)
        start.wait()
        for turn in range(100):
            a = mine[(i + turn) % 16]
            found = [reductions(a), gpureduce.sum(a, axis=0, out=...), gpureduce.nanmean([i, 1.0])]
            if found != [want[(i + turn) % 16], a.sum(), (i + 1) / 2]:
                wrong.append(found)

    with working(work, 16):
        pass
    assert not wrong
