"""Modules in the place of PyTorch and CuPy, with as much of them as gpureduce calls by name: arrays
in one piece of device memory, taken from its start to its end."""

import ctypes
import math
import sys
import types

import device
import numpy as np

ITEMS = {"float32": 4, "float64": 8, "int64": 8, "bool": 1, "bfloat16": 2}


class Pool:
    """Where arrays are, and what was asked of the library."""

    def __init__(self, size):
        self.memory, self.used = device.Memory(size), 0
        self.stream, self.device, self.asked = 0, 0, []

    def take(self, size):
        self.used += -(-max(size, 1) // 512) * 512
        assert self.used <= self.memory.size
        return self.memory.address + self.used - max(size, 1)


def steps(shape, item=1):
    return tuple(item * math.prod(shape[d + 1 :]) for d in range(len(shape)))


def torch_of(pool):
    """Imported as torch; from_dlpack gives what it was given."""
    module = types.ModuleType("torch")

    class Tensor:
        requires_grad = False

        def __init__(self, shape, dtype, strides, address, on):
            self.shape, self.dtype, self.device = tuple(shape), dtype, f"cuda:{on}"
            self.strides, self.address, self.on = strides, address, on

        def stride(self):
            return self.strides

        def data_ptr(self):
            return self.address if math.prod(self.shape) else 0

        def get_device(self):
            return self.on

        def is_conj(self):
            return False

        is_neg = is_conj

        def new_empty(self, shape, dtype=None):
            return empty(shape, dtype=dtype or self.dtype, device=self.device)

        def permute(self, axes):
            shape, strides = zip(*((self.shape[d], self.strides[d]) for d in axes), strict=True)
            return Tensor(shape, self.dtype, strides, self.address, self.on)

        def __getitem__(self, i):
            address = self.address + i * self.strides[0] * ITEMS[self.dtype.name]
            return Tensor(self.shape[1:], self.dtype, self.strides[1:], address, self.on)

        def __dlpack_device__(self):
            raise AssertionError("nobody is to ask")

    Tensor.__module__ = "torch"

    def empty(shape, *, dtype, device):
        pool.asked.append(("empty", shape, dtype.name, device))
        size = math.prod(shape) * ITEMS[dtype.name]
        return Tensor(shape, dtype, steps(shape), pool.take(size), int(device[5:]))

    def empty_strided(shape, strides, dtype):
        assert type(shape) is tuple and strides == tuple(steps(shape))
        return empty(shape, dtype=dtype, device=f"cuda:{pool.device}")

    module.Tensor, module.empty, module.from_dlpack = Tensor, empty, lambda array: array
    module.empty_strided = empty_strided
    module._C = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: pool.stream)
    for name in ITEMS:
        setattr(module, name, types.SimpleNamespace(name=name))
    sys.modules["torch"] = module
    return module


def cupy_of(pool):
    """Imported as cupy."""
    module = types.ModuleType("cupy")

    class ndarray:
        def __init__(self, shape, dtype, strides=None, address=None, on=None):
            self.shape, self.dtype = tuple(shape), np.dtype(dtype)
            self.strides = strides or steps(shape, self.dtype.itemsize)
            if address is None:
                pool.asked.append(("ndarray", shape, self.dtype.name))
                address = pool.take(math.prod(shape) * self.dtype.itemsize)
            self.data = types.SimpleNamespace(
                ptr=address, device_id=pool.device if on is None else on
            )

        def transpose(self, axes):
            shape, strides = zip(*((self.shape[d], self.strides[d]) for d in axes), strict=True)
            return ndarray(shape, self.dtype, strides, self.data.ptr, self.data.device_id)

        def __dlpack_device__(self):
            raise AssertionError("nobody is to ask")

        def __getitem__(self, i):
            address = self.data.ptr + i * self.strides[0]
            return ndarray(
                self.shape[1:], self.dtype, self.strides[1:], address, self.data.device_id
            )

    ndarray.__module__ = "cupy"

    def current(device_id):
        return types.SimpleNamespace(ptr=pool.stream)

    module.ndarray, module.from_dlpack = ndarray, lambda array: array
    module.cuda = types.SimpleNamespace(get_current_stream=current)
    sys.modules["cupy"] = module
    return module


def give_exchange(torch, pool):
    """DLPack's exchange for C, and what makes tensors for compiled code, as newer PyTorch has them;
    the table is to be kept."""
    from test_foreign import CurrentStream, Exchange, Tensor, TensorOf, _capsule

    def tensor_of(given, out):
        given.sizes = (ctypes.c_int64 * 8)(*given.shape), (ctypes.c_int64 * 8)(*given.strides)
        out[0].data, out[0].device_type, out[0].device_id = given.address, 2, given.on
        out[0].ndim, out[0].code, out[0].lanes = len(given.shape), 2, 1
        out[0].bits, out[0].byte_offset = 8 * ITEMS[given.dtype.name], 0
        out[0].shape, out[0].strides = given.sizes
        return 0

    def current(kind, device, out):
        out[0] = pool.stream
        return 0

    assert Tensor.byte_offset.offset + 8 == ctypes.sizeof(Tensor) - 16
    table = Exchange(1, 3, None, (None, None, None), TensorOf(tensor_of))
    table.current_stream = CurrentStream(current)
    capsule = _capsule(ctypes.addressof(table), b"dlpack_exchange_api", None)
    torch.Tensor.__dlpack_c_exchange_api__ = capsule
    guards = types.SimpleNamespace(_empty_strided_cuda=torch.empty_strided)
    torch._C._dynamo = types.SimpleNamespace(guards=guards)
    return table, capsule
