# fmt: off
"""Sums, products, means and variances as type checkers see them, made by `make stubs`."""

from types import EllipsisType
from typing import Any, Literal, Protocol, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from gpureduce.signatures import (
    Axes,
    DLPack,
    Integer,
    Kept,
    Out,
    Place,
    Progress,
    Real,
    S,
    Signed,
    Tensor,
    Unsigned,
)


class SumFunction(Protocol):
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None,
        dtype: DTypeLike | None = None, *, out: Out, keepdims: bool = ..., initial: Any = ...,
        where: ArrayLike = ..., device: Place = ..., kernel: str | None = ...,
        progress: Progress = ...) -> Out: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, dtype: DTypeLike | None = None, *,
        out: EllipsisType, keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ...,
        device: Place = ..., kernel: str | None = ...,
        progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: None = None, *, dtype: type[S] | np.dtype[S],
        out: None = None, keepdims: Literal[False] = ..., initial: Any = ...,
        where: ArrayLike = ..., device: Place = ..., kernel: str | None = ...,
        progress: Progress = ...) -> S: ...
    @overload
    def __call__(self, a: ArrayLike, axis: Axes, *, dtype: type[S] | np.dtype[S], out: None = None,
        keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ..., device: Place = ...,
        kernel: str | None = ..., progress: Progress = ...) -> NDArray[S]: ...
    @overload
    def __call__(self, a: NDArray[Kept], axis: None = None, dtype: None = None, out: None = None,
        keepdims: Literal[False] = ..., initial: Any = ..., where: ArrayLike = ..., *,
        device: Place = ..., kernel: str | None = ..., progress: Progress = ...) -> Kept: ...
    @overload
    def __call__(self, a: NDArray[Signed], axis: None = None, dtype: None = None, out: None = None,
        keepdims: Literal[False] = ..., initial: Any = ..., where: ArrayLike = ..., *,
        device: Place = ..., kernel: str | None = ..., progress: Progress = ...) -> np.int64: ...
    @overload
    def __call__(self, a: NDArray[Unsigned], axis: None = None, dtype: None = None,
        out: None = None, keepdims: Literal[False] = ..., initial: Any = ...,
        where: ArrayLike = ..., *, device: Place = ..., kernel: str | None = ...,
        progress: Progress = ...) -> np.uint64: ...
    @overload
    def __call__(self, a: NDArray[Kept], axis: Axes, dtype: None = None, out: None = None,
        keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ..., *, device: Place = ...,
        kernel: str | None = ..., progress: Progress = ...) -> NDArray[Kept]: ...
    @overload
    def __call__(self, a: NDArray[Signed], axis: Axes, dtype: None = None, out: None = None,
        keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ..., *, device: Place = ...,
        kernel: str | None = ..., progress: Progress = ...) -> NDArray[np.int64]: ...
    @overload
    def __call__(self, a: NDArray[Unsigned], axis: Axes, dtype: None = None, out: None = None,
        keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ..., *, device: Place = ...,
        kernel: str | None = ..., progress: Progress = ...) -> NDArray[np.uint64]: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, dtype: DTypeLike | None = None,
        out: None = None, *, keepdims: Literal[True], initial: Any = ..., where: ArrayLike = ...,
        device: Place = ..., kernel: str | None = ...,
        progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: Tensor, axis: Axes, dtype: DTypeLike | None = None, out: None = None,
        keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ..., *, device: Place = ...,
        kernel: str | None = ..., progress: Progress = ...) -> Tensor: ...
    @overload
    def __call__(self, a: ArrayLike, axis: Axes, dtype: DTypeLike | None = None, out: None = None,
        keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ..., *, device: Place = ...,
        kernel: str | None = ..., progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None,
        dtype: DTypeLike | None = None, out: None = None, keepdims: bool = ..., initial: Any = ...,
        where: ArrayLike = ..., *, device: Place = ..., kernel: str | None = ...,
        progress: Progress = ...) -> Any: ...


