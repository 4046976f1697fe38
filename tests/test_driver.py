"""What calls CUDA, with a driver and a compiler that fail when they are told to: see tests/fake.py.

No kernel runs here, and no test looks at a value. In each process of its own."""

import json
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fake
import pytest
from table import SANITIZED

import gpureduce.pack

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def env(fakes, tmp_path):
    return fake.environment(fakes, tmp_path / "cache")


def told(script, env, **more):
    """What the script prints at its end, by JSON."""
    return json.loads(fake.run(script, env | more).splitlines()[-1])


def test_the_fakes_have_every_function(fakes):
    """The driver's are a list that its own source is linked by."""
    text = (ROOT / "csrc/cuda/nvrtc.c").read_text()
    listed = text[text.index("#define GPR_NVRTC(X)") : text.index("typedef struct nvrtc {")]
    names = re.findall(r"X\((?:nvrtcResult|const char \*), (\w+),", listed)
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", fakes / "libnvrtc.so.13"], capture_output=True, text=True
    ).stdout
    assert len(names) > 10
    for name in names:
        assert f" nvrtc{name}\n" in symbols, name


# --- every call fails once ------------------------------------------------------------------------

# What fails at the end of a call does not undo it: what could not be given back stays.
GIVE_BACK = {
    "cuMemFree_v2": "device memory",
    "cuMemFreeAsync": "pool memory",
    "cuMemFreeHost": "host memory",
    "cuStreamDestroy_v2": "streams",
    "cuEventDestroy_v2": "events",
    "nvrtcDestroyProgram": "programs",
    "cuModuleUnload": "modules",
}
# Without a context nothing can be given back.
ENTER = {"cuCtxGetCurrent", "cuCtxPushCurrent_v2"}
# Fine without: a thread's context is then the library's; pinned memory is taken for another's; no
# graph is captured; it is asked again; what is on the device is done, or waited for otherwise.
HARMLESS = {
    *("cuCtxPopCurrent_v2", "cuPointerGetAttributes", "cuEventQuery"),
    *("cuStreamSynchronize", "cuStreamWaitEvent"),
    *("cuStreamIsCapturing", "cuThreadExchangeStreamCaptureMode"),
}
# The device query gives 0 for an attribute that is not told, and is empty without a driver; how
# large the L2 cache is and how many threads a multiprocessor holds makes kernels slower alone.
QUERIED = {"cuDeviceGet", "cuDeviceGetAttribute"}
OPENING = {"cuDriverGetVersion", "cuInit", "cuDeviceGetCount"}
# An address that the driver does not answer for is no device's, and arrays say so (ValueError).
ASKED = {*OPENING, "cuPointerGetAttributes"}
# Named by what they are for.
WORDS = {
    "cuLaunchKernel": "launch of|a transfer|two_pass|neighbored|gmem|default",
    "cuGraphLaunch": "the launch of a reduction",
    "cuStreamSynchronize": "cuMemAllocFromPoolAsync|a reduction|two_pass|neighbored|gmem",
    "cuEventSynchronize": "a transfer|a reduction|sums of segments|two_pass|default",
    "cuEventQuery": "a reduction",
    "cuStreamQuery": "a reduction",
    "cuMemcpyAsync": "a transfer",
    "cuMemcpyDtoH_v2": "a shuffle",
    "cuGraphInstantiateWithFlags": "cuGraphInstantiate",
    **dict.fromkeys(
        ("nvrtcVersion", "nvrtcGetNumSupportedArchs", "nvrtcGetSupportedArchs"),
        "GPUREDUCE_NVRTC=.* is no NVRTC that can be used.*pip install",
    ),
}


@pytest.fixture(scope="module")
def walks(fakes, tmp_path_factory, request):
    """What fake.walk_each() prints of an operation that is asked for; two processes have half of
    them each."""

    def walk(names):
        env = fake.environment(fakes, tmp_path_factory.mktemp("cache"))
        out = fake.run("import fake, sys; fake.walk_each(*sys.argv[1:])", env, *names, seconds=600)
        found = {name: [] for name in names}
        for line in map(json.loads, out.splitlines()):
            found[line["operation"]].append(line)
        return found

    names = [item.callspec.params.get("name") for item in request.session.items if is_walk(item)]
    with ThreadPoolExecutor(2) as pool:
        halves = [pool.submit(walk, names[half::2]) for half in (0, 1)]
        yield lambda name: halves[names.index(name) % 2].result()[name]


def is_walk(item):
    return getattr(item, "originalname", "") == test_every_call_fails_once.__name__


