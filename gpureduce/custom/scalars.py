"""The numbers that operators reckon with, as C, NumPy and a device know them."""

from typing import NamedTuple

import numpy as np

from gpureduce.bfloat import bfloat16


class Scalar(NamedTuple):
    """kind: b bool, i and u integers, f floats, h floats of 16 bits, which are widened to f4 when
    they are read."""

    name: str
    kind: str
    bits: int
    c: str

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def bytes(self) -> int:
        return max(self.bits // 8, 1)

    @property
    def stored(self) -> str:
        """The type in memory."""
        return "uint8_t" if self.kind == "b" else self.c

    @property
    def numpy(self) -> np.dtype:
        """Of arrays in memory: 16-bit floats that NumPy may lack go as their bits."""
        return np.dtype({"b1": "?", "e2": "f2", "bf16": "u2"}.get(self.name, self.name))

    @property
    def unsigned(self) -> str:
        """What wraps around without C's undefined overflow, and is not promoted to int."""
        return f"uint{max(self.bits, 32)}_t"


BOOL = Scalar("b1", "b", 8, "bool")
INTS = {
    f"{kind}{bits // 8}": Scalar(
        f"{kind}{bits // 8}", kind, bits, f"{'u' * (kind == 'u')}int{bits}_t"
    )
    for kind in "iu"
    for bits in (8, 16, 32, 64)
}
I4, I8, U4, U8 = (INTS[name] for name in ("i4", "i8", "u4", "u8"))
F4 = Scalar("f4", "f", 32, "float")
F8 = Scalar("f8", "f", 64, "double")
HALF = Scalar("e2", "h", 16, "uint16_t")
BFLOAT = Scalar("bf16", "h", 16, "uint16_t")
ALL = {scalar.name: scalar for scalar in (BOOL, *INTS.values(), F4, F8, HALF, BFLOAT)}


class Kind(NamedTuple):
    """A dtype of an element or a field: a scalar, a complex number of two, or an exact sum."""

    part: Scalar
    is_complex: bool = False
    is_exact: bool = False

    @property
    def dtype(self) -> np.dtype:
        if self.is_complex:
            return np.dtype("c8" if self.part is F4 else "c16")
        if self.part is BFLOAT:
            return bfloat16()
        return self.part.numpy

    @property
    def parts(self) -> int:
        return 1 + self.is_complex


def kind_of(dtype: np.dtype) -> Kind | None:
    """None of what is no number, or none that devices know."""
    if dtype.name == "bfloat16":
        return Kind(BFLOAT)
    if dtype.kind == "c" and dtype.itemsize in (8, 16):
        return Kind(F4 if dtype.itemsize == 8 else F8, True)
    if dtype.kind == "b":
        return Kind(BOOL)
    if dtype.kind == "f" and dtype.itemsize == 2:
        return Kind(HALF)
    if dtype.kind in "iuf" and dtype.itemsize <= 8:
        return Kind(ALL[f"{dtype.kind}{dtype.itemsize}"])
    return None


def read_as(scalar: Scalar) -> Scalar:
    """What it is in a calculation."""
    return F4 if scalar.kind == "h" else scalar


def promoted_as_c(x: Scalar, y: Scalar) -> Scalar:
    """C's usual arithmetic conversions."""
    if x.is_float or y.is_float:
        return F8 if F8 in (x, y) else F4
    x, y = (I4 if s.bits < 32 or s is BOOL else s for s in (x, y))
    if x.bits != y.bits:
        return x if x.bits > y.bits else y
    return x if x.kind == "u" else y


def promoted_as_numpy(x: Scalar, y: Scalar) -> Scalar:
    return ALL[f"{(d := np.result_type(x.numpy, y.numpy)).kind}{d.itemsize}"]
