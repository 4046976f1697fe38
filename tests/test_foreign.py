"""Arrays of other libraries that say they are on a device, as far as no device is needed."""

import ctypes

import numpy as np
import pytest
from device import Interface, interface_of

import gpureduce
from gpureduce import _core

A = np.arange(6.0)
GOOD = interface_of(A, 64)
SIGNED, UNSIGNED, FLOAT, HANDLE, BRAIN, COMPLEX = range(6)


@pytest.fixture(autouse=True)
def next_call_works():
    yield
    assert gpureduce.sum([1.0, 2.0]) == 3


@pytest.mark.parametrize("key", ["shape", "typestr", "data", "strides", "stream"])
@pytest.mark.parametrize("value", [3.5, "x", (1.5,), (1, "x"), ("x", 2), [6], 1 << 70, object()])
def test_bad_interfaces(key, value):
    with pytest.raises((ValueError, TypeError, OverflowError)):
        gpureduce.sum(Interface({**GOOD, key: value}))


@pytest.mark.parametrize("key", ["shape", "typestr", "data"])
def test_interfaces_with_something_missing(key):
    with pytest.raises(ValueError, match=key):
        gpureduce.sum(Interface({name: value for name, value in GOOD.items() if name != key}))


@pytest.mark.parametrize("what", [None, 3, [], "shape"])
def test_interfaces_that_are_no_dict(what):
    with pytest.raises(ValueError, match="dict"):
        gpureduce.sum(Interface(what))


def test_strides_of_another_length():
    with pytest.raises(ValueError, match="strides"):
        gpureduce.sum(Interface({**GOOD, "strides": (8, 8)}))


def test_stream_0_is_ambiguous():
    with pytest.raises(ValueError, match="stream"):
        gpureduce.sum(Interface({**GOOD, "stream": 0}))


def test_masks_are_not_supported():
    with pytest.raises(TypeError, match="mask"):
        gpureduce.sum(Interface({**GOOD, "mask": Interface(GOOD)}))
    with pytest.raises(ValueError, match="address"):
        gpureduce.sum(Interface({**GOOD, "mask": None}))


@pytest.mark.parametrize("typestr", ["|O8", "<f16", "|S4", "<U1", "|V4", "<i3", "<f3"])
def test_types_that_are_not_supported(typestr):
    with pytest.raises((TypeError, ValueError)):
        gpureduce.sum(Interface({**GOOD, "typestr": typestr}))


@pytest.mark.parametrize("shape", [(-1,), (2, -3), (1 << 62, 1 << 62)])
def test_shapes_that_are_impossible(shape):
    with pytest.raises(ValueError, match="shape"):
        gpureduce.sum(Interface({**GOOD, "shape": shape, "strides": None}))
    with pytest.raises(ValueError, match="shape"):
        gpureduce.sum(Pack(shape=shape))


def test_too_many_dimensions():
    with pytest.raises(ValueError, match="65"):
        gpureduce.sum(Interface({**GOOD, "shape": (1,) * 65, "strides": None}))


def test_pointers_to_host_memory():
    with pytest.raises(ValueError, match="address"):
        gpureduce.sum(Interface(interface_of(A, A.ctypes.data)))


def test_errors_of_the_property_are_passed_on():
    class Broken:
        @property
        def __cuda_array_interface__(self):
            raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        gpureduce.sum(Broken())


# --- DLPack ---------------------------------------------------------------------------------------


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Pack:
    """An object with DLPack's two methods; the tensor lives as long as it does."""

    def __init__(self, *, code=FLOAT, bits=64, lanes=1, shape=(6,), device=0, name=b"dltensor"):
        self.sizes = (ctypes.c_int64 * len(shape))(*shape)
        self.tensor = Tensor(64, 2, device, len(shape), code, bits, lanes, self.sizes)
        self.name, self.streams = name, []

    def __dlpack_device__(self):
        return (2, self.tensor.device_id)

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        return _capsule(ctypes.addressof(self.tensor), self.name, None)


@pytest.mark.parametrize(
    "dtype",
    [
        {"bits": 128},
        {"bits": 8},
        {"lanes": 4},
        {"code": SIGNED, "bits": 4},
        {"code": SIGNED, "bits": 12},
        {"code": UNSIGNED, "bits": 1},
        {"code": HANDLE},
        {"code": BRAIN, "bits": 32},
        {"code": COMPLEX, "bits": 32},
        {"code": 10, "bits": 8},
        {"code": 255},
    ],
    ids=str,
)
def test_dlpack_dtypes_that_are_not_supported(dtype):
    pack = Pack(**dtype)
    with pytest.raises(TypeError, match="DLPack"):
        gpureduce.sum(pack)
    assert pack.streams == [1]


def test_dlpack_of_another_version_or_used_up():
    for name in (b"dltensor_versioned", b"used_dltensor"):
        with pytest.raises(ValueError):
            gpureduce.sum(Pack(name=name))


def test_dlpack_of_too_many_dimensions():
    with pytest.raises(ValueError, match="65"):
        gpureduce.sum(Pack(shape=(1,) * 65))


def test_dlpack_on_a_device_that_is_not_there():
    with pytest.raises(gpureduce.DeviceError, match=r"CUDA|cuda:99"):
        gpureduce.sum(Pack(device=99))


