"""What the right answer is: exact integers and fractions, a short tree, NumPy for the rest."""

import math
from fractions import Fraction

import numpy as np
from arrays import is_float, real_of

# Bits of precision (the hidden one counted), exponents of the least subnormal and of the largest.
FORMATS = {
    "float16": (11, -24, 15),
    "bfloat16": (8, -133, 127),
    "float32": (24, -149, 127),
    "float64": (53, -1074, 1023),
}


def nan(dtype):
    """The one NaN that results have: positive, quiet, without payload."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    quiet = 1 << (FORMATS[dtype.name][0] - 2)
    return np.array(np.array(np.inf, dtype).view(unsigned) | unsigned.type(quiet)).view(dtype)[()]


def nearest(x, dtype):
    """A Fraction rounded once, to nearest even, into a float format. Zero is +0.0."""
    precision, smallest, largest = FORMATS[dtype.name]
    x = Fraction(x)
    if x == 0:
        return dtype.type(0)
    exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
    if abs(x) < Fraction(2) ** exponent:
        exponent -= 1
    unit = max(exponent - precision + 1, smallest)
    count = round(x / Fraction(2) ** unit)  # Python rounds a Fraction half to even
    magnitude = Fraction(2) ** unit * abs(count)
    overflows = magnitude >= Fraction(2) ** (largest + 1)
    value = math.inf if overflows else float(magnitude)
    with np.errstate(all="ignore"):
        return dtype.type(-value if x < 0 else value)


def exact_integer(x):
    """The sum of finite float64 as an integer in units of 2^-1074, by exponent and half."""
    words = x.view(np.int64)
    field = words >> 52 & 0x7FF
    mantissa = (words & (2**52 - 1)) | (field > 0).astype(np.int64) << 52
    mantissa = np.where(words < 0, -mantissa, mantissa)
    shift = np.maximum(field, 1) - 1
    low, high = np.zeros(2048, np.int64), np.zeros(2048, np.int64)
    np.add.at(low, shift, mantissa & 0xFFFFFFFF)
    np.add.at(high, shift, mantissa >> 32)
    return sum((int(low[k]) + (int(high[k]) << 32)) << int(k) for k in np.unique(shift))


def exact_sum(a):
    """The sum of finite floats as a Fraction."""
    return Fraction(exact_integer(a.astype(np.float64).reshape(-1)), 2**1074)


def float_sum(a, dtype, over=1):
    """The exact sum divided by `over`, rounded once into dtype."""
    with np.errstate(all="ignore"):
        x = a.astype(np.float64).reshape(-1)
    plus, minus = np.isposinf(x).any(), np.isneginf(x).any()
    if np.isnan(x).any() or (plus and minus) or over == 0:
        return nan(dtype)
    if plus or minus:
        return dtype.type(np.inf if plus else -np.inf)
    total = exact_sum(x)
    if total == 0:
        only_minus = len(x) > 0 and bool((np.signbit(x) & (x == 0)).all())
        return dtype.type(-0.0 if only_minus else 0.0)
    return nearest(total / over, dtype)


def exact_squares(x):
    """The sum of the squares of finite float64 as an integer in units of 2^-2148."""
    words = x.view(np.int64)
    field = words >> 52 & 0x7FF
    mantissa = (words & (2**52 - 1)) | (field > 0).astype(np.int64) << 52
    shift = np.maximum(field, 1) - 1
    high, low = mantissa >> 27, mantissa & (2**27 - 1)
    total = 0
    for part, offset in ((high * high, 54), (2 * high * low, 27), (low * low, 0)):
        for bits, more in ((part & 0xFFFFFFFF, 0), (part >> 32, 32)):
            sums = np.zeros(2048, np.int64)
            np.add.at(sums, shift, bits)
            for k in np.flatnonzero(sums):
                total += int(sums[k]) << (2 * int(k) + offset + more)
    return total


def nearest_root(x, dtype):
    """The square root of a Fraction rounded once: its first bits, and whether more follow."""
    x = Fraction(x)
    shift = max(0, 256 - x.numerator.bit_length() + x.denominator.bit_length()) // 2 * 2
    scaled = (x.numerator << shift) // x.denominator
    root = math.isqrt(scaled)
    exact = Fraction(scaled, 2**shift) == x and root * root == scaled
    return nearest(Fraction(2 * root + (not exact), 2 ** (shift // 2 + 1)), dtype)


def moments(a):
    """Fractions Σx and Σx² of finite real numbers of any kind."""
    if a.dtype.kind in "biu":
        values = truth(a).reshape(-1).tolist()
        return Fraction(sum(map(int, values))), Fraction(sum(int(v) ** 2 for v in values))
    x = a.astype(np.float64).reshape(-1)
    return exact_sum(x), Fraction(exact_squares(x), 2**2148)


def result_ticks(ticks, dtype):
    return np.array(ticks, np.int64).view(dtype)[()]


def by_parts(f, a, dtype):
    """f on a float array, or on both parts of a complex one."""
    if a.dtype.kind != "c":
        return f(a, dtype)
    real = real_of(dtype)
    return np.array([f(a.real, real), f(a.imag, real)]).view(dtype)[0]


def wrap(total, dtype):
    """A Python integer in 64 bits, as NumPy's integers wrap."""
    return np.array(total % 2**64, np.uint64).view(dtype)[()]


