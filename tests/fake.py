"""A CUDA driver and an NVRTC without a device (tests/c/fake_*.c): how they are built, how a process
is told to use them, and the calls of the library that are walked with them, each in a process of
its own."""

import ctypes
import functools
import gc
import importlib
import json
import logging
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from table import SANITIZED, TOOLS

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parent / "csrc"
CC = os.environ.get("CC", "gcc")
FLAGS = ["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-fvisibility=hidden"]
FLAGS += ["-shared", "-Wl,--no-undefined"]
LIBRARIES = {"fake_cuda": "libcuda.so.1", "fake_nvrtc": "libnvrtc.so.13"}
SECONDS = 120


def build(room):
    for source, name in LIBRARIES.items():
        command = [CC, *FLAGS, f"-Wl,-soname,{name}", HERE / f"c/{source}.c", "-o", room / name]
        subprocess.run([*command, "-lpthread"], check=True, env=TOOLS)
    return room


def environment(fakes, cache, **more):
    """Of a process that finds the fakes and keeps kernels below `cache`; None removes one."""
    package = Path(sys.modules["gpureduce"].__file__).parent.parent
    found = {
        "LD_LIBRARY_PATH": str(fakes),
        "GPUREDUCE_NVRTC": str(fakes / LIBRARIES["fake_nvrtc"]),
        "XDG_CACHE_HOME": str(cache),
        "PYTHONPATH": f"{package}:{HERE}",
        "OPENBLAS_NUM_THREADS": "1",
        "FAKE_CHILD": "1",
        **more,
    }
    here = {name: value for name, value in os.environ.items() if not name.startswith("FAKE_")}
    return {name: value for name, value in (here | found).items() if value is not None}


def run(script, env, *arguments, seconds=SECONDS):
    """What the script prints; it is to end well."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, env=env, cwd=HERE / "c"
    )
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


# --- in such a process ----------------------------------------------------------------------------


class Control:
    """What a fake tells and is told."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        for name in ("call", "failed", "kind", "mistake"):
            getattr(self, name).restype = ctypes.c_char_p
        for name in ("calls", "mistakes"):
            getattr(self, name).restype = ctypes.c_long
        for name in ("call", "fail_at"):
            getattr(self, name).argtypes = [ctypes.c_long, ctypes.c_int][: 1 + (name != "call")]
        self.fail.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int]

    def __getattr__(self, name):
        return getattr(self.library, f"fake_{name}")

    def names(self):
        return [self.call(i).decode() for i in range(self.calls())]

    def alive(self):
        kinds = iter(lambda: self.kind(len(found)), None)
        found = {}
        for kind in kinds:
            found[kind.decode()] = self.live(len(found))
        return found


def cuda():
    return Control("libcuda.so.1")


def nvrtc():
    return Control(os.environ["GPUREDUCE_NVRTC"])


def without_context(driver):
    """The thread as a program finds it that has called the library alone."""
    while driver.depth():
        driver.library.cuCtxSetCurrent(None)


