"""What users' operators are asked on a device: the same calls as on the CPU, whose bits they are to
give. A place puts arrays there and fetches what came of them; the device may be made of fibers."""

import numpy as np
import pytest
from operator_cases import CASES

import gpureduce
from gpureduce import Operator

# exp() and log() are each machine's own, in the last bits.
APPROXIMATE = {"logsumexp"}
MASKED = ["welford", "longest run", "hypot", "histogram", "matrices", "half", "affine", "two sum"]
TEXTBOOK = ["single_block_noncomm", "single_warp_noncomm", "single_warp_noncomm_padded",
            "single_warp_registers", "last_block_noncomm"]  # fmt: skip
_made = {}


def made(name):
    """One for all tests: each is compiled once."""
    if name not in _made:
        _made[name] = Operator(**CASES[name].text, name=name.replace(" ", "_").replace("-", "_"))
    return _made[name]


def parts_of(found):
    return list(found) if isinstance(found, tuple) else [found]


def same(place, name, found, wanted, said):
    """found: of the device; wanted: the CPU's."""
    assert type(found) is type(wanted) or not isinstance(wanted, tuple), said
    pairs = zip(parts_of(found), parts_of(wanted), strict=True)
    for one, other in pairs:
        got, want = place.fetched(one), np.asarray(other)
        assert got.shape == want.shape and got.dtype == want.dtype, said
        if name in APPROXIMATE and place.has_own_functions:
            np.testing.assert_allclose(got, want, rtol=1e-12, err_msg=str(said))
        else:
            assert got.tobytes() == want.tobytes(), said


def drawn(rng, sizes=(3000, 60, 12, 6)):
    """A shape and axes of it."""
    dims = int(rng.integers(1, 1 + len(sizes)))
    shape = tuple(int(n) for n in rng.integers(1, sizes[dims - 1] + 1, dims))
    return shape, tuple(int(d) for d in np.flatnonzero(rng.random(dims) < 0.6))


def laid_out(rng, a):
    """A copy of the array in another layout."""
    how = int(rng.integers(0, 6))
    if how == 1:
        return np.asfortranarray(a)
    if how == 2:
        return np.repeat(a, 2, axis=0)[::2]
    if how == 3:
        return np.ascontiguousarray(a[::-1])[::-1]
    if how == 4 and a.ndim > 1:
        return np.ascontiguousarray(np.swapaxes(a, 0, 1)).swapaxes(0, 1)
    if how == 5:
        room = np.empty(a.nbytes + 1, np.uint8)
        out = room[1:].view(a.dtype).reshape(a.shape)
        out[...] = a
        return out
    return a