def truth(a):
    """Booleans of any byte as 0 and 1, which NumPy's own loops do not all do."""
    return a.view(np.uint8) != 0 if a.dtype.kind == "b" else a


def plain(value, dtype):
    """NaNs as the one NaN, in each part."""
    value = np.array(value, dtype)
    parts = value.reshape(1).view(real_of(dtype))
    parts[np.isnan(parts)] = nan(parts.dtype)
    return value[()]


# --- one function an operator: (array, result dtype) -> scalar ------------------------------------


def sum_of(a, result):
    if a.dtype.kind == "m":
        ticks = sum(a.astype(np.int64).reshape(-1).tolist())
        total = wrap(ticks, np.dtype(np.int64))
        return result_ticks(np.iinfo(np.int64).min if np.isnat(a).any() else total, result)
    if a.dtype.kind in "biu":
        return wrap(sum(truth(a).reshape(-1).tolist()), result)
    return by_parts(float_sum, a, result)


def mean_of(a, result):
    if a.dtype.kind == "m":  # from NumPy 2.5 on, its own sum raises where it would wrap
        total = sum_of(a, result)
        if np.isnat(total) or not a.size:
            return result_ticks(np.iinfo(np.int64).min, result)
        ticks = int(total.astype(np.int64))
        return result_ticks(abs(ticks) // a.size * (1 if ticks >= 0 else -1), result)
    if a.dtype.kind in "biu":
        total = sum(truth(a).reshape(-1).tolist())
        return nearest(Fraction(total, a.size), result) if a.size else nan(result)
    return by_parts(lambda x, dtype: float_sum(x, dtype, x.size), a, result)


def tree(x, combine):
    """Neighbours first; what has no right neighbour passes through. x[..., index]."""
    while x.shape[-1] > 1:
        even = x.shape[-1] // 2 * 2
        x = np.concatenate([combine(x[..., 0:even:2], x[..., 1:even:2]), x[..., even:]], axis=-1)
    return x[..., 0]


def times(a, b):
    """Real numbers in one row; complex ones in two, by the plain formula."""
    if len(a) == 1:
        return a * b
    return np.stack([a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]])


def times_matrices(a, b):
    """2 x 2 matrices in four rows, as C order has them."""
    return np.stack(
        [
            a[0] * b[0] + a[1] * b[2],
            a[0] * b[1] + a[1] * b[3],
            a[2] * b[0] + a[3] * b[2],
            a[2] * b[1] + a[3] * b[3],
        ]
    )


def matmul_of(a, result, initial=None):
    """The product of matrices (n, 2, 2); initial stands to the left of all."""
    with np.errstate(all="ignore"):
        x = np.ascontiguousarray(a.reshape(-1, 4).astype(result).T)
        root = tree(x, times_matrices) if len(a) else np.eye(2, dtype=result).reshape(4)
        if initial is not None:
            root = times_matrices(np.asarray(initial, result).reshape(4), root)
    if result.kind == "f":
        root[np.isnan(root)] = nan(result)
    return root.reshape(2, 2)


def wide_parts(a):
    """One row of the real numbers that products are taken in, or two."""
    wide = np.dtype(np.float64) if real_of(a.dtype).itemsize == 8 else np.dtype(np.float32)
    flat = a.reshape(-1)
    rows = [flat.real, flat.imag] if a.dtype.kind == "c" else [flat]
    return np.stack([row.astype(wide) for row in rows])


def prod_of(a, result, initial=None):
    if a.dtype.kind in "biu":
        with np.errstate(all="ignore"):
            return np.prod(truth(a), dtype=result)
    with np.errstate(all="ignore"):
        x = wide_parts(a)
        one = np.array([[1], [0]][: len(x)], x.dtype)
        root = tree(x, times) if a.size else one[:, 0]
        if initial is not None:
            root = times(wide_parts(np.array([initial], result)), root[:, None])[:, 0]
        parts = root.astype(real_of(result))
        return plain(parts.view(result)[0], result)


def has_nan(a):
    with np.errstate(invalid="ignore"):  # NumPy's comparison of complex128 may say so
        return bool((a != a).any())


def extreme_of(a, greatest):
    """min and max: -0.0 below +0.0; complex by real part, imaginary part, then signs of zeros."""
    flat = truth(a).reshape(-1)
    if flat.dtype.kind in "biumM":
        return flat.max() if greatest else flat.min()
    if has_nan(flat):
        spoiled = complex(np.nan, np.nan) if flat.dtype.kind == "c" else np.nan
        return plain(spoiled, flat.dtype)
    rows = wide_parts(flat)
    keys = [*rows, *(~np.signbit(row) for row in rows)]  # the first decides, the last breaks ties
    order = np.lexsort(keys[::-1])
    return flat[order[-1 if greatest else 0]]