def check_first(name, first, result):
    """That the failure is told by what was raised, or that it was one that does no harm."""
    failed, raised, text = first["failed"], first["raised"], first["text"]
    if raised is None:
        silent = HARMLESS | set(GIVE_BACK) | ENTER | QUERIED
        assert failed in silent | (OPENING if name == "query" else set()), failed
        return
    if raised == "ValueError":
        assert failed in ASKED and "not one of a CUDA device's memory" in text
    elif raised == "BufferError":
        assert name == "handed_on", "an array whose own protocol may not raise anything else"
    else:
        assert raised == ("MemoryError" if result == 2 else "DeviceError"), raised
    if raised != "ValueError":
        called = re.escape(failed.removesuffix("_v2"))
        assert re.search(f"{called}|{WORDS.get(failed, called)}", text, re.S)
        why = {2: "out of memory", 999: "unknown error", 11: "NVRTC_ERROR_INTERNAL_ERROR"}[result]
        told_otherwise = {"cuDriverGetVersion": "error 999", **WORDS}
        assert why in text or (
            failed in told_otherwise and re.search(told_otherwise[failed], text, re.S)
        )


def check_again(first, again, usual):
    """That the same works and nothing has stayed, but what could not be given back."""
    failed = first["failed"]
    if failed == "cuDriverGetVersion" and first["raised"]:
        return  # asked once
    assert again["raised"] is None, again["text"]
    assert again["mistakes"] == 0, again["mistake"]
    for kind, count in again["alive"].items():
        more = count - usual["alive"][kind]
        allowed = GIVE_BACK.get(failed) == kind or (failed in ENTER and not first["raised"])
        assert more == 0 or (allowed and more > 0), f"{more} {kind}"
    assert again["depth"] == (failed == "cuCtxPopCurrent_v2")


@pytest.mark.parametrize("name", fake.OPERATIONS)
def test_every_call_fails_once(walks, name):
    usual, *others = walks(name)
    assert usual["first"]["raised"] is None and usual["again"]["raised"] is None, usual
    assert usual["again"]["mistakes"] == 0, usual["again"]["mistake"]
    assert len(others) > 10 or SANITIZED
    unreached = 0
    for other in others:
        what = {key: other[key] for key in ("which", "n", "result")}
        assert "died" not in other, other
        unreached += other["first"]["failed"] is None
        try:
            if other["first"]["failed"]:
                check_first(name, other["first"], other["result"])
            check_again(other["first"], other["again"], usual["again"])
        except AssertionError as error:
            raise AssertionError(f"{what}: {other}") from error
    assert unreached <= 2 + len(others) // 10, "queries are as many as there is time"


# --- what else a device does ----------------------------------------------------------------------

SPECIAL = """
import json, fake
from fake import device, gpureduce, np
driver, compiler = fake.cuda(), fake.nvrtc()
a, there = np.ones(1000), np.ones((30, 40))
"""


def test_answers_that_come_late(env):
    script = """
gpureduce.sum(a, device="cuda")
for array, axis in ((a, None), (there, 0)):
    call = lambda: gpureduce.sum(array, axis, device="cuda")
    call()
    driver.reset()
    driver.late(7)
    call()
    names = driver.names()
    print(names.count("cuStreamQuery") + names.count("cuEventQuery"), driver.mistakes())
"""
    lines = fake.run(SPECIAL + script, env).splitlines()
    assert len(lines) == 2
    for line in lines:
        queries, mistakes = map(int, line.split())
        assert queries >= 7 and mistakes == 0


def test_a_kernel_that_ends_without_an_answer(env):
    script = """
gpureduce.sum(a, device="cuda")
before = driver.alive()
driver.silent(1)
said = fake.attempt(lambda: gpureduce.sum(a, device="cuda"))
again = fake.attempt(lambda: gpureduce.sum(a, device="cuda"))
print(json.dumps([said, again, driver.alive() == before, driver.mistakes()]))
"""
    said, again, same, mistakes = told(SPECIAL + script, env)
    assert said["raised"] == "DeviceError" and "ended without an answer" in said["text"]
    assert again["raised"] is None and same and mistakes == 0


def test_a_small_array_that_wants_the_other_kernel(env):
    """It is launched again at once, and those that follow are not tried as small ones."""
    script = """
launches = []
for miss in (0, 1, 0):
    driver.reset()
    driver.miss(miss)
    gpureduce.sum(a, device="cuda")
    launches.append(sum(name in ("cuLaunchKernel", "cuGraphLaunch") for name in driver.names()))
print(json.dumps([launches, driver.alive()["modules"], driver.mistakes()]))
"""
    assert told(SPECIAL + script, env) == [[1, 2, 1], 2, 0]