class NansumFunction(Protocol):
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None,
        dtype: DTypeLike | None = None, *, out: Out, keepdims: bool = ..., initial: Any = ...,
        where: ArrayLike = ..., device: Place = ..., progress: Progress = ...) -> Out: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, dtype: DTypeLike | None = None, *,
        out: EllipsisType, keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ...,
        device: Place = ..., progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: None = None, *, dtype: type[S] | np.dtype[S],
        out: None = None, keepdims: Literal[False] = ..., initial: Any = ...,
        where: ArrayLike = ..., device: Place = ..., progress: Progress = ...) -> S: ...
    @overload
    def __call__(self, a: ArrayLike, axis: Axes, *, dtype: type[S] | np.dtype[S], out: None = None,
        keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> NDArray[S]: ...
    @overload
    def __call__(self, a: NDArray[Kept], axis: None = None, dtype: None = None, out: None = None,
        keepdims: Literal[False] = ..., initial: Any = ..., where: ArrayLike = ..., *,
        device: Place = ..., progress: Progress = ...) -> Kept: ...
    @overload
    def __call__(self, a: NDArray[Signed], axis: None = None, dtype: None = None, out: None = None,
        keepdims: Literal[False] = ..., initial: Any = ..., where: ArrayLike = ..., *,
        device: Place = ..., progress: Progress = ...) -> np.int64: ...
    @overload
    def __call__(self, a: NDArray[Unsigned], axis: None = None, dtype: None = None,
        out: None = None, keepdims: Literal[False] = ..., initial: Any = ...,
        where: ArrayLike = ..., *, device: Place = ..., progress: Progress = ...) -> np.uint64: ...
    @overload
    def __call__(self, a: NDArray[Kept], axis: Axes, dtype: None = None, out: None = None,
        keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ..., *, device: Place = ...,
        progress: Progress = ...) -> NDArray[Kept]: ...
    @overload
    def __call__(self, a: NDArray[Signed], axis: Axes, dtype: None = None, out: None = None,
        keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ..., *, device: Place = ...,
        progress: Progress = ...) -> NDArray[np.int64]: ...
    @overload
    def __call__(self, a: NDArray[Unsigned], axis: Axes, dtype: None = None, out: None = None,
        keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ..., *, device: Place = ...,
        progress: Progress = ...) -> NDArray[np.uint64]: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, dtype: DTypeLike | None = None,
        out: None = None, *, keepdims: Literal[True], initial: Any = ..., where: ArrayLike = ...,
        device: Place = ..., progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: Tensor, axis: Axes, dtype: DTypeLike | None = None, out: None = None,
        keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ..., *, device: Place = ...,
        progress: Progress = ...) -> Tensor: ...
    @overload
    def __call__(self, a: ArrayLike, axis: Axes, dtype: DTypeLike | None = None, out: None = None,
        keepdims: bool = ..., initial: Any = ..., where: ArrayLike = ..., *, device: Place = ...,
        progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None,
        dtype: DTypeLike | None = None, out: None = None, keepdims: bool = ..., initial: Any = ...,
        where: ArrayLike = ..., *, device: Place = ..., progress: Progress = ...) -> Any: ...