def min_of(a, result):
    return extreme_of(a, False)


def max_of(a, result):
    return extreme_of(a, True)


def ptp_of(a, result):
    if a.dtype.kind in "mM":
        if np.isnat(a).any():
            return result_ticks(np.iinfo(np.int64).min, result)
        ticks = a.astype(np.int64)
        return result_ticks(wrap(int(ticks.max()) - int(ticks.min()), np.dtype(np.int64)), result)
    if not (is_float(a.dtype) or a.dtype.kind == "c"):
        with np.errstate(all="ignore"):
            return np.ptp(a)
    with np.errstate(all="ignore"):
        high, low = (wide_parts(np.array([extreme_of(a, g)])) for g in (True, False))
        parts = (high - low)[:, 0].astype(real_of(result))
        return plain(parts.view(result)[0], result)


def comparable(a):
    """bfloat16 as the float32 of the same values, which NumPy knows how to order."""
    return a.astype(np.float32) if a.dtype.name == "bfloat16" else truth(a)


def argmin_of(a, result):
    return result.type(np.argmin(comparable(a)))


def argmax_of(a, result):
    return result.type(np.argmax(comparable(a)))


def count_of(a, result):
    return result.type(np.count_nonzero(comparable(a)))


def any_of(a, result):
    return np.bool_(count_of(a, np.dtype(np.int64)) > 0)


def all_of(a, result):
    return np.bool_(count_of(a, np.dtype(np.int64)) == a.size)


def xor_of(a, result):
    return np.bool_(count_of(a, np.dtype(np.int64)) % 2)


def bitwise(ufunc):
    return lambda a, result: ufunc.reduce(truth(a), axis=None)


def minmax_of(a, result):
    return np.array([extreme_of(a, False), extreme_of(a, True)], result)


def argminmax_of(a, result):
    return np.array([argmin_of(a, result), argmax_of(a, result)])


def var_of(a, result, ddof=0, rounded=nearest):
    """(n·Σx² - (Σx)²) / (n·(n - ddof)), of complex numbers the sum of both parts'."""
    parts = [a.real, a.imag] if a.dtype.kind == "c" else [a]
    n, freedom = a.size, a.size - Fraction(ddof)
    with np.errstate(all="ignore"):
        finite = all(p.dtype.kind in "biu" or np.isfinite(p.astype("f8")).all() for p in parts)
    if not n or not finite:
        return nan(result)
    sums = [moments(p) for p in parts]
    spread = sum(n * squares - total**2 for total, squares in sums)
    if freedom <= 0:
        return result.type(np.inf) if spread else nan(result)
    return rounded(spread / (n * freedom), result)


def std_of(a, result, ddof=0):
    return var_of(a, result, ddof, nearest_root)


def is_nan(a):
    if a.dtype.kind in "mM":
        return np.isnat(a)
    with np.errstate(invalid="ignore"):
        return a != a


def without_nan(reference, times=False):
    """The reference of what is not NaN; of times only where NumPy too leaves NaT out."""

    def skipping(a, result):
        if a.dtype.kind in "mM" and not times:
            return reference(a, result)
        return reference(a[~is_nan(a)], result)

    return skipping


def nan_extreme(greatest):
    def skipping(a, result):
        rest = a[~is_nan(a)]
        return extreme_of(rest if rest.size else a, greatest)

    return skipping


def nan_prod(a, result):
    if a.dtype.kind in "biu":
        return prod_of(a, result)
    return prod_of(np.where(is_nan(a), a.dtype.type(1), a), result)


def nan_position(reference):
    def skipping(a, result):
        if a.dtype.kind in "mM":
            return reference(a, result)
        flat = a.reshape(-1)
        present = np.flatnonzero(~is_nan(flat))
        return result.type(present[reference(flat[present], result)])

    return skipping


REFERENCE = {
    "sum": sum_of,
    "prod": prod_of,
    "min": min_of,
    "max": max_of,
    "argmin": argmin_of,
    "argmax": argmax_of,
    "mean": mean_of,
    "any": any_of,
    "all": all_of,
    "count_nonzero": count_of,
    "ptp": ptp_of,
    "minmax": minmax_of,
    "argminmax": argminmax_of,
    "var": var_of,
    "std": std_of,
    "nansum": without_nan(sum_of),
    "nanprod": nan_prod,
    "nanmin": nan_extreme(False),
    "nanmax": nan_extreme(True),
    "nanargmin": nan_position(argmin_of),
    "nanargmax": nan_position(argmax_of),
    "nanmean": without_nan(mean_of),
    "nanvar": without_nan(var_of),
    "nanstd": without_nan(std_of),
    "logical_xor": xor_of,
    "bitwise_and": bitwise(np.bitwise_and),
    "bitwise_or": bitwise(np.bitwise_or),
    "bitwise_xor": bitwise(np.bitwise_xor),
}