def in_fork(work, seconds=30):
    """What work() returns, by JSON, of a forked process; or how that died."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        try:
            answer = work()
        except BaseException as error:
            answer = {"died": f"{type(error).__name__}: {error}"}
        with os.fdopen(write, "w") as pipe:
            json.dump(answer, pipe)
        os._exit(0)
    os.close(write)
    text = b""
    with os.fdopen(read, "rb") as pipe:
        while select.select([pipe], [], [], seconds)[0]:
            part = os.read(pipe.fileno(), 1 << 16)
            text += part
            if not part:
                break
        else:
            os.kill(child, signal.SIGKILL)
            text = b'{"died": "it hung"}'
    _, status = os.waitpid(child, 0)
    return json.loads(text or json.dumps({"died": f"status {status}"}))


# --- what is walked -------------------------------------------------------------------------------

OPERATIONS = {}
# Of those that take long not every call is made to fail: one of so many.
STEPS = {
    **dict.fromkeys(("slabs", "slabs_with_means"), 11),
    **dict.fromkeys(("pageable_pieces", "pinned_pieces"), 5),
    **dict.fromkeys(("spread", "two_results", "textbook_time"), 2),
    "bandwidth": 7,
}
# How the driver is opened and a kernel compiled is the same for all.
OPENING = {"pageable", "axes_in_place", "textbook", "query", "handed_on"}
# What is imported and made once, before the processes.
MODULES = (
    *("numpy.ma", "gpureduce.custom.device_calls", "gpureduce.partial.take"),
    *("gpureduce.warp", "gpureduce.work_queue"),
)
BEFORE = {"users_operator": lambda: users_operators()}
PIECE = 8 << 20  # of the ring through which arrays of the host go


def operation(make):
    """A function that makes what a call of the library needs and returns the call."""
    OPERATIONS[make.__name__] = make
    return make


def calls(*made):
    def all_of_them():
        for one in made:
            one()

    return all_of_them


@operation
def pageable():
    a = np.ones(1000)
    return calls(
        lambda: gpureduce.sum(a, device="cuda"), lambda: gpureduce.max(a[::2], device="cuda:0")
    )


@operation
def pageable_pieces():
    a = np.zeros(5 * PIECE + 1, np.uint8)
    return lambda: gpureduce.sum(a, device="cuda")


@operation
def pinned_pieces():
    memory = device.Pinned(5 * PIECE + 8)
    a = memory.array("f8")
    a[:] = 1
    return lambda: (memory, gpureduce.sum(a, device="cuda"))[1]


@operation
def along_the_tree():
    a = np.ones((5, 2, 2))
    return calls(
        lambda: gpureduce.prod(a, device="cuda"),
        lambda: gpureduce.reduce(a, "matmul2x2", device="cuda"),
    )


@operation
def resident():
    a = device.on_device(np.ones(1000))
    return lambda: gpureduce.sum(a)


@functools.cache
def users_operators():
    """Reading them calls no device, and takes longer than all that does."""
    text = "s[0] = 0; for (int r = 0; r < 20; r++) for (int c = 0; c < 20; c++) s[0] += m[r][c]"
    many = {"inputs": "m[20][20]", "lift": text, "combine": "s[0] = a.s[0] + b.s[0]"}
    plus = gpureduce.Operator("f8", combine="a + b", identity=0.0)
    return plus, gpureduce.Operator("s: f8[1]", **many)


@operation
def users_operator():
    """Of the device's arrays, of the host's, along axes, with segments and very many numbers."""
    x, big = device.on_device(np.ones((40, 50))), device.on_device(np.ones((30, 20, 20)))
    plus, traces = users_operators()

    def call():
        plus(x), plus(x, axis=0), plus(np.ones((3, 70)), axis=1, device="cuda")
        gpureduce.segments(x, [0, 3], [9, 5], plus)
        traces(big)
        traces(big, axis=0)

    return call


@operation
def resident_strided():
    a, b = device.on_device(np.ones(1000)[::2]), device.on_device(np.ones(9, ">i4")[::2])
    return calls(lambda: gpureduce.sum(a), lambda: gpureduce.argmax(b))


@operation
def resident_of_a_stream():
    memory, stream = device.Memory(24 * 8), device.Stream()
    a = device.Interface(
        device.interface_of(np.ones((6, 4)), memory.address, stream=stream.handle), memory, stream
    )
    return calls(lambda: gpureduce.sum(a), lambda: gpureduce.sum(a, axis=1))


@operation
def converted():
    a = device.on_device(np.ones(1000, "i4"))
    return lambda: gpureduce.sum(a, dtype="f8")


@operation
def axes_of_the_host():
    a = np.ones((30, 40))
    where = a > 0
    return calls(
        lambda: gpureduce.sum(a, axis=0, device="cuda"),
        lambda: gpureduce.mean(a, axis=1, where=where, device="cuda"),
    )


@operation
def slabs():
    a = np.zeros((9 << 10, 1 << 13), np.uint8)  # 72 MiB: two slabs
    return lambda: gpureduce.max(a, axis=1, device="cuda")


@operation
def slabs_with_means():
    a, mean = np.zeros((9 << 10, 1 << 11), "f4"), np.ones((9 << 10, 1), "f4")
    return lambda: gpureduce.var(a, axis=1, mean=mean, device="cuda")


@operation
def axes_in_place():
    a = device.on_device(np.ones((30, 40)))
    return calls(lambda: gpureduce.sum(a, axis=1), lambda: gpureduce.sum(a, axis=0))


@operation
def axes_masked_there():
    a, where = device.on_device(np.ones((30, 40))), device.on_device(np.ones((30, 40), bool))
    return lambda: gpureduce.mean(a, axis=0, where=where)


@operation
def masked_by_the_host():
    a, where = np.ones((30, 40)), np.ones((30, 40), bool)
    return lambda: gpureduce.sum(a, where=where, device="cuda")


@operation
def axes_converted():
    a = device.on_device(np.ones((30, 40), "i4"))
    return lambda: gpureduce.sum(a, axis=0, dtype="f8")


@operation
def axes_narrowed():
    a = device.on_device(np.ones((30, 40), "i1"))
    return lambda: gpureduce.sum(a, axis=0, dtype="i1")


@operation
def two_results():
    host, there = np.ones((30, 40)), device.on_device(np.ones((30, 40)))
    return calls(
        lambda: gpureduce.minmax(host, axis=0, device="cuda"),
        lambda: gpureduce.minmax(there, axis=0),
    )


@operation
def spread():
    host, there = np.ones((30, 40)), device.on_device(np.ones((30, 40)))
    mean = np.ones((1, 40))
    return calls(
        lambda: gpureduce.var(host, axis=0, mean=mean, device="cuda"),
        lambda: gpureduce.std(there, axis=0),
        lambda: gpureduce.var(there),
    )


@operation
def skipping():
    host = np.ones((30, 40))
    return lambda: gpureduce.nanargmax(host, axis=0, device="cuda")


@operation
def segments_of_the_host():
    a = np.ones(1000)
    return lambda: gpureduce.segments(a, [0, 500], [400, 1000], "add", device="cuda")


@operation
def long_segments_there():
    a = device.on_device(np.zeros(1 << 19))  # 4 MiB: in pieces
    return calls(
        lambda: gpureduce.segments(a, [0, 5], [1 << 19, 9], "add"),
        lambda: gpureduce.reduceat(a, [0, 5], "maximum"),
    )


@operation
def partials_of_what_is_there():
    a, where = device.on_device(np.ones((30, 40))), device.on_device(np.ones((30, 40), bool))
    return lambda: gpureduce.partials(a, "sum", axis=0, where=where)


@operation
def outs():
    host, there = np.ones((30, 40)), device.on_device(np.ones((30, 40)))
    out, out_there = np.zeros(40), device.on_device(np.zeros(40))
    return calls(
        lambda: gpureduce.sum(host, axis=0, out=out, device="cuda"),
        lambda: gpureduce.sum(there, axis=0, out=out_there),
    )


@operation
def of_a_library():
    pool = stand_ins.Pool(1 << 20)
    torch = stand_ins.torch_of(pool)
    a = torch.empty((30, 40), dtype=torch.float32, device="cuda:0")
    out = torch.empty((40,), dtype=torch.float32, device="cuda:0")

    def reduce():
        pool.used = 1 << 18
        gpureduce.sum(a, axis=1)
        gpureduce.sum(a, axis=0, out=out)

    return reduce


@operation
def handed_on():
    """A result on a device, as what another call takes."""
    memory, stream = device.Memory(24 * 8), device.Stream()
    a = device.Interface(
        device.interface_of(np.ones((6, 4)), memory.address, stream=stream.handle), memory, stream
    )
    return lambda: gpureduce.max(gpureduce.max(a, axis=1))


@operation
def textbook():
    a = np.ones(1000, "i4")
    there = device.on_device(a[::2])
    return calls(
        lambda: gpureduce.sum(a, kernel="two_pass"),
        lambda: gpureduce.sum(a[::3], kernel="neighbored"),
        lambda: gpureduce.sum(there, kernel="gmem"),
    )


@operation
def warp():
    a = np.ones(100, "i4")
    return lambda: gpureduce.warp.shift_up(a, 2)


@operation
def work_queue():
    a = np.ones(100, "i4")
    return lambda: gpureduce.work_queue.segment_sums(a, [0, 50])


@operation
def bandwidth():
    return lambda: gpureduce._core.bandwidth(0, 1 << 12)


@operation
def query():
    return gpureduce.devices


@operation
def textbook_time():
    a = np.ones(1000, "i4")
    there = device.on_device(a)
    return calls(
        lambda: gpureduce._core.kernel_time("two_pass", "sum", a, "cuda", 2),
        lambda: gpureduce._core.kernel_time("default", "sum", there, "cuda", 2),
    )


@operation
def time_along_axes():
    a = device.on_device(np.ones((30, 40)))
    return lambda: gpureduce._core.axes_time("sum", a, 1, None, None, 2)


# --- one failure at a time ------------------------------------------------------------------------


def attempt(call):
    try:
        result = call()
    except Exception as error:
        return {"raised": type(error).__name__, "text": str(error)}
    del result
    return {"raised": None, "text": ""}


def told(driver, compiler):
    return {
        "alive": driver.alive() | compiler.alive(),
        "mistakes": driver.mistakes() + compiler.mistakes(),
        "mistake": (driver.mistake() or compiler.mistake()).decode(),
        "depth": driver.depth(),
    }


def failing_once(make, which=None, n=0, result=0):
    """A cold call whose n-th call of the driver or of the compiler fails, and the same again."""
    driver, compiler = cuda(), nvrtc()
    call = make()
    without_context(driver)
    driver.reset()
    compiler.reset()
    fakes = {"cuda": driver, "nvrtc": compiler}
    if which:
        fakes[which].fail_at(n, result)
    first = attempt(call)
    failed = fakes[which].failed() if which else None
    names = {name: fake.names() for name, fake in fakes.items()}
    for fake in fakes.values():
        fake.fail_at(0, 0)
    first |= told(driver, compiler) | {"failed": failed.decode() if failed else None}
    again = attempt(call)
    return {"first": first, "names": names, "again": again | told(driver, compiler)}


def walk_each(*names):
    """By a fork for each: what they import is imported once."""
    for module in MODULES:
        importlib.import_module(module)
    for name in names:
        died = in_fork(lambda name=name: walk(name), seconds=300)
        assert died is None, (name, died)


def walk(name):
    """Prints a line of JSON of each process; the first one's is without a failure."""
    make, step = OPERATIONS[name], STEPS.get(name, 1) * (5 if SANITIZED else 1)
    clear = Path(os.environ["XDG_CACHE_HOME"]) / "gpureduce"

    def one(which=None, n=0, result=0):
        for file in clear.glob("*"):
            file.unlink()
        answer = in_fork(lambda: failing_once(make, which, n, result))
        names = answer.pop("names", None)
        asked = {"operation": name, "which": which, "n": n, "result": result}
        print(json.dumps(answer | asked), flush=True)
        return names

    BEFORE.get(name, gc.collect)()
    gc.freeze()  # or each process looks at all that there is, to end
    names = one()
    shared = names["cuda"].index("cuCtxPushCurrent_v2") if name not in OPENING else 0
    steps = {"cuda": step, "nvrtc": 1 if name in OPENING else 7}
    for which, result in (("cuda", 999), ("nvrtc", 11)):
        for n in range(1 + shared * (which == "cuda"), len(names[which]) + 1, steps[which]):
            one(which, n, result)
            if "Alloc" in names[which][n - 1]:
                one(which, n, 2)


# --- what scripts share ---------------------------------------------------------------------------


def heard():
    """A list that gets what the library's logger is told from now on."""
    records = []
    logger = logging.getLogger("gpureduce")
    handler = logging.Handler()
    handler.emit = lambda record: records.append([record.levelname, record.getMessage()])
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    return records


def two_kernels():
    """Launches of two programs."""
    a = np.ones(1000)
    gpureduce.sum(a, device="cuda")
    gpureduce.max(a, device="cuda")


def loads_nvrtc():
    with open("/proc/self/maps") as maps:
        return "libnvrtc" in maps.read()


if "FAKE_CHILD" in os.environ:
    import device
    import numpy as np
    import stand_ins

    import gpureduce
    import gpureduce.compiler  # as the first kernel does
    import gpureduce.libraries
    import gpureduce.pack

    # A release's kernels are for devices that are there.
    gpureduce.pack.FOLDER = Path(os.environ.get("FAKE_PACKS", "/nonexistent"))
