"""The words themselves, as docs/partials.md has them: read by a few lines that know nothing else,
and what is no partial is told so."""

import io
import math
import pickle
import struct
import zlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from arrays import draw, finite_bits, generator
from reference import sum_of
from table import bits, numpy_dtype

import gpureduce
from gpureduce import Partials, finish, from_words, merge, partials, words

# dtype: units of the sum and of squares, and how many digits of each.
DIGITS = {
    "float64": (-1074, 68, -2148, 134),
    "float32": (-178, 12, -324, 21),
    "float16": (-50, 5, -68, 6),
    "bfloat16": (-146, 11, -292, 20),
}


def kind(text):
    return zlib.crc32(f"gpureduce partials 1: {text}".encode())


def integer(digits):
    return sum(int(d) << (32 * i) for i, d in enumerate(digits))


def scaled(value, power):
    return Fraction(value) * Fraction(2) ** power


@pytest.mark.parametrize("name", DIGITS)
def test_sums_and_squares_of_floats(name):
    dtype = numpy_dtype(name)
    unit, n, square_unit, n_squares = DIGITS[name]
    for sign in (1, -1):
        x = finite_bits(generator("words", name), dtype, 500)
        x[:3] = np.array([sign, 0, 0]).astype(dtype)
        exact = [Fraction(float(v)) for v in x]
        w = partials(x, "var").raw
        assert w.shape == (3 + 4 + n + n_squares,) and w.dtype == np.int64
        assert list(w[:7]) == [kind(f"var of {name}"), 1, len(x), 0, 0, 0, 1]
        digits, squares = w[7 : 7 + n], w[7 + n :]
        assert scaled(integer(digits), unit) == sum(exact)
        assert scaled(integer(squares), square_unit) == sum(v * v for v in exact)
        assert (digits[:-1] >= 0).all() and (digits[:-1] < 1 << 32).all()
        s = words(partials(x, "sum"))
        assert s[0] == kind(f"sum of {name}") and (s[3:] == w[3 : 7 + n]).all()


def test_specials_are_counted_and_leave_nothing_beside_them():
    def special(*values):
        return list(words(partials(np.float32(values), "sum"))[3:7])

    inf, nan = math.inf, math.nan
    assert special(1.0, inf, inf) == [1, 0, 0, 0] and special(-inf) == [0, 1, 0, 0]
    assert special(1.0, nan, inf) == special(inf, -inf) == [0, 0, 1, 0]
    assert special(-0.0, -0.0) == [0, 0, 0, 0] and special(-0.0, 0.0) == [0, 0, 0, 1]
    both = words(partials(np.float32([inf]), "sum")) + words(partials(np.float32([1]), "sum"))
    assert list(both[1:7]) == [2, 2, 1, 0, 0, 1]
    assert finish(from_words(both, "sum", "f4")) == inf
    assert (merge([from_words(both, "sum", "f4")]).raw[7:] == 0).all()


@pytest.mark.parametrize("name", ["int8", "int64", "uint64", "bool"])
def test_integers(name):
    x = draw(generator("integer words", name), np.dtype(name), 1000)
    total, squares = sum(map(int, x)), sum(int(v) ** 2 for v in x)
    w = partials(x, "var").raw
    assert list(w[:3]) == [kind(f"var of {name}"), 1, 1000]
    assert integer(w[3:7]) == total and integer(w[7:]) == squares and len(w) == 13
    assert integer(partials(x, "mean").raw[3:]) == total
    assert int(partials(x, "sum").raw[3]) % 2**64 == total % 2**64
    assert list(partials(x, "count_nonzero").raw[2:]) == [1000, np.count_nonzero(x)]


@pytest.mark.parametrize("name", ["sum", "nansum", "nanvar"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "D"])
def test_what_counts_is_counted_to_the_end(name, dtype):
    """Where a NaN has settled the sum as well: equal values have equal words, however cut."""
    for shape, axis in (((200_000,), None), ((100_000, 2), 0), ((2, 100_000), 1)):
        for values in ([np.nan], [np.inf, -np.inf]):
            x, where = np.ones(shape, dtype), np.arange(np.prod(shape)).reshape(shape) % 3 > 0
            x.ravel()[: 3 * len(values)] = np.repeat(values, 3)
            counted = (where & ~np.isnan(x) if name.startswith("nan") else where).sum(axis)
            with np.errstate(invalid="ignore"):
                p = partials(x, name, axis, where=where)
            assert np.array_equal(words(p)[..., 2], counted), (shape, values)


def test_values():
    x = np.float32([3, -7, 2, 9])
    assert partials(x, "max").raw.tobytes()[24:] == np.float32([9, 0]).tobytes()
    assert partials(x, "ptp").raw.tobytes()[24:] == np.float32([-7, 0, 9, 0]).tobytes()
    assert list(partials(x, "argmin", offset=10).raw[2:5]) == [1, 11, 0]
    assert list(partials(np.float32([1, np.nan]), "argmin").raw[2:]) == [1, 1, 1, 0]
    assert list(partials(x[:0], "max").raw[1:]) == [1, 0, 0]


