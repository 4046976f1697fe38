"""Device memory without a library of arrays: the CUDA driver by ctypes, and arrays in it that have
nothing but __cuda_array_interface__."""

import ctypes
import functools

import numpy as np

_NON_BLOCKING, _PORTABLE_AND_MAPPED = 1, 3


@functools.cache
def _driver():
    cuda = ctypes.CDLL("libcuda.so.1")
    context, device = ctypes.c_void_p(), ctypes.c_int()
    cuda.cuInit(0)
    _check(cuda.cuDeviceGet(ctypes.byref(device), 0))
    _check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    return cuda, context


def _check(code):
    assert code == 0, f"CUDA driver error {code}"


def _call(name, *arguments):
    """In the device's primary context, which the CUDA runtime uses too, from any thread."""
    cuda, context = _driver()
    _check(cuda.cuCtxSetCurrent(context))
    return getattr(cuda, name)(*arguments)


def allocate(size):
    """The address, or None where there is no such memory left."""
    address = ctypes.c_uint64()
    code = _call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
    return None if code else address.value


def free(address):
    _check(_call("cuMemFree_v2", ctypes.c_uint64(address)))


def free_bytes():
    some, total = ctypes.c_size_t(), ctypes.c_size_t()
    _check(_call("cuMemGetInfo_v2", ctypes.byref(some), ctypes.byref(total)))
    return some.value


def copy_in(to, address, size, stream=None):
    arguments = ctypes.c_uint64(to), ctypes.c_void_p(address), ctypes.c_size_t(size)
    if stream is None:
        _check(_call("cuMemcpyHtoD_v2", *arguments))
    else:
        _check(_call("cuMemcpyHtoDAsync_v2", *arguments, ctypes.c_void_p(stream)))


def copy_out(memory):
    """What lies there, as bytes."""
    to = ctypes.create_string_buffer(memory.size)
    address, size = ctypes.c_uint64(memory.address), ctypes.c_size_t(memory.size)
    _check(_call("cuMemcpyDtoH_v2", to, address, size))
    return to.raw


def copy_out_all(places):
    """The bytes at each (address, size), which the device is waited for once."""
    starts = np.cumsum([0, *(size for _, size in places)]).tolist()
    to = Pinned(max(starts[-1], 1))
    for (address, size), start in zip(places, starts, strict=False):
        if size:
            _check(
                _call(
                    "cuMemcpyDtoHAsync_v2",
                    ctypes.c_void_p(to.address + start),
                    ctypes.c_uint64(address),
                    ctypes.c_size_t(size),
                    ctypes.c_void_p(None),
                )
            )
    _check(_call("cuCtxSynchronize"))
    raw = bytes(to.array(np.uint8))
    return [raw[start : start + size] for (_, size), start in zip(places, starts, strict=False)]


class Memory:
    """So many bytes on the device, freed with the object."""

    def __init__(self, size):
        self.size = max(size, 1)
        self.address = allocate(self.size)
        assert self.address, f"no {size} bytes of device memory"

    def __del__(self):
        if getattr(self, "address", None):
            free(self.address)


class Pinned:
    """Page-locked host memory, freed with the object."""

    def __init__(self, size):
        address = ctypes.c_void_p()
        flags = ctypes.c_uint(_PORTABLE_AND_MAPPED)
        _check(_call("cuMemHostAlloc", ctypes.byref(address), ctypes.c_size_t(size), flags))
        self.address, self.size = address.value, size

    def array(self, dtype):
        raw = (ctypes.c_char * self.size).from_address(self.address)
        return np.frombuffer(raw, np.uint8).view(dtype)

    def __del__(self):
        if getattr(self, "address", None):
            _check(_call("cuMemFreeHost", ctypes.c_void_p(self.address)))


class Stream:
    """A stream that the default stream does not wait for."""

    def __init__(self):
        handle = ctypes.c_void_p()
        _check(_call("cuStreamCreate", ctypes.byref(handle), ctypes.c_uint(_NON_BLOCKING)))
        self.handle = handle.value

    def wait_for(self, pinned):
        """What comes next on the stream waits until the first word of the memory is 1."""
        _check(
            _call(
                "cuStreamWaitValue32_v2",
                ctypes.c_void_p(self.handle),
                ctypes.c_uint64(pinned.address),
                ctypes.c_uint32(1),
                ctypes.c_uint(1),  # equal
            )
        )

    def __del__(self):
        if getattr(self, "handle", None):
            _check(_call("cuStreamDestroy_v2", ctypes.c_void_p(self.handle)))


class Interface:
    """An object that has a __cuda_array_interface__ and nothing else."""

    def __init__(self, interface, *holders):
        self.__cuda_array_interface__ = interface
        self.holders = holders


def interface_of(a, address, **more):
    typestr = a.dtype.str.partition("[")[0]  # units of time are NumPy's alone
    return {
        "shape": a.shape,
        "typestr": typestr,
        "data": (address, False),
        "strides": a.strides,
        "version": 3,
        **more,
    }


def on_device(a):
    """The same view of a copy of the same memory, as aligned as that is within 16 bytes."""
    low, high = np.lib.array_utils.byte_bounds(a) if a.size else (0, 0)
    end = low % 16 + high - low
    memory = Memory(max(high - low + 16, end + -end % 4))
    to = memory.address + low % 16
    zeros = np.zeros(16, np.uint8)  # a packet that begins before the array is read whole,
    copy_in(memory.address, zeros.ctypes.data, zeros.nbytes)
    if end % 4:  # and the word in which a mask ends, but nothing behind it
        copy_in(memory.address + end, zeros.ctypes.data, -end % 4)
    if high > low:
        copy_in(to, low, high - low)
    address = to + (a.__array_interface__["data"][0] - low if a.size else 0)
    return Interface(interface_of(a, address), memory)
