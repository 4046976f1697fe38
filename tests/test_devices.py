"""Several devices, and devices with the CPU: the same bits whoever took what, and a device that is
lost is told of. Without devices by a driver that folds what it is given; the rest is marked gpu."""

import json

import fake
import pytest
from test_driver import ENTER, GIVE_BACK


@pytest.fixture
def env(fakes, tmp_path):
    return fake.environment(fakes, tmp_path / "cache", FAKE_CUDA_DEVICES="2")


PREAMBLE = """
import json, sys, fake
from fake import device, gpureduce, np
driver = fake.cuda()
PIECE = 1 << 20  # elements of 8 bytes
"""
WHO = ["cuda:all", "all", ["cuda:0", "cuda:1"], ["cpu", "cuda:1"], ("cuda", "cpu")]


def told(script, env, *arguments):
    return json.loads(fake.run(PREAMBLE + script, env, *arguments).splitlines()[-1])


# --- without devices ------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("what", ["sum", "prod"])
def test_every_element_is_folded_once_in_its_place(what, threads, env):
    """Sums of integers in any order; products along the tree, of pieces in any order."""
    script = """
what, threads, who = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
gpureduce.set_num_threads(threads)
driver.folds(1 if what == "sum" else 2)
rng = np.random.default_rng([threads, len(what)])
wrong, seen = [], {}
for n in (1, 1000, PIECE, PIECE + 1, 6 * PIECE - 1, *rng.integers(1, 9 * PIECE, 4)):
    x = rng.integers(-9, 9, n) if what == "sum" else rng.uniform(0.97, 1.031, n)
    want = getattr(gpureduce, what)(x, device="cpu")
    wider = np.empty((n, 2), x.dtype)
    wider[:, 0] = x
    for device in who:
        device = tuple(device) if isinstance(device, list) and device[0] == "cuda" else device
        for a in (x, wider[:, 0]):
            driver.late(int(rng.integers(0, 40)))
            got = getattr(gpureduce, what)(a, device=device)
            if got.tobytes() != want.tobytes():
                wrong.append([n, device, float(want), float(got)])
print(json.dumps([wrong, driver.mistakes(), driver.mistake().decode()]))
"""
    assert told(script, env, what, threads, json.dumps(WHO)) == [[], 0, ""]


@pytest.mark.parametrize("threads", [1, 3])
def test_every_output_is_of_its_own_elements(threads, env):
    """Along axes each takes whole outputs, whatever lies where."""
    script = """
threads, who = int(sys.argv[1]), json.loads(sys.argv[2])
gpureduce.set_num_threads(threads)
driver.folds(1)
rng = np.random.default_rng(threads)
wrong = []
for shape, axis, order in (
    ((3, 1 << 11, 300), 2, None), ((2, 1 << 12, 600), 2, None),
    ((1 << 12, 600), 1, None), ((1 << 12, 600), 0, None),
    ((5, 700, 9, 60), (1, 3), (2, 0, 3, 1)), ((900, 70, 40), 1, (1, 2, 0)), ((1 << 21,), 0, None),
    ((3, 1 << 20), 1, None), ((3668, 856), 0, None),  # slabs of one output
):
    x = rng.integers(-9, 9, shape)
    if order:
        x = x.transpose(order)
    for where in (True, rng.random(x.shape[-1]) < 0.7):
        want = gpureduce.sum(x, axis, where=where, device="cpu")
        for device in [*who, "cuda"]:
            out = np.empty(want.shape, want.dtype, order="F")
            got = gpureduce.sum(x, axis, where=where, device=device)
            gpureduce.sum(x, axis, where=where, device=device, out=out)
            if not (np.array_equal(got, want) and np.array_equal(out, want)):
                wrong.append([shape, axis, device, where is True])
print(json.dumps([wrong, driver.mistakes(), driver.mistake().decode()]))
"""
    assert told(script, env, threads, json.dumps(WHO)) == [[], 0, ""]


def test_pinned_arrays_along_every_axis(env):
    """Whole or by rows, which the copy engine takes without threads; short rows are gathered."""
    script = """
gpureduce.set_num_threads(2)
driver.folds(1)
rng = np.random.default_rng(4)
wrong, by_rows = [], []
for shape, axis in (
    ((4000, 1500), 0), ((4000, 1500), 1), ((3, 1000, 2000), 1), ((40000, 130), 0), ((90, 90000), 0),
):
    memory = device.Pinned(8 * int(np.prod(shape)))
    x = memory.array("i8").reshape(shape)
    x[:] = rng.integers(-9, 9, shape)
    want = x.sum(axis)
    for where in (True, rng.random(shape) < 0.5):
        for who in ("cuda", "cuda:all", "all"):
            driver.reset()
            got = gpureduce.sum(x, axis, where=where, device=who)
            if not np.array_equal(got, np.sum(x, axis, where=where)):
                wrong.append([shape, axis, who, where is True])
            by_rows.append([shape[0], axis, who, driver.names().count("cuMemcpy2DAsync_v2") > 4])
print(json.dumps([wrong, by_rows, driver.mistakes(), driver.mistake().decode()]))
"""
    wrong, by_rows, mistakes, mistake = told(script, env)
    assert (wrong, mistakes) == ([], 0), mistake
    assert [4000, 0, "cuda:all", True] in by_rows