def test_a_tree():
    p = partials(np.float32([2, 3, 5, 7, 11]), "prod", offset=3)
    assert (p.start, p.stop) == (3, 8)
    assert list(p.raw[:5]) == [kind("prod along the tree of float32"), 1, 5, 3, 8]
    assert p.raw[5:].view("f4")[::2].tolist() == [2, 3 * 5 * 7 * 11]


def test_additions_without_a_carry():
    """As many as fit, by a multiplication: digits are then of 63 bits, and negative sums too."""
    x = finite_bits(generator("additions"), np.dtype("f4"), 300) * np.float32(-1)
    w = words(partials(x, "sum"))
    most = 1 << 31
    total = from_words(w * most, "sum", "f4")
    exact = sum(Fraction(float(v)) for v in x) * most
    assert scaled(integer(merge([total]).raw[7:]), -178) == exact
    again = merge([total] * 3)
    assert scaled(integer(again.raw[7:]), -178) == 3 * exact and again.raw[1] == 1
    with pytest.raises(ValueError, match=r"more than 2\^31"):
        from_words(w * (most + 1), "sum", "f4")
    nothing = np.zeros_like(w)
    assert bits(finish(from_words(w + nothing, "sum", "f4"))) == bits(sum_of(x, x.dtype))


# --- bytes ----------------------------------------------------------------------------------------


def test_the_bytes_are_as_the_page_says():
    text = b"gpureduce partials 1: sum of float32"
    for op, name in (("sum", text), ("mean", text + b"\0mean")):
        p = partials(np.float32([[1, 2], [3, 4]]), op, axis=0)
        data, room = p.tobytes(), (len(name) + 7) // 8 * 8
        head = struct.unpack("<8sIIIIqqq", data[:48])
        assert head == (b"GPRPART\n", 1, zlib.crc32(text), room, 1, 19, 0, 0)
        assert struct.unpack("<q", data[48:56]) == (2,)
        assert data[56 : 56 + room] == name.ljust(room, b"\0")
        assert data[56 + room :] == p.raw.astype("<i8").tobytes()
        assert Partials.frombytes(data) == p and Partials.frombytes(bytearray(data)).shape == (2,)
        assert Partials.frombytes(data).op == pickle.loads(pickle.dumps(p)).op == op


@pytest.mark.parametrize("dtype", ["m8[s]", "M8[ms]", "bfloat16", "c16", "u2"])
def test_bytes_of_every_dtype(dtype):
    given = numpy_dtype(dtype) if dtype == "bfloat16" else np.dtype(dtype)
    x = draw(generator("bytes", dtype), given, 50)
    p = partials(x, "max")
    q = Partials.frombytes(p.tobytes())
    assert q.dtype == given and bits(finish(q)) == bits(gpureduce.max(x))


GOOD = partials(np.float32([1, 2]), "sum").tobytes()
BAD = {
    "cut short": [GOOD[:-1], GOOD[:30], GOOD[:60], b""],
    "longer": [GOOD + b"\0" * 8],
    "no partials": [b"x" * len(GOOD), b"\x93NUMPY" + GOOD[6:]],
    "of version 2": [GOOD[:8] + struct.pack("<I", 2) + GOOD[12:]],
    "other byte order": [GOOD[:8] + struct.pack(">I", 1) + GOOD[12:]],
    "damaged": [
        GOOD.replace(b"float32\0\0\0\0", b"float32\0var"),
        GOOD[:12] + b"\0\0\0\0" + GOOD[16:],
        GOOD[:24] + struct.pack("<q", 18) + GOOD[32:],
        GOOD.replace(b"sum of float32", b"var of float32"),
        GOOD[:32] + struct.pack("<qq", 2, 1) + GOOD[48:],
    ],
    "not known": [GOOD.replace(b"float32", name) for name in (b"flaot32", b",loat32", b"(2,)f4,")],
    "are not those of": [GOOD[:-152] + b"\1" * 8 + GOOD[-144:]],
}


@pytest.mark.parametrize(("why", "data"), [(why, d) for why, all_ in BAD.items() for d in all_])
def test_bytes_that_are_none(why, data):
    with pytest.raises(ValueError, match=why):
        Partials.frombytes(data)


def test_a_file_that_is_no_accumulator(tmp_path):
    acc = gpureduce.Accumulator("sum")
    acc.add([1.0, 2.0])
    file = io.BytesIO()
    acc.save(file)
    for data in (file.getvalue()[:-3], b"nothing", b""):
        with pytest.raises(ValueError, match=r"^gpureduce\.Accumulator\.load: "):
            gpureduce.Accumulator.load(io.BytesIO(data))
    (tmp_path / "kept").write_bytes(b"old")
    with pytest.raises(OSError):
        acc.save(tmp_path / "no such folder" / "x")
    acc.save(tmp_path / "kept")
    assert gpureduce.Accumulator.load(tmp_path / "kept").result() == 3.0
    assert [p.name for p in Path(tmp_path).iterdir()] == ["kept"]