def test_a_context_that_has_died_says_so(env):
    script = """
driver.fail(b"cuStreamQuery", 0, 719)
driver.silent(1)
print(json.dumps(fake.attempt(lambda: gpureduce.sum(a, device="cuda"))))
driver.reset()
driver.fail(b"cuStreamSynchronize", 0, 719)
print(json.dumps(fake.attempt(lambda: gpureduce.sum(a, kernel="two_pass"))))
"""
    lines = fake.run(SPECIAL + script, env).splitlines()
    assert len(lines) == 2
    for line in lines:
        said = json.loads(line)
        assert said["raised"] == "DeviceError"
        assert "CUDA cannot be used again in this process" in said["text"]


def test_every_device_has_its_own(env):
    script = """
for number in (0, 1, 0, 1):
    gpureduce.sum(a, device=f"cuda:{number}")
    gpureduce.max(there, axis=0, device=f"cuda:{number}")
    gpureduce.sum(a, kernel="two_pass", device=f"cuda:{number}")
    gpureduce._core.bandwidth(number, 4096)
print(json.dumps([
    len(gpureduce.devices()), driver.alive(), driver.mistakes(), driver.mistake().decode(),
    fake.attempt(lambda: gpureduce.sum(a, device="cuda:2")),
    compiler.compiled(),
]))
"""
    count, alive, mistakes, mistake, beyond, compiled = told(
        SPECIAL + script, env, FAKE_CUDA_DEVICES="2"
    )
    assert (count, mistakes) == (2, 0), mistake
    assert beyond["raised"] == "DeviceError" and "there are 2" in beyond["text"]
    assert alive["pools"] == 2 and alive["pool memory"] == 0
    assert alive["modules"] == 2 * compiled, "each program is compiled once and loaded twice"


def test_a_result_of_bfloat16_asks_for_the_package_that_brings_it(env):
    script = """
import json, sys
sys.modules["ml_dtypes"] = None
import fake, gpureduce
from gpureduce import _core
given = _core.device_memory(0, 0, "bfloat16", 8)
print(json.dumps(fake.attempt(lambda: gpureduce.sum(given))))
"""
    said = told(script, env)
    assert said["raised"] == "ModuleNotFoundError" and "pip install ml_dtypes" in said["text"]


def test_brief_outputs_are_counted_in_32_bits(env):
    """Nothing chooses them for long ones, but their name does."""
    script = """
given = device.on_device(np.ones((2, 4)))
about = given.__cuda_array_interface__

def told_of(n):
    given.__cuda_array_interface__ = about | {"shape": (2, n), "strides": (8, 0)}
    return fake.attempt(lambda: gpureduce.reduce(given, "sum", axis=1, kernel="brief"))

print(json.dumps([told_of(n) for n in (100, (1 << 30) - 1, 1 << 30, 1 << 31, (1 << 32) + 3)]))
"""
    taken, largest, *refused = told(SPECIAL + script, env)
    assert taken["raised"] is None and largest["raised"] is None, (taken, largest)
    for said in refused:
        assert said["raised"] == "ValueError" and "below 2^30" in said["text"]


def test_a_thread_keeps_its_own_context(env):
    """The library's is there only while it works."""
    script = """
gpureduce.sum(a, device="cuda")
depths = [driver.depth()]
for number in (1, 0):
    context, handle = fake.ctypes.c_void_p(), fake.ctypes.c_int(number)
    driver.library.cuDevicePrimaryCtxRetain(fake.ctypes.byref(context), handle)
    driver.library.cuCtxSetCurrent(context)
    gpureduce.sum(a, device="cuda:0")
    found = fake.ctypes.c_void_p()
    driver.library.cuCtxGetCurrent(fake.ctypes.byref(found))
    depths.append([driver.depth(), found.value == context.value])
print(json.dumps([depths, driver.mistakes()]))
"""
    depths, mistakes = told(SPECIAL + script, env, FAKE_CUDA_DEVICES="2")
    assert depths == [0, [1, True], [1, True]] and mistakes == 0


# --- kernels that are kept ------------------------------------------------------------------------

USE = """
import json, os, resource, fake
if "LIMIT" in os.environ:
    limit = int(os.environ["LIMIT"])
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
heard = fake.heard()
fake.two_kernels()
compiler = fake.nvrtc() if fake.loads_nvrtc() else None
print(json.dumps({
    "compiled": compiler.compiled() if compiler else 0,
    "loads": compiler is not None,
    "warnings": [text for level, text in heard if level == "WARNING"],
    "infos": [text for level, text in heard if level == "INFO"],
    "mistakes": fake.cuda().mistakes(),
}))
"""


def use(env, **more):
    answer = told(USE, env, **more)
    assert answer["mistakes"] == 0
    return answer


def check(answer, compiled, warnings=0):
    assert answer["compiled"] == compiled
    assert len(answer["warnings"]) == warnings, answer["warnings"]