class MeanFunction(Protocol):
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None,
        dtype: DTypeLike | None = None, *, out: Out, keepdims: bool = ..., where: ArrayLike = ...,
        device: Place = ..., progress: Progress = ...) -> Out: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, dtype: DTypeLike | None = None, *,
        out: EllipsisType, keepdims: bool = ..., where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: None = None, *, dtype: type[S] | np.dtype[S],
        out: None = None, keepdims: Literal[False] = ..., where: ArrayLike = ...,
        device: Place = ..., progress: Progress = ...) -> S: ...
    @overload
    def __call__(self, a: ArrayLike, axis: Axes, *, dtype: type[S] | np.dtype[S], out: None = None,
        keepdims: bool = ..., where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> NDArray[S]: ...
    @overload
    def __call__(self, a: NDArray[Kept], axis: None = None, dtype: None = None, out: None = None,
        keepdims: Literal[False] = ..., *, where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> Kept: ...
    @overload
    def __call__(self, a: NDArray[Integer], axis: None = None, dtype: None = None, out: None = None,
        keepdims: Literal[False] = ..., *, where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> np.float64: ...
    @overload
    def __call__(self, a: NDArray[Kept], axis: Axes, dtype: None = None, out: None = None,
        keepdims: bool = ..., *, where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> NDArray[Kept]: ...
    @overload
    def __call__(self, a: NDArray[Integer], axis: Axes, dtype: None = None, out: None = None,
        keepdims: bool = ..., *, where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> NDArray[np.float64]: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, dtype: DTypeLike | None = None,
        out: None = None, *, keepdims: Literal[True], where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: Tensor, axis: Axes, dtype: DTypeLike | None = None, out: None = None,
        keepdims: bool = ..., *, where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> Tensor: ...
    @overload
    def __call__(self, a: ArrayLike, axis: Axes, dtype: DTypeLike | None = None, out: None = None,
        keepdims: bool = ..., *, where: ArrayLike = ..., device: Place = ...,
        progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None,
        dtype: DTypeLike | None = None, out: None = None, keepdims: bool = ..., *,
        where: ArrayLike = ..., device: Place = ..., progress: Progress = ...) -> Any: ...


class VarFunction(Protocol):
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None,
        dtype: DTypeLike | None = None, *, out: Out, ddof: float = 0, keepdims: bool = ...,
        where: ArrayLike = ..., mean: ArrayLike = ..., correction: float = ..., device: Place = ...,
        progress: Progress = ...) -> Out: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, dtype: DTypeLike | None = None, *,
        out: EllipsisType, ddof: float = 0, keepdims: bool = ..., where: ArrayLike = ...,
        mean: ArrayLike = ..., correction: float = ..., device: Place = ...,
        progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: None = None, *, dtype: type[S] | np.dtype[S],
        out: None = None, ddof: float = 0, keepdims: Literal[False] = ..., where: ArrayLike = ...,
        mean: ArrayLike = ..., correction: float = ..., device: Place = ...,
        progress: Progress = ...) -> S: ...
    @overload
    def __call__(self, a: ArrayLike, axis: Axes, *, dtype: type[S] | np.dtype[S], out: None = None,
        ddof: float = 0, keepdims: bool = ..., where: ArrayLike = ..., mean: ArrayLike = ...,
        correction: float = ..., device: Place = ..., progress: Progress = ...) -> NDArray[S]: ...
    @overload
    def __call__(self, a: NDArray[Real], axis: None = None, dtype: None = None, out: None = None,
        ddof: float = 0, keepdims: Literal[False] = ..., *, where: ArrayLike = ...,
        mean: ArrayLike = ..., correction: float = ..., device: Place = ...,
        progress: Progress = ...) -> Real: ...
    @overload
    def __call__(self, a: NDArray[Integer], axis: None = None, dtype: None = None, out: None = None,
        ddof: float = 0, keepdims: Literal[False] = ..., *, where: ArrayLike = ...,
        mean: ArrayLike = ..., correction: float = ..., device: Place = ...,
        progress: Progress = ...) -> np.float64: ...
    @overload
    def __call__(self, a: NDArray[Real], axis: Axes, dtype: None = None, out: None = None,
        ddof: float = 0, keepdims: bool = ..., *, where: ArrayLike = ..., mean: ArrayLike = ...,
        correction: float = ..., device: Place = ...,
        progress: Progress = ...) -> NDArray[Real]: ...
    @overload
    def __call__(self, a: NDArray[Integer], axis: Axes, dtype: None = None, out: None = None,
        ddof: float = 0, keepdims: bool = ..., *, where: ArrayLike = ..., mean: ArrayLike = ...,
        correction: float = ..., device: Place = ...,
        progress: Progress = ...) -> NDArray[np.float64]: ...
    @overload
    def __call__(self, a: NDArray[Any], axis: Axes | None = None, dtype: DTypeLike | None = None,
        out: None = None, ddof: float = 0, *, keepdims: Literal[True], where: ArrayLike = ...,
        mean: ArrayLike = ..., correction: float = ..., device: Place = ...,
        progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: Tensor, axis: Axes, dtype: DTypeLike | None = None, out: None = None,
        ddof: float = 0, keepdims: bool = ..., *, where: ArrayLike = ..., mean: ArrayLike = ...,
        correction: float = ..., device: Place = ..., progress: Progress = ...) -> Tensor: ...
    @overload
    def __call__(self, a: ArrayLike, axis: Axes, dtype: DTypeLike | None = None, out: None = None,
        ddof: float = 0, keepdims: bool = ..., *, where: ArrayLike = ..., mean: ArrayLike = ...,
        correction: float = ..., device: Place = ..., progress: Progress = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: ArrayLike | DLPack, axis: Axes | None = None,
        dtype: DTypeLike | None = None, out: None = None, ddof: float = 0, keepdims: bool = ..., *,
        where: ArrayLike = ..., mean: ArrayLike = ..., correction: float = ..., device: Place = ...,
        progress: Progress = ...) -> Any: ...