@pytest.mark.parametrize("device", [-1, -2, -(2**31)])
def test_dlpack_on_a_device_below_zero(device):
    with pytest.raises(ValueError, match=str(device)):
        gpureduce.sum(Pack(device=device))


def test_dlpack_of_the_host_that_said_it_was_not():
    pack = Pack()
    pack.tensor.device_type = 1
    with pytest.raises(ValueError, match="type 1"):
        gpureduce.sum(pack)


def test_interfaces_that_are_emptied_meanwhile():
    for key in ("shape", "data", "strides"):
        interface = {**GOOD, "shape": (1, 2, 3), "strides": (48, 24, 8)}

        class Number:
            def __index__(self):
                interface.pop(key, None)  # noqa: B023
                return 1

        interface[key] = (Number(), *interface[key][1:])
        with pytest.raises((ValueError, TypeError)):
            gpureduce.sum(Interface(interface))


@pytest.mark.parametrize("name", ["__dlpack_device__", "__dlpack__", "requires_grad"])
def test_interrupts_are_not_passed_over(name):
    def interrupt(self, **given):
        raise KeyboardInterrupt

    member = property(interrupt) if name == "requires_grad" else interrupt
    kind, _ = exchanging(**{name: member})
    if name != "requires_grad":
        kind = type("Interrupting", (Pack,), {name: member})
    with pytest.raises(KeyboardInterrupt):
        gpureduce.sum(kind(device=99))


def test_an_exchange_without_a_stream_or_a_reason():
    kind, _ = exchanging()
    kind.table.current_stream = CurrentStream(lambda *given: -1)
    with pytest.raises(BufferError, match="stream"):
        gpureduce.sum(kind(device=99))


def test_dlpack_errors_are_passed_on():
    class Broken(Pack):
        def __dlpack__(self, *, stream=None):
            raise BufferError("broken")

    with pytest.raises(BufferError, match="broken"):
        gpureduce.sum(Broken())


# --- DLPack's exchange for C ----------------------------------------------------------------------

TensorOf = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
CurrentStream = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
)


class Exchange(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("unused", ctypes.c_void_p * 3),
        ("tensor_of", TensorOf),
        ("current_stream", CurrentStream),
    )


def exchanging(*, major=1, failing=False, name=b"dlpack_exchange_api", **attributes):
    """A type of arrays with an exchange, and the calls that it had."""
    calls = []

    def tensor_of(given, out):
        calls.append("tensor")
        size = ctypes.sizeof(Tensor) - 16  # without the manager's part
        ctypes.memmove(out, ctypes.addressof(given.tensor), size)
        return -1 if failing else 0

    def current_stream(kind, device, out):
        calls.append((kind, device))
        out[0] = 0
        return 0

    table = Exchange(major, 3, None, (None, None, None), TensorOf(tensor_of))
    table.current_stream = CurrentStream(current_stream)
    capsule = _capsule(ctypes.addressof(table), name, None)
    members = {"__dlpack_c_exchange_api__": capsule, "table": table, "name": name, **attributes}
    return type("Exchanging", (Pack,), members), calls


def test_the_exchange_is_taken_and_nothing_else_called():
    kind, calls = exchanging()
    pack = kind(device=99)
    with pytest.raises(gpureduce.DeviceError, match=r"CUDA|cuda:99"):
        gpureduce.sum(pack)
    assert calls == ["tensor", (2, 99)] and pack.streams == []


@pytest.mark.parametrize(
    "fault",
    [
        {"major": 2},
        {"failing": True},
        {"name": b"another"},
        {"requires_grad": True},
        {"is_conj": lambda self: True},
    ],
    ids=lambda fault: next(iter(fault)),
)
def test_without_a_usable_exchange_dlpack_is_asked(fault):
    kind, calls = exchanging(**fault)
    pack = kind(device=99, code=COMPLEX, bits=128)  # others have nothing to conjugate
    with pytest.raises(gpureduce.DeviceError, match=r"CUDA|cuda:99"):
        gpureduce.sum(pack)
    assert pack.streams == [1] and (2, 99) not in calls


def test_signs_that_are_not_changed_yet():
    kind, _ = exchanging(is_neg=lambda self: True)
    with pytest.raises(BufferError, match="resolve_neg"):
        gpureduce.sum(kind(device=99))


def test_the_exchange_of_an_array_of_the_host():
    kind, calls = exchanging(
        __array__=lambda self, dtype=None, copy=None: A, __dlpack_device__=lambda self: (1, 0)
    )
    pack = kind()
    pack.tensor.device_type = 1
    assert gpureduce.sum(pack) == 15
    assert calls == ["tensor"] and pack.streams == []


def test_device_arrays_are_not_reduced_on_the_cpu():
    with pytest.raises(ValueError, match="cuda:0"):
        gpureduce.sum(Pack(), device="cpu")


@pytest.mark.skipif(_core.device_count()[0] > 0, reason="there is a GPU")
def test_without_a_device():
    for given, way_out in ((Pack(), ""), (A, ', or use device="cpu"')):
        with pytest.raises(gpureduce.DeviceError) as caught:
            gpureduce.sum(given, device="cuda")
        assert str(caught.value) == _core.device_count()[1] + way_out
        assert "CUDA" in str(caught.value)
    assert issubclass(gpureduce.DeviceError, RuntimeError)
    assert gpureduce.sum(A) == gpureduce.sum(A, device="auto") == 15