@pytest.fixture
def kept(env, tmp_path):
    """The folder, with two kernels."""
    check(use(env), 2)
    folder = tmp_path / "cache/gpureduce"
    assert len(list(folder.iterdir())) == 2
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    return folder


NOWHERE = "/nonexistent/libnvrtc.so"


def test_what_is_kept_is_used_without_a_compiler(env, kept):
    assert use(env) == use(env, GPUREDUCE_NVRTC=NOWHERE)
    answer = use(env, GPUREDUCE_NVRTC=NOWHERE)
    check(answer, 0)
    assert not answer["loads"]


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-1])


def cut_in_the_head(path):
    path.write_bytes(path.read_bytes()[:20])


def lengthened(path):
    path.write_bytes(path.read_bytes() + b"\0")


def flipped(path):
    was = bytearray(path.read_bytes())
    was[-5] ^= 4
    path.write_bytes(was)


def emptied(path):
    path.write_bytes(b"")


def linked(path):
    """Nobody's file is written through a link."""
    other = path.parent.parent / f"other-{path.name}"
    path.rename(other)
    path.symlink_to(other)


def open_to_others(path):
    path.chmod(0o662)


def of_another(path):
    if os.geteuid():
        pytest.skip("only root gives files away")
    os.chown(path, 12345, -1)


def half_written(path):
    """As a process leaves it that was killed."""
    path.with_suffix(".7.7.part").write_bytes(path.read_bytes()[:40])
    path.unlink()


DAMAGES = (
    *(cut_short, cut_in_the_head, lengthened, flipped, emptied, linked, open_to_others),
    *(of_another, half_written),
)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda d: d.__name__)
def test_what_is_not_whole_or_not_ours_is_compiled_again(env, kept, damage):
    one, other = sorted(kept.glob("*.kernel"))
    before = one.read_bytes()
    damage(one)
    there = kept.parent / f"other-{one.name}"
    check(use(env), 1)
    assert one.read_bytes() == before and one.is_file() and not one.is_symlink()
    assert one.stat().st_uid == os.geteuid()
    assert not there.exists() or there.read_bytes() == before
    check(use(env), 0)
    assert other.exists()


def test_a_folder_in_a_kernels_place(env, kept):
    one, _ = sorted(kept.glob("*.kernel"))
    one.unlink()
    one.mkdir()
    for _ in range(2):
        answer = use(env)
        check(answer, 1, warnings=1)
        assert "cannot be kept" in answer["warnings"][0] and str(kept) in answer["warnings"][0]
    assert not list(kept.glob("*.part"))


def test_no_bit_can_change(env, tmp_path):
    """Each bit of a kept file, and each length."""
    script = """
from fake import gpureduce
from pathlib import Path
key, image, was_there = gpureduce._core.program_image(0, "sm_90")
assert not was_there
(path,) = Path(gpureduce._core.cache_folder()).glob("*.kernel")
whole, damaged = path.read_bytes(), 0
unused = range(40, 48)
for i in range(len(whole)):
    if i in unused:
        continue
    for change in (whole[:i], whole[:i] + bytes([whole[i] ^ 1 << i % 8]) + whole[i + 1:]):
        path.write_bytes(change)
        assert gpureduce._core.program_image(0, "sm_90") == (key, image, False), i
        damaged += 1
    assert gpureduce._core.program_image(0, "sm_90") == (key, image, True)
print(damaged)
"""
    assert int(fake.run("import fake" + script, env)) > 150


def group_writable(folder):
    folder.chmod(0o770)


def anothers(folder):
    if os.geteuid():
        pytest.skip("only root gives folders away")
    os.chown(folder, 12345, -1)


def a_file(folder):
    shutil.rmtree(folder)
    folder.write_text("")


def below_a_file(folder):
    shutil.rmtree(folder.parent)
    folder.parent.write_text("")


def read_only(folder):
    if not os.geteuid():
        pytest.skip("root may write anywhere")
    shutil.rmtree(folder)
    folder.mkdir(0o500)


FOLDERS = (group_writable, anothers, a_file, below_a_file, read_only)


@pytest.mark.parametrize("damage", FOLDERS, ids=lambda d: d.__name__)
def test_where_nothing_can_be_kept(env, kept, damage):
    damage(kept)
    for _ in range(2):
        answer = use(env)
        check(answer, 2, warnings=1)
        assert "cannot be kept" in answer["warnings"][0]
        assert str(kept.parent) in answer["warnings"][0]


def test_without_a_home(env):
    answer = use(env, XDG_CACHE_HOME="", HOME="")
    check(answer, 2, warnings=1)
    assert "HOME" in answer["warnings"][0]
    # A path that is not absolute is to be ignored.
    check(use(env, XDG_CACHE_HOME="relative", HOME=""), 2, warnings=1)


