"""Arrays of other libraries in host memory: results along an axis are arrays of theirs."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import gpureduce
from gpureduce import array_api

A = np.arange(6.0, dtype=np.float32).reshape(2, 3)


class Tensor:
    """What a library's array is to us: __array__, and DLPack on the host."""

    def __init__(self, array):
        self.array = array
        self.shape, self.dtype = array.shape, array.dtype

    def __array__(self, dtype=None, copy=None):
        return self.array

    def __dlpack__(self, **options):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)

    def reshape(self, shape):
        return type(self)(self.array.reshape(shape))


@pytest.fixture(params=["torch", "jax"])
def tensor(request, monkeypatch):
    name = request.param
    library = ModuleType(name)
    kind = type("Tensor", (Tensor,), {"__module__": f"{name}.core"})
    library.Tensor, library.from_numpy = kind, kind
    library.numpy, library.bfloat16 = SimpleNamespace(asarray=kind), None
    library.config = SimpleNamespace(jax_enable_x64=False)
    monkeypatch.setitem(sys.modules, name, library)
    return kind


def test_along_an_axis_it_is_a_tensor(tensor):
    got = gpureduce.sum(tensor(A), axis=0)
    assert isinstance(got, tensor) and np.array_equal(got.array, A.sum(0))
    low, high = gpureduce.minmax(tensor(A), axis=1)
    assert isinstance(low, tensor) and isinstance(high, tensor)
    assert isinstance(gpureduce.sum(tensor(A), keepdims=True), tensor)
    assert isinstance(array_api.sum(tensor(A)), tensor)
    assert isinstance(array_api.max(tensor(A), axis=0), tensor)


def test_whole_arrays_give_scalars_and_out_is_out(tensor):
    assert isinstance(gpureduce.sum(tensor(A)), np.float32)
    out = np.empty(3, np.float32)
    assert gpureduce.sum(tensor(A), axis=0, out=out) is out


def test_what_the_library_would_narrow_stays_numpys(tensor):
    got = gpureduce.argmax(tensor(A), axis=0)
    is_jax = tensor.__module__.startswith("jax")
    assert type(got) is (np.ndarray if is_jax else tensor)


def test_others_stay_as_they_were():
    class Other(Tensor):
        pass

    assert type(gpureduce.sum(Other(A), axis=0)) is np.ndarray
    assert type(gpureduce.sum(A.tolist(), axis=0)) is np.ndarray