def at_any_address(rng, a):
    """A copy whose axes come in any order, with gaps, and which begins at any element; of few its
    numbers are not aligned."""
    strides, step = [0] * a.ndim, a.itemsize
    for d in rng.permutation(a.ndim):
        strides[d] = step
        step *= a.shape[d] * int(rng.choice([1, 1, 1, 2]))
        step += int(rng.choice([0, 0, a.itemsize, -step % 16, -step % 16]))
    begin = a.itemsize * int(rng.integers(0, 5)) + int(rng.choice([0] * 9 + [1, a.itemsize // 2]))
    room = np.zeros(step + begin + 16, np.uint8)
    first = -room.ctypes.data % 16 + begin
    out = np.ndarray(a.shape, a.dtype, room, first, strides)
    out[...] = a
    return out


def walk_addresses(place, name, rng, times):
    """What is loaded by words, and what must not be."""
    op = made(name)
    for _ in range(times):
        shape, axes = drawn(rng, (600, 40, 14, 8))
        inputs = [at_any_address(rng, a) for a in CASES[name].make(rng, shape)]
        if len(shape) > 1 and len(inputs) > 1 and rng.random() < 0.3:
            inputs[-1] = inputs[-1][:1]
        wanted = op(*inputs, axis=axes)
        found = op(*(place.put(a) for a in inputs), axis=axes)
        same(place, name, found, wanted, (name, shape, axes, [a.strides for a in inputs]))


def walk_rows(place):
    """Rows of odd lengths which begin at whole words, and rows of packed records."""
    rng = np.random.default_rng(10)
    two, affine = made("two sum"), made("affine")
    for length in (11, 27, 33, 61):
        wide = rng.normal(size=(9, 64))
        x, y = wide[:, :length], rng.normal(size=(1, length))
        for rows in (x, np.repeat(x, 2, axis=0)[::2], np.broadcast_to(y, x.shape)):
            there = place.put(rows)
            same(place, "", two(there), two(rows), (length, rows.strides))
            wanted = affine(rows, y)
            same(place, "", affine(there, place.put(y)), wanted, (length, rows.strides))
    pair = Operator(
        "s: f8[2]",
        inputs="x[2]",
        lift="s[0] = x[0]; s[1] = x[1]",
        combine="s[0] = a.s[0] - 0.5 * b.s[1]; s[1] = a.s[1] + b.s[0]",
        name="pairs",
    )
    records = np.zeros((70, 2), np.dtype([("x", "f8"), ("tag", "i4")]))
    records["x"] = rng.normal(size=records.shape)
    same(place, "", pair(place.put(records["x"])), pair(records["x"]), "records")


def walk_layouts(place, name, rng, times):
    op = made(name)
    for _ in range(times):
        shape, axes = drawn(rng)
        inputs = [laid_out(rng, a) for a in CASES[name].make(rng, shape)]
        if rng.random() < 0.2:
            inputs = [a.astype(a.dtype.newbyteorder("S")) for a in inputs]
        keepdims = bool(rng.random() < 0.3)
        wanted = op(*inputs, axis=axes, keepdims=keepdims)
        found = op(*(place.put(a) for a in inputs), axis=axes, keepdims=keepdims)
        same(place, name, found, wanted, (name, shape, axes, keepdims))


def walk_masks(place, name, rng, times):
    op = made(name)
    for _ in range(times):
        shape, axes = drawn(rng)
        inputs = [laid_out(rng, a) for a in CASES[name].make(rng, shape)]
        where = laid_out(rng, rng.random(shape) < rng.choice([0.1, 0.5, 0.95]))
        wanted = op(*inputs, axis=axes, where=where)
        found = op(*(place.put(a) for a in inputs), axis=axes, where=place.put(where))
        same(place, name, found, wanted, (name, shape, axes))


def walk_long_ones(place, name, rng, shapes):
    """Cut between blocks, by warps and by threads."""
    op = made(name)
    for shape, axes in shapes:
        inputs = CASES[name].make(rng, shape)
        found = op(*(place.put(a) for a in inputs), axis=axes)
        same(place, name, found, op(*inputs, axis=axes), (name, shape, axes))


FEW = [((300, 2), 1), ((2, 300), 0), ((7, 4, 30), 1), ((40, 2, 3), (1, 2)), ((3, 50, 2), (0, 2)),
       ((5, 2, 8), 0), ((2, 3, 4, 2, 5), (1, 3)), ((2, 9, 2, 7, 2), (0, 2, 4)), ((70, 1), 1),
       ((2, 2, 1, 2, 40), (0, 1, 3)), ((2, 2, 2, 7), (0, 1, 2)), ((2, 5, 3, 4), 0)]  # fmt: skip


def walk_few(place, name, rng):
    """Of few elements each, which threads fold by themselves."""
    op = made(name)
    for shape, axes in FEW:
        for _ in range(2):
            inputs = [laid_out(rng, a) for a in CASES[name].make(rng, shape)]
            found = op(*(place.put(a) for a in inputs), axis=axes)
            same(place, name, found, op(*inputs, axis=axes), (name, shape, axes))


def _numbers(rng, dtype, shape, kind):
    """Of digits that are nearly all ones or zeros; of any exponent; whole ones; and with one that
    is not like the others."""
    info = np.finfo(dtype)
    x = rng.normal(size=shape)
    if kind == 0:
        last = np.exp2(-rng.integers(1, info.nmant + 1, shape))
        x = rng.choice([1.0, 2.0], shape) + rng.choice([-1, 1], shape) * last
        x *= np.exp2(rng.integers(-8, 8, shape))
    elif kind == 1:
        x = x * np.exp2(rng.integers(info.minexp - 20, info.maxexp - 2, shape).astype(float))
    elif kind == 2:
        x = np.round(3 * x)
    else:
        x.flat[rng.integers(x.size)] = rng.choice([np.nan, np.inf, 0, -0.0, info.tiny / 8])
    return x.astype(dtype)


def walk_quick(place, rng, times):
    """Roots and quotients, of which a device makes many at a time."""
    with np.errstate(all="ignore"):
        for dtype, f in (("f4", "f"), ("f8", "")):
            for text in ("a / b", f"sqrt{f}(a * a + b * b)"):
                op = Operator(dtype, combine=text, name="quick")
                for n in range(times):
                    for shape in ((32, 200), (2, 5000), (9000,)):
                        x = _numbers(rng, dtype, shape, n % 4)
                        axis = 0 if len(x) == 32 else -1
                        wanted, found = op(x, axis=axis), op(place.put(x), axis=axis)
                        same(place, "", found, wanted, (dtype, text, n % 4, shape))


def walk_segments(place, name, rng, n, columns):
    op = made(name)
    inputs = CASES[name].make(rng, (n, columns))
    whole = inputs if len(inputs) > 1 else inputs[0]
    there = tuple(place.put(a) for a in inputs)
    there = there if len(inputs) > 1 else there[0]
    starts = rng.integers(0, n, 40)
    stops = np.minimum(n, starts + 1 + rng.integers(0, n // 2, 40))
    for axis, bounds in ((0, (starts, stops)), (1, ([0, 1], [columns, 2]))):
        wanted = gpureduce.segments(whole, *bounds, op, axis=axis)
        found = gpureduce.segments(there, *bounds, op, axis=axis)
        same(place, name, found, wanted, (name, "segments", axis))
    offsets = np.concatenate([[0], rng.integers(0, n, 30)])
    wanted = gpureduce.reduceat(whole, offsets, op)
    same(place, name, gpureduce.reduceat(there, offsets, op), wanted, (name, "reduceat"))


def walk_arguments(place):
    """initial, dtype, out, broadcasting, weights from the host, empty ones."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(6, 50, 7))
    there = place.put(x)
    two, welford, line, affine = (made(n) for n in ("two sum", "welford", "line", "affine"))
    minus = Operator("f8", combine="a - b", name="minus")
    for axis in (None, 0, -1, (0, 2), (), 1):
        same(place, "", two(there, axis=axis), two(x, axis=axis), axis)
    same(place, "", minus(there, axis=1, initial=10.0), minus(x, axis=1, initial=10.0), "initial")
    wanted = welford(x, axis=1, dtype={"var": "f4"})
    same(place, "", welford(there, axis=1, dtype={"var": "f4"}), wanted, "dtype")
    same(place, "", two(there, axis=0, dtype="f2"), two(x, axis=0, dtype="f2"), "dtype")
    for weights in (x[0, :, :1], x[:, :1], x[0, 0, 0]):
        wanted = line(x, weights, axis=1)
        same(place, "", line(there, weights, axis=1), wanted, "from the host")
        same(place, "", line(there, place.put(np.asarray(weights)), axis=1), wanted, "broadcast")
    empty = np.empty((3, 0, 4))
    same(place, "", two(place.put(empty), axis=1), two(empty, axis=1), "none of them")
    same(place, "", two(place.put(empty), axis=0), two(empty, axis=0), "no output")
    wanted = affine([2.0], [1.0], initial=(3.0, 5.0))
    same(place, "", affine(place.put(np.array([2.0])), [1.0], initial=(3.0, 5.0)), wanted, "pair")
    assert gpureduce.reduce(there, two) == two(x)


def walk_textbook(place, kernel):
    """Operators whose order shows, of numbers that leave nothing to round."""
    rng = np.random.default_rng(11)
    limit = next(k["limit"] for k in gpureduce.kernels() if k["name"] == kernel)
    for n in (1, 2, 31, 32, 33, 511, 512, 513, 20_000):
        if limit and n > limit:
            continue
        for name in ("brackets", "modular affine", "longest run", "affine", "argmax"):
            inputs = CASES[name].make(rng, (n,))
            if name == "affine":
                inputs = [1 - 2.0 * rng.integers(0, 2, n), rng.integers(-9, 10, n).astype(float)]
            op = made(name)
            there = [place.put(a) for a in inputs]
            found = gpureduce.reduce(there if len(there) > 1 else there[0], op, kernel=kernel)
            wanted = op(*inputs)
            pairs = zip(parts_of(found), parts_of(wanted), strict=True)
            assert all(np.array_equal(a, b) for a, b in pairs), (kernel, name, n)
            assert type(found) is type(wanted)
    pairs = np.ascontiguousarray(rng.integers(0, 3, (40, 50))[:, ::2])
    op = made("brackets")
    assert gpureduce.reduce(place.put(pairs.reshape(-1)[:30]), op, kernel=kernel) == op(
        pairs.reshape(-1)[:30]
    )
    for wrong, message in (({"axis": ()}, "whole arrays"), ({"where": [True]}, "no where"),
                           ({"device": "cpu"}, "a GPU's")):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            gpureduce.reduce(place.put(pairs[0]), op, kernel=kernel, **wrong)
    with pytest.raises(TypeError, match="48 bytes"):
        gpureduce.reduce(place.put(rng.normal(size=(4, 3, 3))), made("matrices"), kernel=kernel)
    with pytest.raises(TypeError, match="commutative=True"):
        gpureduce.reduce(place.put(pairs[0]), op, kernel="last_block")
    with pytest.raises(TypeError, match="several launches"):
        gpureduce.reduce(place.put(pairs[0]), op, kernel="neighbored")


def exact(dtype):
    return Operator(f"exact {dtype.str[1:]}", combine="a + b", identity=0, name=f"exact_{dtype}")


def walk_exact(place, rng, shapes):
    """States with sums of double."""
    op = exact(np.dtype("f8"))
    for shape, axis in shapes:
        x = rng.normal(size=shape) * np.exp2(rng.integers(-900, 900, shape))
        found = place.fetched(op(place.put(x), axis=axis))
        assert found.tobytes() == np.asarray(gpureduce.sum(x, axis=axis)).tobytes(), (shape, axis)


def walk_again(place):
    """The second call of a kind, on other arrays, whose results are its own."""
    rng = np.random.default_rng(12)
    for name in ("two sum", "welford", "matrices"):
        op = made(name)
        arrays = [CASES[name].make(rng, (30, 20)) for _ in range(3)]
        for axis in (0, 1, None):
            found = [op(*(place.put(a) for a in inputs), axis=axis) for inputs in arrays]
            for one, inputs in zip(found, arrays, strict=True):
                same(place, name, one, op(*inputs, axis=axis), (name, axis))


def walk_outs(place):
    rng = np.random.default_rng(6)
    x = rng.normal(size=(4, 300, 5))
    there = place.put(x)
    two, welford = made("two sum"), made("welford")
    for room in (np.empty((4, 5)), np.empty((4, 5), np.float32), np.empty((5, 4)).T,
                 np.empty((8, 5))[::2]):  # fmt: skip
        out = place.put(room)
        assert two(there, axis=1, out=out) is out
        want = np.empty((4, 5), room.dtype)
        two(x, axis=1, out=want)
        assert place.fetched(out).tobytes() == np.ascontiguousarray(want).tobytes()
    outs = place.put(np.empty((4, 1, 5))), place.put(np.empty((4, 1, 5)))
    found = welford(there, axis=1, keepdims=True, out=outs)
    assert found.mean is outs[0] and found.var is outs[1]
    same(place, "", found, welford(x, axis=1, keepdims=True), "outs")
    segments = place.put(np.empty((4, 2, 5)))
    gpureduce.segments(there, [0, 9], [20, 10], two, axis=1, out=segments)
    wanted = gpureduce.segments(x, [0, 9], [20, 10], two, axis=1)
    assert place.fetched(segments).tobytes() == wanted.tobytes()
    whole = place.put(np.empty(()))
    assert two(there, out=whole) is whole and place.fetched(whole) == two(x)


def walk_the_host(place):
    """Arrays of the host, folded there and back."""
    rng = np.random.default_rng(7)
    for name in ("welford", "matrices", "bounding box", "half"):
        shape = (40, 30)
        inputs = CASES[name].make(rng, shape)
        found = made(name)(*inputs, axis=0, device="cuda")
        for one, other in zip(parts_of(found), parts_of(made(name)(*inputs, axis=0)), strict=True):
            assert type(one) is np.ndarray and one.tobytes() == other.tobytes(), name
    x = np.broadcast_to(rng.normal(size=(3, 1)), (3, 1000))[:, ::-1]
    two = made("two sum")
    assert two(x, device="cuda:0") == two(x)
    room = np.empty(3, np.float32)
    assert two(x, axis=1, device="cuda", out=room) is room
    assert room.tolist() == two(x, axis=1).astype("f4").tolist()


def large_states(place):
    """States of all sizes up to 256 bytes."""
    rng = np.random.default_rng(8)
    for n in (1, 3, 5, 9, 16, 17, 31, 32):
        op = Operator(
            f"v: f8[{n}]",
            lift="for (int k = 0; k < N; k++) v[k] = x + k".replace("N", str(n)),
            combine="for (int k = 0; k < N; k++) v[k] = 0.5 * a.v[k] - b.v[(k + 1) % N]".replace(
                "N", str(n)
            ),
            name=f"of_{n}",
        )
        for shape, axis in (((3, 20_000), 1), ((700, 40), 0), ((90,), 0)):
            x = rng.normal(size=shape)
            same(place, "", op(place.put(x), axis=axis), op(x, axis=axis), (n, shape))


def many_numbers(place):
    """Inputs whose numbers do not fit a launch's own words."""
    rng = np.random.default_rng(9)
    op = Operator(
        "s: f8[2]",
        inputs="m[20][20]",
        lift="""s[0] = 0; s[1] = 1
        for (int r = 0; r < 20; r++) for (int c = 0; c < 20; c++) s[0] += m[r][c] * (r - c)""",
        combine="s[0] = a.s[0] - b.s[0]; s[1] = a.s[1] + b.s[1]",
        name="traces",
    )
    x = rng.normal(size=(50, 3, 20, 20))
    for axis in (0, 1, None):
        same(place, "", op(place.put(x), axis=axis), op(x, axis=axis), axis)
    assert np.isfinite(op(x)).all()