def test_below_home(env, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    check(use(env, XDG_CACHE_HOME="", HOME=str(home)), 2)
    assert len(list((home / ".cache/gpureduce").iterdir())) == 2


def test_a_full_disk(env, tmp_path):
    answer = use(env, LIMIT="50")
    check(answer, 2, warnings=1)
    assert "File too large" in answer["warnings"][0]
    assert not list((tmp_path / "cache/gpureduce").iterdir()), "nothing is left half"
    check(use(env), 2)


RACE = """
import json, sys, threading, time, fake
from pathlib import Path
from fake import gpureduce, np
ready, go = Path(sys.argv[1]), Path(sys.argv[2])
a, errors = np.ones(1000), []

def work():
    barrier.wait()
    for dtype in ("f4", "f8", "i4"):
        for function in (gpureduce.sum, gpureduce.max):
            try:
                function(a.astype(dtype), device="cuda")
            except Exception as error:
                errors.append(repr(error))

barrier = threading.Barrier(4)
threads = [threading.Thread(target=work) for _ in range(4)]
ready.touch()
while not go.exists():
    time.sleep(0.002)
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
driver = fake.cuda()
print(json.dumps([errors, driver.mistakes(), driver.mistake().decode(), driver.alive()["modules"]]))
"""


def test_many_at_once(env, tmp_path):
    """8 processes of 4 threads, and an empty cache: each compiles a kernel once at most."""
    log, go = tmp_path / "log", tmp_path / "go"
    env |= {"FAKE_NVRTC_LOG": str(log), "FAKE_NVRTC_SECONDS": "0.05"}
    paths = [tmp_path / f"ready{i}" for i in range(8)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, path, go],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        for path in paths
    ]
    end = time.monotonic() + 60
    while not all(path.exists() for path in paths) and time.monotonic() < end:
        time.sleep(0.01)
    go.touch()
    for process in processes:
        out, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        errors, mistakes, mistake, modules = json.loads(out)
        assert not errors and mistakes == 0, (errors, mistake)
        assert modules == 6
        assert not said
    compiled = [line.split() for line in log.read_text().splitlines()]
    assert len({tuple(line[1:]) for line in compiled}) == 6
    assert len({tuple(line) for line in compiled}) == len(compiled), "no process compiles twice"
    kept = sorted((tmp_path / "cache/gpureduce").iterdir())
    assert len(kept) == 6 and {path.suffix for path in kept} == {".kernel"}


def test_what_was_compiled_is_not_kept_in_memory(env):
    """Of kernels whose callers were interrupted, and which the next call finds in the cache."""
    script = """
import os, signal, threading, time, fake
from fake import gpureduce, np
signal.signal(signal.SIGINT, signal.default_int_handler)

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def use(dtype):
    # Whether it was interrupted: on a busy machine the signal may come too late.
    timer, under_way = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)), True
    try:
        timer.start()
        gpureduce.max(np.ones(9, dtype), device="cuda")
        under_way = False
        timer.join()
        time.sleep(1)
    except KeyboardInterrupt:
        pass
    while len(list(os.scandir(gpureduce._core.cache_folder()))) < fake.nvrtc().compiled():
        time.sleep(0.01)
    time.sleep(0.15)
    gpureduce.max(np.ones(9, dtype), device="cuda")
    return under_way

gpureduce.sum(np.ones(9), device="cuda")
before = resident()
interrupted = [use(dtype) for dtype in ("i1", "i2", "i4", "i8", "u1", "u2")]
print(fake.nvrtc().compiled(), sum(interrupted), (resident() - before) >> 20)
"""
    more = {"FAKE_NVRTC_SECONDS": "0.15", "FAKE_NVRTC_BYTES": str(8 << 20)}
    more["MALLOC_MMAP_THRESHOLD_"] = str(1 << 20)  # what is freed goes back to the system
    compiled, interrupted, mebibytes = map(int, fake.run(script, env | more).split())
    assert compiled == 7 and interrupted >= 2
    assert SANITIZED or mebibytes < 24, f"{mebibytes} MiB after 6 images of 8 MiB"


REFUSED = """
import json, os, fake
driver, heard = fake.cuda(), fake.heard()
codes = json.loads(os.environ["CODES"])
driver.fail(b"cuModuleLoadData", codes[1], codes[0])
said = fake.attempt(lambda: fake.gpureduce.max(fake.np.ones(9), device="cuda"))
driver.reset()
again = fake.attempt(lambda: fake.gpureduce.max(fake.np.ones(9), device="cuda"))
print(json.dumps([said, again, fake.nvrtc().compiled(), heard]))
"""