LOSSES = """
def told(call, which, n, result):
    driver.fail(which, n, result) if which else driver.fail_at(n, result)
    first = fake.attempt(call)
    driver.fail(b"", 0, 0), driver.fail_at(0, 0), driver.silent(0)
    fake.without_context(driver)  # which a pop that fails leaves
    again = fake.attempt(call)
    return first, again

gpureduce.set_num_threads(3)
x, y = np.ones(12 * PIECE), np.ones((1 << 13, 600))
gpureduce.prod(x, device="cuda:all"), gpureduce.max(y, axis=1, device="cuda:all")
calls = {
    "whole": lambda: gpureduce.sum(x, device="cuda:all"),
    "with the CPU": lambda: gpureduce.prod(x, device="all"),
    "axes": lambda: gpureduce.max(y, axis=1, device="all"),
}
"""


def test_a_device_that_is_lost_in_the_middle(env):
    """An exception, nothing is kept of it, and the next call works."""
    script = """
answers = []
for name, call in calls.items():
    call(), call()
    usual = driver.alive()
    for which in (b"cuLaunchKernel", b"cuMemcpyAsync", b"cuStreamQuery"):
        for n in (1, 2, 3, 5, 9):
            if which == b"cuStreamQuery":
                driver.silent(1)
            first, again = told(call, which, n, 719)
            more = {k: c - usual[k] for k, c in driver.alive().items() if c != usual[k]}
            answers.append([name, which.decode(), n, first, again["raised"], more])
print(json.dumps([answers, driver.mistakes(), driver.mistake().decode()]))
"""
    answers, mistakes, mistake = told(LOSSES + script, env)
    assert mistakes == 0, mistake
    raised = 0
    for name, which, n, first, again, more in answers:
        what = f"{name}, {which} {n}: {first} {more}"
        assert first["raised"] in (None, "DeviceError"), what
        raised += first["raised"] is not None
        assert again is None and not more, what
    assert raised > len(answers) // 5


def test_any_call_may_fail(env):
    """Of a random part of the calls."""
    script = """
rng = np.random.default_rng(6)
answers = []
for name, call in calls.items():
    call(), call()
    driver.reset()
    call()
    count, usual = driver.calls(), driver.alive()
    for n in sorted(rng.choice(count, min(count, 40), replace=False) + 1):
        for _ in range(5):  # what the next calls take again is kept once, as those that overlap do
            first, again = told(call, None, int(n), 999)
            more = {k: c - usual[k] for k, c in driver.alive().items() if c != usual[k]}
            usual = driver.alive()
            if not any(c > 0 for c in more.values()):
                break
        answers.append([name, int(n), (driver.failed() or b"").decode(), first, again, more])
print(json.dumps([answers, driver.mistakes(), driver.mistake().decode()]))
"""
    answers, mistakes, mistake = told(LOSSES + script, env)
    assert mistakes == 0, mistake
    for name, n, failed, first, again, more in answers:
        what = f"{name}, call {n}, {failed}: {first}, {again}, {more}"
        assert first["raised"] in (None, "DeviceError", "MemoryError"), what
        assert again["raised"] is None, what
        for kind, count in more.items():
            kept_back = GIVE_BACK.get(failed) == kind or failed in ENTER  # cannot be freed
            assert count < 0 or kept_back, what
    assert sum(first["raised"] is not None for _, _, _, first, _, _ in answers) > 5


AUTO = """
import os, struct
from pathlib import Path
x = np.arange((1 << 25) + 5)
y = x[: 1 << 25].reshape(1 << 12, -1)
driver.folds(1)

def rates():
    return gpureduce._core.speeds()["pageable"]

def digest(data):
    state = 0x6c62272e07bb014262b821756295c58d
    for byte in data:
        state = (state ^ byte) * ((1 << 88) + 0x13b) % (1 << 128)
    return state

def pretend(cpu, devices, both):
    "What the next process reads."
    for file in (Path(os.environ["XDG_CACHE_HOME"]) / "gpureduce").glob("*.kernel"):
        head, image = file.read_bytes()[:48], file.read_bytes()[48:]
        if len(image) == 65:
            image = struct.pack("4d", cpu, devices, both, 0) * 2 + bytes(1)
            number = digest(image).to_bytes(16, "little")
            file.write_bytes(head[:16] + number + head[32:] + image)
"""


def test_auto_goes_by_what_was_measured(env):
    script = """
assert gpureduce.sum(x) == x.sum(), "the first call measures"
found = rates()
assert min(found[key] for key in ("cpu", "devices", "all")) > 0, found
print(driver.names().count("cuLaunchKernel"))
"""
    look = """
print(json.dumps([rates()["best"], int(gpureduce.sum(x) - x.sum()),
                  bool((gpureduce.sum(y, axis=1) == y.sum(1)).all()),
                  "cuLaunchKernel" in driver.names(), driver.mistakes()]))
"""
    assert told(AUTO + script, env) > 3
    for speeds, best in (((9e8, 1.1e9), "cpu"), ((2e9, 1.5e9), "cuda:all"), ((2e9, 3e9), "all")):
        told(AUTO + "pretend(1e9, *json.loads(sys.argv[1])); print(1)", env, json.dumps(speeds))
        assert told(AUTO + look, env) == [best, 0, True, best != "cpu", 0]


def test_small_arrays_do_not_wake_a_device(env):
    script = """
gpureduce.sum(x[: 1 << 24]), gpureduce.sum(y[:, ::2], axis=0), gpureduce.var(x)
print(json.dumps([driver.calls(), rates()]))
"""
    assert told(AUTO + script, env) == [0, None]
