"""Sixty typical calls with the types that checkers give them: mypy reads it, a test runs it."""

import typing
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import gpureduce

if TYPE_CHECKING:
    from typing_extensions import assert_type
else:

    def assert_type(value, kind):
        """The same at run time, for what has a type then."""
        if typing.get_origin(kind) is tuple:
            for one, of in zip(value, typing.get_args(kind), strict=True):
                assert_type(one, of)
        elif typing.get_origin(kind) is typing.get_origin(NDArray[Any]):
            of = typing.get_args(kind)[-1]  # the scalar, or the dtype of it
            of = typing.get_args(of)[0] if typing.get_args(of) else of
            assert isinstance(value, np.ndarray), value
            assert of is Any or issubclass(value.dtype.type, of), (value.dtype, of)
        elif kind is not Any:
            assert isinstance(value, typing.get_origin(kind) or kind), (type(value), kind)


class Tensor:
    """What stands for an array of another library."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def __dlpack__(self) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[Any, Any]:
        return self.array.__dlpack_device__()


def arithmetic(f4: NDArray[np.float32], i4: NDArray[np.int32], c8: NDArray[np.complex64]) -> None:
    assert_type(gpureduce.sum(f4), np.float32)
    assert_type(gpureduce.sum(f4, axis=0), NDArray[np.float32])
    assert_type(gpureduce.sum(f4, axis=(0, 1)), NDArray[np.float32])
    assert_type(gpureduce.sum(f4, None), np.float32)
    assert_type(gpureduce.sum(f4, -1), NDArray[np.float32])
    assert_type(gpureduce.sum(f4, dtype=np.float64), np.float64)
    assert_type(gpureduce.sum(f4, axis=0, dtype=np.float64), NDArray[np.float64])
    assert_type(gpureduce.sum(f4, axis=1, keepdims=True), NDArray[np.float32])
    assert_type(gpureduce.sum(f4, keepdims=True), NDArray[Any])
    assert_type(gpureduce.sum(f4, where=f4 > 0), np.float32)
    assert_type(gpureduce.sum(f4, initial=3), np.float32)
    assert_type(gpureduce.sum(i4), np.int64)
    assert_type(gpureduce.sum(i4, axis=0), NDArray[np.int64])
    assert_type(gpureduce.sum(i4 > 0), np.int64)
    u1 = i4.astype(np.uint8)
    assert_type(gpureduce.sum(u1), np.uint64)
    assert_type(gpureduce.sum(c8), np.complex64)
    assert_type(gpureduce.sum([1.0, 2.0]), Any)
    assert_type(gpureduce.sum([[1.0, 2.0]], axis=0), NDArray[Any])
    assert_type(gpureduce.sum(f4, device="cpu"), np.float32)
    assert_type(gpureduce.sum(f4, progress=lambda done, total: None), np.float32)
    assert_type(gpureduce.prod(f4), np.float32)
    assert_type(gpureduce.prod(i4, axis=0), NDArray[np.int64])
    assert_type(gpureduce.nansum(f4), np.float32)
    assert_type(gpureduce.nansum(f4, axis=0), NDArray[np.float32])
    assert_type(gpureduce.mean(f4), np.float32)
    assert_type(gpureduce.mean(i4), np.float64)
    assert_type(gpureduce.mean(f4, axis=0), NDArray[np.float32])
    assert_type(gpureduce.mean(i4, axis=0), NDArray[np.float64])
    assert_type(gpureduce.mean(f4, axis=0, dtype=np.float64), NDArray[np.float64])
    assert_type(gpureduce.mean([1, 2]), Any)
    assert_type(gpureduce.nanmean(f4, axis=-1), NDArray[np.float32])
    assert_type(gpureduce.var(f4), np.float32)
    assert_type(gpureduce.var(f4, ddof=1), np.float32)
    assert_type(gpureduce.var(i4, axis=0), NDArray[np.float64])
    assert_type(gpureduce.std(f4, axis=0, ddof=1), NDArray[np.float32])
    assert_type(gpureduce.nanstd(f4), np.float32)


def elements(f8: NDArray[np.float64], i4: NDArray[np.int32], out: NDArray[np.float64]) -> None:
    assert_type(gpureduce.min(f8), np.float64)
    assert_type(gpureduce.max(f8, axis=0), NDArray[np.float64])
    assert_type(gpureduce.max(i4), np.int32)
    assert_type(gpureduce.amax(i4, axis=0), NDArray[np.int32])
    assert_type(gpureduce.max(f8, initial=0.0), np.float64)
    assert_type(gpureduce.max(f8, axis=0, out=out), NDArray[np.float64])
    assert_type(gpureduce.nanmax(f8), np.float64)
    assert_type(gpureduce.nanmin(f8, axis=0), NDArray[np.float64])
    assert_type(gpureduce.ptp(f8), np.float64)
    assert_type(gpureduce.ptp(f8, axis=0), NDArray[np.float64])
    assert_type(gpureduce.minmax(f8), tuple[np.float64, np.float64])
    assert_type(gpureduce.minmax(f8, axis=0), tuple[NDArray[np.float64], NDArray[np.float64]])
    assert_type(gpureduce.max([3, 1]), Any)
    assert_type(gpureduce.sum(f8, axis=0, out=out), NDArray[np.float64])
    assert_type(gpureduce.sum(f8, out=...), NDArray[Any])
    assert_type(gpureduce.max(f8, axis=0, out=...), NDArray[Any])


def others(f8: NDArray[np.float64]) -> None:
    assert_type(gpureduce.argmax(f8), np.int64)
    assert_type(gpureduce.argmin(f8, axis=0), NDArray[np.int64])
    assert_type(gpureduce.argmax([3, 1]), np.int64)
    assert_type(gpureduce.nanargmax(f8), np.int64)
    assert_type(gpureduce.argminmax(f8), tuple[np.int64, np.int64])
    assert_type(gpureduce.any(f8), np.bool_)
    assert_type(gpureduce.all(f8 > 0, axis=0), NDArray[np.bool_])
    assert_type(gpureduce.any([0, 1]), np.bool_)
    assert_type(gpureduce.count_nonzero(f8), np.int64)
    assert_type(gpureduce.count_nonzero(f8, axis=0), NDArray[np.int64])
    assert_type(gpureduce.reduce(f8, "add"), Any)
    assert_type(gpureduce.dtypes(), list[str])


def tensors(tensor: Tensor) -> None:
    """Read alone: no such array is on the machine that runs the tests."""
    assert_type(gpureduce.sum(tensor, axis=0), Tensor)
    assert_type(gpureduce.max(tensor, axis=(0, 1)), Tensor)
    assert_type(gpureduce.argmax(tensor, axis=0), Tensor)
    assert_type(gpureduce.minmax(tensor, axis=0), tuple[Tensor, Tensor])
    assert_type(gpureduce.sum(tensor), Any)
    assert_type(gpureduce.sum(tensor, dtype=np.float64), np.float64)


def wrong(f8: NDArray[np.float64]) -> None:
    """Each is an error to a checker, which complains of an ignore that ignores nothing."""
    gpureduce.sum(f8, axs=0)  # type: ignore[call-overload]
    gpureduce.sum(f8, axis="x")  # type: ignore[call-overload]
    gpureduce.max(f8, dtype=np.float32)  # type: ignore[call-overload]
    gpureduce.sum(f8, device=3)  # type: ignore[call-overload]
    gpureduce.nansum(f8, kernel="default")  # type: ignore[call-overload]
    gpureduce.argmax(f8, where=f8 > 0)  # type: ignore[call-overload]


def run() -> None:
    f8 = np.arange(1.0, 7.0).reshape(2, 1, 3)
    arithmetic(f8.astype(np.float32), f8.astype(np.int32), f8.astype(np.complex64))
    elements(f8, f8.astype(np.int32), np.empty((1, 3)))
    others(f8)
