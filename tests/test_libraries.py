"""Arrays of PyTorch and CuPy: what is asked of those libraries and of the driver, by stand-ins and
the fake driver. What the kernels do with them is tested on a device: tests/test_own_kind.py."""

import json

import fake
import pytest

START = """
import json, fake, stand_ins
from fake import device, gpureduce, np
driver, pool, library = fake.cuda(), stand_ins.Pool(1 << 20), {library!r}
f4 = np.dtype("f4")
if library == "cupy":
    cupy = stand_ins.cupy_of(pool)
    new = lambda *shape: cupy.ndarray(shape, f4)
    steps = lambda a: list(a.strides)
else:
    torch = stand_ins.torch_of(pool)
    kept = stand_ins.give_exchange(torch, pool) if library == "exchange" else None
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device="cuda:0")
    steps = lambda a: [4 * s for s in a.strides]
a = new(3, 4, 5)

def told(call, keep=("Alloc", "Event", "Synchronize", "Launch")):
    call()  # the kernels are made
    pool.asked.clear()
    driver.reset()
    result = call()
    calls = [name for name in driver.names() if any(part in name for part in keep)]
    return result, calls, list(pool.asked)
"""


@pytest.fixture(scope="module")
def env(fakes, tmp_path_factory):
    return fake.environment(fakes, tmp_path_factory.mktemp("cache"), FAKE_CUDA_DEVICES="2")


def run(library, script, env):
    return json.loads(fake.run(START.format(library=library) + script, env).splitlines()[-1])


LIBRARIES = pytest.mark.parametrize("library", ["torch", "exchange", "cupy"])


@LIBRARIES
def test_results_are_the_librarys(library, env):
    script = """
one, calls, asked = told(lambda: gpureduce.max(a, axis=0))
kept = gpureduce.max(a, axis=(0, 2), keepdims=True)
parts = gpureduce.segments(a, [0, 1], [1, 4], "add", axis=1)
print(json.dumps([
    [type(x) is type(a) for x in (one, kept, parts)], calls, asked,
    [x.shape for x in (one, kept, parts)], steps(parts), driver.mistakes(),
]))
"""
    kinds, calls, asked, shapes, strides, mistakes = run(library, script, env)
    assert all(kinds) and mistakes == 0
    assert calls == ["cuLaunchKernel"]
    assert len(asked) == 1 and asked[0][1:3] == [[4, 5], "float32"]
    assert shapes == [[4, 5], [1, 4, 1], [3, 2, 5]]
    assert strides == [20, 60, 4], "the segments are the first axis in memory"


@LIBRARIES
def test_an_out_of_the_library_is_not_waited_for(library, env):
    script = """
out = new(4, 5)
same, calls, asked = told(lambda: gpureduce.max(a, axis=0, out=out))
print(json.dumps([same is out, calls, asked, driver.mistakes()]))
"""
    same, calls, asked, mistakes = run(library, script, env)
    assert same and asked == [] and mistakes == 0
    assert calls == ["cuLaunchKernel"]


def test_an_out_of_another_stream(env):
    """Before the run, for what reads it still, and after it."""
    script = """
stream = device.Stream()
other = stand_ins.Pool(1 << 16)
other.stream = stream.handle
cupy = stand_ins.cupy_of(other)
out = cupy.ndarray((4, 5), f4)
_, calls, _ = told(lambda: gpureduce.max(a, axis=0, out=out), ("Event", "Synchronize", "Launch"))
print(json.dumps([calls, driver.mistakes()]))
"""
    calls, mistakes = run("torch", script, env)
    order = ["cuEventCreate", "cuEventRecord", "cuStreamWaitEvent", "cuEventDestroy_v2"]
    assert calls[:4] == calls[-4:] == order and mistakes == 0
    assert "cuStreamSynchronize" not in calls


def test_two_results_lie_together(env):
    script = """
low, high = gpureduce.minmax(a, axis=1)
print(json.dumps([low.shape, high.shape, high.address - low.address, pool.asked[-1][1]]))
"""
    assert run("torch", script, env) == [[3, 5], [3, 5], 60, [2, 3, 5]]


def test_a_tensor_of_another_device_than_the_current_one(env):
    """What makes tensors for compiled code would put the result elsewhere."""
    script = """
pool.device = 1
got, _, asked = told(lambda: gpureduce.max(a, axis=0))
print(json.dumps([got.on, [each[3] for each in asked], driver.mistakes()]))
"""
    assert run("exchange", script, env) == [0, ["cuda:1", "cuda:0"], 0]


