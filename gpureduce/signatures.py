# fmt: off
"""The functions as type checkers see them, made by `make stubs`. Nothing imports it at run time.

An array of NumPy gives a scalar of its dtype's kind, or an array where axes are left; an array of
another library gives one of its own; of what has no dtype, lists and the like, scalars are Any.
"""

from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any, Literal, Protocol, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

Axes = SupportsIndex | tuple[SupportsIndex, ...]
Progress = bool | Callable[[int, int], object]
Place = str | Sequence[str]
Integer = np.bool_ | np.integer[Any]
Signed = np.bool_ | np.signedinteger[Any]
Unsigned = np.unsignedinteger[Any]


class DLPack(Protocol):
    """An array of a library, such as a tensor of PyTorch."""

    @property
    def shape(self) -> Any: ...
    def __dlpack__(self) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, Any]: ...


S = TypeVar("S", bound=np.generic)
Kept = TypeVar("Kept", bound=np.inexact[Any] | np.timedelta64)
Real = TypeVar("Real", bound=np.floating[Any])
Tensor = TypeVar("Tensor", bound=DLPack)
Out = TypeVar("Out", bound=DLPack | tuple[DLPack, DLPack])


class MinFunction(Protocol):
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None, *, out: Out,
        keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ..., device: Place = ...,
        kernel: str | None = ..., progress: Progress = ...) -> Out: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, *, out: EllipsisType,
        keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ..., device: Place = ...,
        kernel: str | None = ..., progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: NDArray[S], axis: None = None, out: None = None,
        keepdims: Literal[False] = ..., initial: Any = ..., where: ArrayLike = ..., *,
        device: Place = ..., kernel: str | None = ..., progress: Progress = ...) -> S: ...
    @overload
    def __call__(self, a: NDArray[S], axis: Axes, out: None = None, keepdims: bool = ...,
        initial: Any = ..., where: ArrayLike = ..., *, device: Place = ...,
        kernel: str | None = ..., progress: Progress = ...) -> NDArray[S]: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, out: None = None, *,
        keepdims: Literal[True], initial: Any = ..., where: ArrayLike = ..., device: Place = ...,
        kernel: str | None = ..., progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: Tensor, axis: Axes, out: None = None, keepdims: bool = ...,
        initial: Any = ..., where: ArrayLike = ..., *, device: Place = ...,
        kernel: str | None = ..., progress: Progress = ...) -> Tensor: ...
    @overload
    def __call__(self, a: ArrayLike, axis: Axes, out: None = None, keepdims: bool = ...,
        initial: Any = ..., where: ArrayLike = ..., *, device: Place = ...,
        kernel: str | None = ..., progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None, out: None = None,
        keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ..., *, device: Place = ...,
        kernel: str | None = ..., progress: Progress = ...) -> Any: ...


class AnyFunction(Protocol):
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None, *, out: Out,
        keepdims: bool = ..., where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> Out: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, *, out: EllipsisType,
        keepdims: bool = ..., where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes, out: None = None, keepdims: bool = ..., *,
        where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> NDArray[np.bool_]: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, out: None = None, *,
        keepdims: Literal[True], where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> NDArray[np.bool_]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: None = None, out: None = None,
        keepdims: Literal[False] = ..., *, where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> np.bool_: ...
    @overload
    def __call__(self, a: Tensor, axis: Axes, out: None = None, keepdims: bool = ..., *,
        where: ArrayLike = ..., device: Place = ..., progress: Progress = ...) -> Tensor: ...
    @overload
    def __call__(self, a: ArrayLike, axis: Axes, out: None = None, keepdims: bool = ..., *,
        where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> NDArray[np.bool_]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None, out: None = None,
        keepdims: bool = ..., *, where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> Any: ...


class CountNonzeroFunction(Protocol):
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes, *, keepdims: bool = ..., device: Place = ...,
        progress: Progress = ...) -> NDArray[np.int64]: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, *, keepdims: Literal[True],
        device: Place = ..., progress: Progress = ...) -> NDArray[np.int64]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: None = None, *, keepdims: Literal[False] = ...,
        device: Place = ..., progress: Progress = ...) -> np.int64: ...
    @overload
    def __call__(self, a: Tensor, axis: Axes, *, keepdims: bool = ..., device: Place = ...,
        progress: Progress = ...) -> Tensor: ...
    @overload
    def __call__(self, a: ArrayLike, axis: Axes, *, keepdims: bool = ..., device: Place = ...,
        progress: Progress = ...) -> NDArray[np.int64]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None, *, keepdims: bool = ...,
        device: Place = ..., progress: Progress = ...) -> Any: ...


class PtpFunction(Protocol):
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None, *, out: Out,
        keepdims: bool = ..., device: Place = ..., progress: Progress = ...) -> Out: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, *, out: EllipsisType,
        keepdims: bool = ..., device: Place = ..., progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: NDArray[Kept], axis: None = None, out: None = None,
        keepdims: Literal[False] = ..., *, device: Place = ...,
        progress: Progress = ...) -> Kept: ...
    @overload
    def __call__(self, a: NDArray[np.integer[Any]], axis: None = None, out: None = None,
        keepdims: Literal[False] = ..., *, device: Place = ...,
        progress: Progress = ...) -> np.integer[Any]: ...
    @overload
    def __call__(self, a: NDArray[Kept], axis: Axes, out: None = None, keepdims: bool = ..., *,
        device: Place = ..., progress: Progress = ...) -> NDArray[Kept]: ...
    @overload
    def __call__(self, a: NDArray[np.integer[Any]], axis: Axes, out: None = None,
        keepdims: bool = ..., *, device: Place = ...,
        progress: Progress = ...) -> NDArray[np.integer[Any]]: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, out: None = None, *,
        keepdims: Literal[True], device: Place = ..., progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: Tensor, axis: Axes, out: None = None, keepdims: bool = ..., *,
        device: Place = ..., progress: Progress = ...) -> Tensor: ...
    @overload
    def __call__(self, a: ArrayLike, axis: Axes, out: None = None, keepdims: bool = ..., *,
        device: Place = ..., progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None, out: None = None,
        keepdims: bool = ..., *, device: Place = ..., progress: Progress = ...) -> Any: ...