# --- what does not belong together ----------------------------------------------------------------


def test_partials_that_do_not_belong_together():
    x = np.float32([1, 2, 3])
    p = partials(x, "sum")
    for other, why in [
        (partials(x, "var"), "another kind"),
        (partials(x, "nansum"), "another kind"),
        (partials(x.astype("f8"), "sum"), "another dtype"),
        (partials(x[None], "sum", axis=0), "another shape"),
    ]:
        with pytest.raises(ValueError, match=why):
            merge([p, other])
    seconds = partials(np.array([1], "m8[s]"), "sum")
    with pytest.raises(ValueError, match="another dtype"):
        merge([seconds, partials(np.array([1], "m8[ms]"), "sum")])
    with pytest.raises(ValueError, match="there are no partials"):
        merge([])
    with pytest.raises(TypeError, match=r"no gpureduce\.Partials"):
        merge([p, 3.0])
    with pytest.raises(TypeError, match=r"no gpureduce\.Partials"):
        finish(x)


def test_words_that_do_not_belong_together():
    x = np.arange(1.0, 9.0)
    a, b = words(partials(x.astype("f4"), "sum")), words(partials(x, "sum"))
    mixed = b.copy()
    mixed[: len(a)] += a
    with pytest.raises(ValueError, match="are not those of sum of float64"):
        from_words(mixed, "sum", "f8")
    with pytest.raises(ValueError, match="19 words along the last axis"):
        from_words(b, "sum", "f4")
    with pytest.raises(ValueError, match="other byte order"):
        from_words(b.byteswap(), "sum", "f8")
    assert finish(from_words(b.astype(">i8"), "sum", "f8")) == 36
    with pytest.raises(ValueError, match="int64, not float64"):
        from_words(b.astype("f8"), "sum", "f8")
    with pytest.raises(ValueError, match="do not add"):
        words(partials(x, "max"))
    with pytest.raises(ValueError, match="no words that add"):
        from_words(partials(x, "max").raw, "max", "f8")
    p = partials(x, "sum")
    words(p)[0] += 1
    with pytest.raises(ValueError, match="are not those of"):
        finish(p)


def test_trees_merge_neighbours():
    x = np.float32([2, 3, 5, 7, 11])
    left, right = partials(x[:2], "prod"), partials(x[2:], "prod", offset=2)
    assert finish(merge([left, right])) == finish(merge([right, left])) == 2310
    for wrong in ([left, left], [right, left, right], [left, partials(x[3:], "prod", offset=3)]):
        with pytest.raises(ValueError, match="follow each other"):
            merge(wrong)
    with pytest.raises(ValueError, match=r"this part of the tree is \[2, 5\)"):
        finish(right)
    with pytest.raises(ValueError, match="merged as a list"):
        merge(partials(np.ones((2, 2)), "prod", axis=0))
    with pytest.raises(ValueError, match="do not answer"):
        finish(left, "sum")


def test_what_cannot_be_asked():
    x = np.float32([1, 2])
    with pytest.raises(ValueError, match="do not answer var, but sum, mean"):
        finish(partials(x, "sum"), "var")
    with pytest.raises(ValueError, match="is not known"):
        partials(x, "median")
    with pytest.raises(TypeError, match=r"dtype\('O'\) is not supported"):
        partials(np.array([None]), "sum")
    with pytest.raises(TypeError, match="there are no partials of matmul2x2"):
        partials(np.ones((2, 2, 2)), "matmul2x2")
    with pytest.raises(TypeError, match="takes no dtype"):
        partials(x, "max", dtype="f8")
    with pytest.raises(TypeError, match="takes no where"):
        partials(x, "argmax", where=x > 1)
    with pytest.raises(np.exceptions.AxisError):
        partials(x, "sum", axis=1)
    with pytest.raises(ValueError, match="no element to take the max of"):
        finish(partials(x[:0], "max"))
    with pytest.raises(ValueError, match="could not be broadcast"):
        partials(x, "sum", where=[True, False, True])
    with pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        assert math.isnan(finish(partials(x[:0], "mean"), "mean"))
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"):
        finish(partials(x[:1], "var"), ddof=1)
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        finish(partials(np.float32([np.nan]), "nanmax"))


def test_masks_are_not_dropped():
    masked = np.ma.masked_equal([1.0, 2.0], 2)
    acc = gpureduce.Accumulator("sum")
    for take in (lambda: partials(masked, "sum"), lambda: acc.add(masked)):
        with pytest.raises(TypeError, match=r"where=~x\.mask"):
            take()
    acc.add(masked.data, where=~masked.mask)
    assert acc.result() == 1


def test_partials_are_taken_on_the_cpu():
    for op in ("sum", "prod", gpureduce.Operator("f8", combine="a + b")):
        with pytest.raises(ValueError, match="taken on the CPU"):
            partials(np.ones(3), op, device="cuda")