@LIBRARIES
def test_what_the_library_cannot_make(library, env):
    """No dtype, no element, another device than its current one: by DLPack, as before."""
    script = """
calls = [
    lambda: gpureduce.sum(a, axis=0, dtype="i2"),
    lambda: gpureduce.sum(new(3, 0), axis=0),
]
if library == "cupy":
    pool.device = 1
    calls = [lambda: gpureduce.sum(a, axis=0), *calls[1:]]
print(json.dumps([[type(call()).__name__ for call in calls], driver.mistakes()]))
"""
    names, mistakes = run(library, script, env)
    assert names == ["DeviceArray"] * 2 and mistakes == 0


@LIBRARIES
def test_errors_of_the_library_are_passed_on(library, env):
    script = """
def fails(*given, **named):
    raise MemoryError("the library has none")
call = lambda: gpureduce.sum(a, axis=0)
call()
before = driver.alive()
pool.take = fails
said = fake.attempt(call)
del pool.take
print(json.dumps([said, fake.attempt(call), driver.alive() == before, driver.mistakes()]))
"""
    said, again, same, mistakes = run(library, script, env)
    assert said == {"raised": "MemoryError", "text": "the library has none"}
    assert again["raised"] is None and same and mistakes == 0


@pytest.mark.parametrize(
    "change",
    [
        "a.shape = None",
        "a.shape = (3, -4, 'x')",
        "a.get_device = lambda: -1",
        "a.data_ptr = lambda: None",
        "a.dtype = None",
        "a.requires_grad = True",
        "a.is_conj = lambda: True",
        "torch._C._cuda_getCurrentRawStream = lambda device: 'x'",
    ],
)
def test_arrays_that_do_not_say_what_they_are(change, env):
    """Then DLPack is asked, which says so."""
    script = f"""
{change}
class Refused(Exception): pass
def refuse(self):
    raise Refused
torch.Tensor.__dlpack_device__ = refuse
a.__array__ = None
said = fake.attempt(lambda: gpureduce.sum(a, axis=0))
print(json.dumps([said["raised"], driver.mistakes()]))
"""
    raised, mistakes = run("torch", script, env)
    assert raised in ("TypeError", "ValueError") and mistakes == 0


def test_signs_that_are_not_changed_yet(env):
    script = """
a.is_neg = lambda: True
print(json.dumps(fake.attempt(lambda: gpureduce.sum(a, axis=0))))
"""
    said = run("torch", script, env)
    assert said["raised"] == "BufferError" and "resolve_neg" in said["text"]


def test_modules_that_are_not_imported_yet(env):
    """Half of one is none; it is looked at again."""
    script = """
import sys, types
sys.modules["cupy"] = types.ModuleType("cupy")
first = gpureduce.sum(device.on_device(np.ones((2, 3))), axis=0)
other = stand_ins.cupy_of(pool)
second = gpureduce.sum(other.ndarray((3, 4), f4), axis=0)
print(json.dumps([type(first).__name__, type(second) is other.ndarray]))
"""
    assert run("torch", script, env) == ["DeviceArray", True]


# --- graphs that are captured ---------------------------------------------------------------------

CAPTURED = """
stream = device.Stream()
pool.stream = stream.handle
out, pairs = new(4, 5), new(6, 2)

def captured(call):
    driver.reset()
    driver.capture(fake.ctypes.c_void_p(stream.handle))
    said = fake.attempt(call)
    driver.capture(None)
    return said | {"mistakes": driver.mistakes(), "mistake": driver.mistake().decode()}
"""


@LIBRARIES
def test_what_can_be_captured(library, env):
    """Kernels that are not made yet too."""
    script = """
calls = [
    lambda: gpureduce.max(a, axis=0),
    lambda: gpureduce.max(a, axis=0, out=out),
    lambda: gpureduce.min(pairs, keepdims=True),
    lambda: gpureduce.minmax(pairs, axis=0),
]
print(json.dumps([captured(call) for call in calls]))
"""
    for said in run(library, CAPTURED + script, env):
        assert said == {"raised": None, "text": "", "mistakes": 0, "mistake": ""}


@LIBRARIES
def test_what_cannot_be_captured_says_so(library, env):
    """And the capture goes on."""
    script = """
other = device.on_device(np.zeros((4, 5), f4))
def elsewhere():
    pool.device = 1
    return gpureduce.sum(a, axis=0, dtype="i2")
calls = [
    lambda: gpureduce.max(a),
    elsewhere,
    lambda: gpureduce.max(a, axis=0, out=other),
]
print(json.dumps([captured(call) for call in calls]))
"""
    answers = run(library, CAPTURED + script, env)
    for said, words in zip(answers, ("axis=0", "give out=", "captured"), strict=True):
        assert said["raised"] == "ValueError" and words in said["text"]
        assert said["mistakes"] == 0, said["mistake"]