@pytest.mark.parametrize("code", [200, 209, 222, 300])
def test_a_kept_kernel_that_the_driver_refuses(env, kept, code):
    """It is compiled again, and only if that one is refused too the driver's word is told."""
    said, again, compiled, heard = told(REFUSED, env, CODES=json.dumps([code, 1]))
    assert said["raised"] is None and again["raised"] is None and (compiled, heard) == (1, [])
    said, again, compiled, heard = told(REFUSED, env, CODES=json.dumps([code, 0]))
    assert said["raised"] == "DeviceError" and "cuModuleLoadData" in said["text"]
    assert again["raised"] is None and compiled == 1


def test_another_failure_is_no_refusal(env, kept):
    said, again, compiled, _ = told(REFUSED, env, CODES="[719, 1]")
    assert said["raised"] == "DeviceError" and "cuModuleLoadData" in said["text"]
    assert again["raised"] is None and compiled == 0


def test_a_kernel_of_another_device_is_not_taken(env, kept):
    """Its name in the cache is another."""
    check(use(env, FAKE_CUDA_CAPABILITY="8.6"), 2)
    assert len(list(kept.iterdir())) == 4


# --- packs ----------------------------------------------------------------------------------------

PACK = """
import os, fake
from pathlib import Path
from fake import gpureduce
arch = os.environ["ARCH"]
wanted = [
    number
    for number, (kernel, fold, header) in enumerate(gpureduce._core.programs())
    if header == "gpu/flat_kernels.cuh" and "double" in fold
]
made = [gpureduce._core.program_image(number, arch)[:2] for number in wanted]
gpureduce.pack.write(Path(os.environ["FAKE_PACKS"]) / f"{arch}.pack", [made])
print(len(made))
"""


@pytest.fixture
def packs(env, tmp_path):
    """The variables of a process that has a pack and nothing else."""

    def make(arch):
        room = {"FAKE_PACKS": str(tmp_path / "packs"), "ARCH": arch}
        maker = env | room | {"XDG_CACHE_HOME": str(tmp_path / "makers")}
        assert int(fake.run(PACK, maker)) > 2
        return room | {"GPUREDUCE_NVRTC": NOWHERE}

    return make


@pytest.mark.parametrize("capability", ["9.0", "8.0", "8.6", "8.9"])
def test_a_pack_needs_no_compiler(env, packs, tmp_path, capability):
    """Nor one of the device's own minor version."""
    more = packs("sm_90" if capability == "9.0" else "sm_80")
    answer = use(env, **more, FAKE_CUDA_CAPABILITY=capability)
    check(answer, 0)
    assert not answer["loads"]
    assert not (tmp_path / "cache/gpureduce").exists()


def test_a_pack_of_a_newer_minor_version_is_none(env, packs):
    more = packs("sm_89") | {"GPUREDUCE_NVRTC": env["GPUREDUCE_NVRTC"]}
    check(use(env, **more, FAKE_CUDA_CAPABILITY="8.6"), 2)


