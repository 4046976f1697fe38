"""Trees of products: what is folded along the one tree over the index, as far as it is known."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpureduce import functions
from gpureduce.partial.kinds import Kind, number_of, text_of

Array = NDArray[Any]
# 16-bit floats multiply in float32 and are rounded at the root.
_WIDE = {"float16": "float32", "bfloat16": "float32"}
_KNOWN = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def _plain_nan(x: Array) -> Array:
    """The one NaN of results: equal products have equal bytes."""
    x[x != x] = np.nan
    return x


class Product:
    """How a part of the index becomes a node, and two neighbours one."""

    has_bytes = True

    def __init__(self, name: str, dtype: np.dtype[Any]):
        self.name, self.dtype, self.asked = name, dtype, None
        self.slots = (np.dtype(_WIDE.get(dtype.name, dtype.name)),)

    def fold(self, x: Array, axes: tuple[int, ...], where: Any) -> list[Array]:
        reduce = functions.PUBLIC[self.name]
        product = reduce(x, axis=axes, dtype=self.slots[0], where=where, device="cpu")
        return [np.asarray(product)]

    def combine(self, left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
        a, b = left[0], right[0]
        with np.errstate(all="ignore"):
            if self.dtype.kind != "c":
                return [_plain_nan(np.asarray(a * b))]
            both = np.empty_like(a)  # NumPy's own complex product may fuse
            both.real = _plain_nan(np.asarray(a.real * b.real - a.imag * b.imag))
            both.imag = _plain_nan(np.asarray(a.real * b.imag + a.imag * b.real))
        return [both]

    def neutral(self, shape: tuple[int, ...]) -> list[Array]:
        return [np.ones(shape, self.slots[0])]

    def finish(self, root: Sequence[Array]) -> Any:
        """As functions.prod ends: NaN is the one NaN, and rounded once."""
        plain = functions.PUBLIC["prod"](root[0][np.newaxis], axis=0)
        with np.errstate(over="ignore"):
            return np.asarray(plain).astype(self.dtype)[()]


def product_kind(name: str, dtype: np.dtype[Any], function: str) -> Kind:
    if dtype.name not in _KNOWN:
        raise TypeError(f"gpureduce.{function}: there are no partials of {name} of {dtype}")
    answers = ("nanprod",) if name == "nanprod" else ("prod",)
    tree = Product(name, dtype)
    text = text_of(f"{name} along the tree", dtype)
    return Kind(name, dtype, 0, False, answers, text, tree, number_of(text))