class MinmaxFunction(Protocol):
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None, *, out: Out,
        keepdims: bool = ..., device: Place = ..., progress: Progress = ...) -> Out: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, *, out: EllipsisType,
        keepdims: bool = ..., device: Place = ...,
        progress: Progress = ...) -> tuple[NDArray[Any], NDArray[Any]]: ...
    @overload
    def __call__(self, a: NDArray[S], axis: None = None, out: None = None,
        keepdims: Literal[False] = ..., *, device: Place = ...,
        progress: Progress = ...) -> tuple[S, S]: ...
    @overload
    def __call__(self, a: NDArray[S], axis: Axes, out: None = None, keepdims: bool = ..., *,
        device: Place = ..., progress: Progress = ...) -> tuple[NDArray[S], NDArray[S]]: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, out: None = None, *,
        keepdims: Literal[True], device: Place = ...,
        progress: Progress = ...) -> tuple[NDArray[Any], NDArray[Any]]: ...
    @overload
    def __call__(self, a: Tensor, axis: Axes, out: None = None, keepdims: bool = ..., *,
        device: Place = ..., progress: Progress = ...) -> tuple[Tensor, Tensor]: ...
    @overload
    def __call__(self, a: ArrayLike, axis: Axes, out: None = None, keepdims: bool = ..., *,
        device: Place = ..., progress: Progress = ...) -> tuple[NDArray[Any], NDArray[Any]]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None, out: None = None,
        keepdims: bool = ..., *, device: Place = ..., progress: Progress = ...) -> Any: ...


class ArgminmaxFunction(Protocol):
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None, *, out: Out,
        keepdims: bool = ..., device: Place = ..., progress: Progress = ...) -> Out: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, *, out: EllipsisType,
        keepdims: bool = ..., device: Place = ...,
        progress: Progress = ...) -> tuple[NDArray[Any], NDArray[Any]]: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes, out: None = None, *, keepdims: bool = ...,
        device: Place = ...,
        progress: Progress = ...) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, out: None = None, *,
        keepdims: Literal[True], device: Place = ...,
        progress: Progress = ...) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: None = None, out: None = None, *,
        keepdims: Literal[False] = ..., device: Place = ...,
        progress: Progress = ...) -> tuple[np.int64, np.int64]: ...
    @overload
    def __call__(self, a: Tensor, axis: Axes, out: None = None, *, keepdims: bool = ...,
        device: Place = ..., progress: Progress = ...) -> tuple[Tensor, Tensor]: ...
    @overload
    def __call__(self, a: ArrayLike, axis: Axes, out: None = None, *, keepdims: bool = ...,
        device: Place = ...,
        progress: Progress = ...) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None, out: None = None, *,
        keepdims: bool = ..., device: Place = ..., progress: Progress = ...) -> Any: ...


class NanminFunction(Protocol):
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None, *, out: Out,
        keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> Out: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, *, out: EllipsisType,
        keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: NDArray[S], axis: None = None, out: None = None,
        keepdims: Literal[False] = ..., initial: Any = ..., where: ArrayLike = ..., *,
        device: Place = ..., progress: Progress = ...) -> S: ...
    @overload
    def __call__(self, a: NDArray[S], axis: Axes, out: None = None, keepdims: bool = ...,
        initial: Any = ..., where: ArrayLike = ..., *, device: Place = ...,
        progress: Progress = ...) -> NDArray[S]: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, out: None = None, *,
        keepdims: Literal[True], initial: Any = ..., where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: Tensor, axis: Axes, out: None = None, keepdims: bool = ...,
        initial: Any = ..., where: ArrayLike = ..., *, device: Place = ...,
        progress: Progress = ...) -> Tensor: ...
    @overload
    def __call__(self, a: ArrayLike, axis: Axes, out: None = None, keepdims: bool = ...,
        initial: Any = ..., where: ArrayLike = ..., *, device: Place = ...,
        progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None, out: None = None,
        keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ..., *, device: Place = ...,
        progress: Progress = ...) -> Any: ...


class ArgminFunction(Protocol):
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None, *, out: Out,
        keepdims: bool = ..., device: Place = ..., progress: Progress = ...) -> Out: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, *, out: EllipsisType,
        keepdims: bool = ..., device: Place = ..., progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes, out: None = None, *, keepdims: bool = ...,
        device: Place = ..., progress: Progress = ...) -> NDArray[np.int64]: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, out: None = None, *,
        keepdims: Literal[True], device: Place = ...,
        progress: Progress = ...) -> NDArray[np.int64]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: None = None, out: None = None, *,
        keepdims: Literal[False] = ..., device: Place = ...,
        progress: Progress = ...) -> np.int64: ...
    @overload
    def __call__(self, a: Tensor, axis: Axes, out: None = None, *, keepdims: bool = ...,
        device: Place = ..., progress: Progress = ...) -> Tensor: ...
    @overload
    def __call__(self, a: ArrayLike, axis: Axes, out: None = None, *, keepdims: bool = ...,
        device: Place = ..., progress: Progress = ...) -> NDArray[np.int64]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None, out: None = None, *,
        keepdims: bool = ..., device: Place = ..., progress: Progress = ...) -> Any: ...