@pytest.mark.parametrize("keep", [5, 0.5])
def test_a_pack_cut_short_is_none(env, packs, keep):
    more = packs("sm_90") | {"GPUREDUCE_NVRTC": env["GPUREDUCE_NVRTC"]}
    path = Path(more["FAKE_PACKS"]) / "sm_90.pack"
    whole = path.read_bytes()
    index = len(gpureduce.pack.Pack(path).kernels) * 28
    path.write_bytes(whole[: keep if keep > 1 else len(whole) - (len(whole) - index) // 3])
    check(use(env, **more), 2)


@pytest.mark.skipif(SANITIZED, reason="none of it is C of ours")
def test_a_pack_cut_anywhere_gives_all_of_a_kernel_or_none(tmp_path):
    path = tmp_path / "sm_90.pack"
    images = {f"{i:032x}": bytes([i]) * 40 for i in range(1, 9)}
    gpureduce.pack.write(path, [images.items()])
    whole = path.read_bytes()
    found = []
    for keep in range(len(whole) + 1):
        path.write_bytes(whole[:keep])
        for key, image in images.items():
            try:
                got = gpureduce.pack.Pack(path).find(key)
            except (ValueError, OSError, EOFError, struct.error, lzma.LZMAError):
                got = None
            assert got in (None, image), f"{keep} of {len(whole)} bytes"
            found.append(got is not None)
    assert not any(found[: 8 * 17]) and all(found[-8:])


def test_a_packed_kernel_that_the_driver_refuses(env, packs):
    more = packs("sm_90") | {"GPUREDUCE_NVRTC": env["GPUREDUCE_NVRTC"]}
    said, again, compiled, _ = told(REFUSED, env, **more, CODES="[209, 1]")
    assert said["raised"] is None and again["raised"] is None and compiled == 1


# --- what is said ---------------------------------------------------------------------------------

SAID = """
import json, fake
from fake import gpureduce, np
a = np.ones(1000)
said = fake.attempt(lambda: gpureduce.sum(a, device="cuda"))
print(json.dumps([said, float(gpureduce.sum(a)), gpureduce.devices() == []]))
"""


def said(env, none=True, **more):
    error, on_the_cpu, nothing = told(SAID, env, **more)
    assert error["raised"] == "DeviceError", error
    assert on_the_cpu == 1000 and nothing == none
    return error["text"]


def test_without_a_driver(env):
    alone = {"LD_LIBRARY_PATH": ""}
    script = "import ctypes\ntry: ctypes.CDLL('libcuda.so.1')\nexcept OSError: print('none')"
    if not fake.run(script, env | alone):
        pytest.skip("there is a driver")
    text = said(env, **alone)
    assert "libcuda.so.1 was not found" in text and "install one" in text
    assert 'device="cpu"' in text


def test_a_driver_that_is_too_old(env):
    text = said(env, FAKE_CUDA_VERSION="11080")
    assert "is for CUDA 11.8" in text and "CUDA 12.0 or later" in text
    assert "Linux driver 525" in text and "update the driver" in text


def test_without_devices(env):
    text = said(env, FAKE_CUDA_DEVICES="0")
    assert "the driver sees none" in text and "nvidia-smi" in text
    assert "CUDA_VISIBLE_DEVICES" in text and 'device="cpu"' in text


@pytest.mark.parametrize(("version", "extra"), [("13000", "cuda13"), ("12040", "cuda12")])
def test_without_a_compiler(env, version, extra):
    text = said(env, none=False, FAKE_CUDA_VERSION=version, GPUREDUCE_NVRTC=NOWHERE)
    assert "a kernel has to be compiled" in text and f"pip install 'gpureduce[{extra}]'" in text
    assert NOWHERE in text, "it is told what was looked at"


def test_a_compiler_that_is_too_new(env):
    text = said(env, none=False, FAKE_CUDA_VERSION="12040", FAKE_NVRTC_VERSION="13000")
    assert "NVRTC 13.0" in text and "CUDA 12.4 at most" in text
    assert "update the driver, or pip install 'gpureduce[cuda12]'" in text


def test_a_compiler_that_is_too_old(env):
    text = said(env, none=False, FAKE_NVRTC_VERSION="11080")
    assert "no NVRTC that can be used" in text and "pip install 'gpureduce[cuda13]'" in text


def test_an_architecture_that_the_compiler_does_not_know(env):
    text = said(env, none=False, FAKE_CUDA_CAPABILITY="12.1", FAKE_NVRTC_ARCHS="75,90")
    assert "NVRTC 13.0" in text and "architecture 121" in text
    assert "pip install --upgrade 'gpureduce[cuda13]'" in text


def test_what_the_compiler_says(env):
    script = """
import json, fake
compiler = fake.nvrtc()
compiler.fail(b"nvrtcCompileProgram", 1, 6)
said = [fake.attempt(lambda: fake.gpureduce.sum(fake.np.ones(9), device="cuda")) for _ in "ab"]
print(json.dumps([said, compiler.alive()]))
"""
    (said, again), alive = told(script, env)
    assert said["raised"] == "DeviceError" and again["raised"] is None and alive == {"programs": 0}
    assert "nvrtcCompileProgram of small_exact" in said["text"]
    assert "NVRTC_ERROR_COMPILATION\ngpureduce.cu(1): error" in said["text"]


FOUND = """
import fake
from fake import gpureduce
gpureduce.compiler.nvrtc_folders = lambda: {folders!r}.encode()
gpureduce._core.device_count()
print(*gpureduce._core.compiler("sm_90"), sep="; ")
"""


def test_which_compiler_is_taken(env, fakes, tmp_path):
    """The first that the driver takes; Python's packages come before the system's."""
    folders = [tmp_path / name for name in ("packages", "conda")]
    for folder in folders:
        (folder / "lib").mkdir(parents=True)
        for name in ("libnvrtc.so.12", "libnvrtc.so.13"):
            shutil.copy(fakes / "libnvrtc.so.13", folder / name)
            shutil.copy(fakes / "libnvrtc.so.13", folder / "lib" / name)
    packages, conda = folders

    def found(listed, **more):
        script = FOUND.format(folders="\n".join(map(str, listed)))
        return fake.run(script, env | {"GPUREDUCE_NVRTC": ""} | more).strip()

    assert found([packages]) == f"True; NVRTC 13.0, {packages}/libnvrtc.so.13"
    old = {"FAKE_CUDA_VERSION": "12040"}
    assert found([packages], **old) == f"True; NVRTC 12.9, {packages}/libnvrtc.so.12"
    assert found([tmp_path], CONDA_PREFIX=str(conda)).endswith(f"{conda}/lib/libnvrtc.so.13")
    assert found([], CONDA_PREFIX="").endswith(f"{fakes}/libnvrtc.so.13")
    assert found([], CONDA_PREFIX="", **old).startswith("False; NVRTC 13.0 was found")


# --- time -----------------------------------------------------------------------------------------


def test_ctrl_c_while_a_kernel_is_compiled(env):
    script = """
import json, os, signal, threading, time, fake
from fake import gpureduce, np
a = np.ones(1000)
signal.signal(signal.SIGINT, signal.default_int_handler)
gpureduce.sum(a)
start = time.monotonic()
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    gpureduce.sum(a, device="cuda")
    interrupted = None
except KeyboardInterrupt:
    interrupted = time.monotonic() - start
gpureduce.sum(a, device="cuda")
again = time.monotonic() - start
print(json.dumps([interrupted, again, fake.nvrtc().compiled(), fake.cuda().mistakes()]))
"""
    interrupted, again, compiled, mistakes = told(script, env, FAKE_NVRTC_SECONDS="2")
    assert 0.5 <= interrupted < 1.5
    assert 2 <= again < 5 and compiled == 1, "the one that was under way is the next call's"
    assert mistakes == 0


def test_a_process_that_ends_while_a_kernel_is_compiled(env, tmp_path):
    """Waits for it, and has it kept."""
    script = """
import os, signal, sys, threading, fake
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    fake.gpureduce.sum(fake.np.ones(1000), device="cuda")
except KeyboardInterrupt:
    print("interrupted")
"""
    assert fake.run(script, env | {"FAKE_NVRTC_SECONDS": "1"}) == "interrupted\n"
    assert len(list((tmp_path / "cache/gpureduce").glob("*.kernel"))) == 1


def test_a_long_compilation_is_told_once(env, tmp_path):
    script = """
import json, threading, fake
heard, a = fake.heard(), fake.np.ones(1000)
threads = [
    threading.Thread(target=lambda: fake.gpureduce.sum(a, device="cuda")) for _ in range(4)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps([heard, fake.nvrtc().compiled()]))
"""
    for seconds, times in (("0.9", 1), ("0.1", 0)):
        heard, compiled = told(
            script, env, FAKE_NVRTC_SECONDS=seconds, XDG_CACHE_HOME=str(tmp_path / seconds)
        )
        infos = [text for level, text in heard if level == "INFO"]
        assert len(infos) == times and compiled == 1, heard
        for text in infos:
            assert "compiling small_exact" in text and "for sm_90" in text
            assert "python -m gpureduce cache warm" in text


FORK = """
import json, os, sys, threading, time, fake
from fake import gpureduce, np
a = np.ones(1000)
{before}
read, write = os.pipe()
start = time.monotonic()
child = os.fork()
if not child:
    os.close(read)
    said = [fake.attempt(lambda: gpureduce.sum(a, device="cuda")), float(gpureduce.sum(a))]
    os.write(write, json.dumps(said).encode())
    sys.exit(7)
os.close(write)
said = json.loads(os.read(read, 1 << 16))
_, status = os.waitpid(child, 0)
print(json.dumps([*said, os.waitstatus_to_exitcode(status), time.monotonic() - start]))
"""
USED = 'gpureduce.sum(a, device="cuda")'
COMPILING = """
threading.Thread(target=lambda: gpureduce.max(a, device="cuda")).start()
time.sleep(0.3)
"""


@pytest.mark.parametrize("before", [USED, COMPILING], ids=["used", "compiling"])
def test_the_child_of_a_process_that_used_cuda(env, before):
    """It is told so, has the CPU, and ends without waiting for its parent's compiler."""
    seconds = {"FAKE_NVRTC_SECONDS": "2"} if before == COMPILING else {}
    error, on_the_cpu, code, took = told(FORK.format(before=before), env, **seconds)
    assert error["raised"] == "DeviceError" and "CUDA was used before fork()" in error["text"]
    assert '"spawn"' in error["text"] and 'device="cpu"' in error["text"]
    assert (on_the_cpu, code) == (1000, 7)
    assert took < 1.2


def test_a_child_uses_cuda_where_its_parent_did_not(env):
    error, on_the_cpu, code, _ = told(FORK.format(before="gpureduce.sum(a)"), env)
    assert (error["raised"], on_the_cpu, code) == (None, 1000, 7)
