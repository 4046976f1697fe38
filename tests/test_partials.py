"""Partials: any cut, any order, any way of merging, and the bits of the whole array."""

import pickle
import threading
import tracemalloc
import warnings
from itertools import pairwise

import numpy as np
import pytest
from arrays import draw, finite_bits, generator
from cuts import case_of, cuts_of, differing, merged_somehow, nasty, outcome, parts_of
from table import bits, numpy_dtype

import gpureduce
from gpureduce import Partials, finish, from_words, merge, partials, words

SEEDS = range(8)
# Of each seed.
CASES = {"merged": 350, "resumed": 60, "ranks": 30, "store": 60, "dask": 20}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("way", CASES)
def test_any_cut_has_the_bits_of_the_whole(way, seed):
    if way == "dask":
        pytest.importorskip("dask.array", reason="dask's arrays are not installed")
    wrong, count = differing(way, [(seed, n) for n in range(CASES[way])])
    assert not wrong and count > CASES[way] // 2, list(map(str, wrong))


@pytest.mark.parametrize("seed", SEEDS)
def test_equal_values_have_equal_words(seed):
    for case in filter(None, (case_of("words", seed, n) for n in range(60))):
        rng = case.rng("words")
        try:
            q = merged_somehow(rng, parts_of(rng, case))
        except TypeError:
            continue
        how = {"where": case.where, "keepdims": case.keepdims}
        whole = partials(case.x, case.op, case.axis, **how)
        assert q.tobytes() == whole.tobytes() and q == whole, case
        assert gpureduce.fingerprint(q) == gpureduce.fingerprint(whole), case


@pytest.mark.parametrize("dtype", ["f4", "c8", "i4", "bool"])
@pytest.mark.parametrize("op", ["sum", "mean", "nanmean", "var", "std", "nanstd", "minmax", "prod"])
def test_finish_gives_what_was_asked_for(op, dtype, tmp_path):
    x = draw(generator("asked", op, dtype), np.dtype(dtype), 90).reshape(30, 3)
    want = outcome(lambda: getattr(gpureduce, op)(x, axis=0))
    parts = [partials(x[i : i + 10], op, axis=0, offset=i * (op == "prod")) for i in (0, 10, 20)]
    whole = merge(parts)
    acc = gpureduce.Accumulator(op, shape=3, dtype=dtype)
    acc.add(x[:10]), acc.save(tmp_path / "acc")
    acc = gpureduce.Accumulator.load(tmp_path / "acc")
    acc.add(x[10:])
    several = [whole, Partials.frombytes(whole.tobytes()), pickle.loads(pickle.dumps(whole))]
    if whole.additive:
        several.append(from_words(sum(words(p) for p in parts), op, dtype))
        several.append(merge(partials(x, op, axis=()), axis=0))
    for p in several:
        assert p.op == op and outcome(lambda p=p: finish(p)) == want
        assert outcome(lambda p=p: finish(p.reshape(3, 1)[:, 0])) == want
    assert outcome(acc.result) == want and acc.op == op


def test_what_was_asked_for_different_functions():
    x = np.float32([1, 2, 6])
    two = partials(x[:2], "mean"), partials(x[2:], "sum")
    for both in (two, two[::-1]):
        assert merge(both).op == "sum" and finish(merge(both)) == 9
        assert finish(merge(both), "mean") == 3 and merge(both) == partials(x, "mean")
    same = {gpureduce.fingerprint(x, op) for op in ("sum", "mean")}
    assert len(same) == 1 and partials(x, "sum").tobytes() != partials(x, "mean").tobytes()
    acc = gpureduce.Accumulator("mean", dtype="f4")
    acc.add(x[:2])
    acc.merge(two[1])
    assert acc.result() == 3 and acc.result("sum") == 9


def test_many_threads_and_large_chunks():
    rng = generator("large partials")
    for dtype in ("f4", "f8", "i4"):
        x = draw(rng, np.dtype(dtype), 3_000_001)
        for op in ("sum", "mean", "var", "max", "argmin", "any", "prod"):
            cuts = [0, 1_048_576, 1_048_577, 2_500_000, len(x)]
            parts = [
                partials(x[a:b], op, offset=a if op in ("argmin", "prod") and dtype != "i4" else 0)
                if op != "argmin"
                else partials(x[a:b], op, offset=a)
                for a, b in pairwise(cuts)
            ]
            assert bits(finish(merge(parts), op)) == bits(getattr(gpureduce, op)(x)), (op, dtype)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16", "i4", "u8", "bool"])
def test_what_words_answer_beside_their_own(dtype):
    x = nasty(generator("answers", dtype), np.dtype(dtype), (40, 5))
    for op in ("sum", "mean", "var", "std", "minmax", "ptp"):
        if op == "ptp" and dtype == "bool":
            continue
        p = partials(x, op, axis=0)
        for asked in p.answers:
            if asked not in ("logical_xor",) and not asked.startswith("nan"):
                want = outcome(lambda asked=asked: getattr(gpureduce, asked)(x, axis=0))
                assert outcome(lambda p=p, asked=asked: finish(p, asked)) == want, (op, asked)


@pytest.mark.parametrize("op", ["var", "nanvar"])
def test_zeros_of_all_signs_of_a_variance(op):
    """Which engines of variances do not look for."""
    for values in (
        [1, -1],
        [0.0, -0.0],
        [-0.0],
        [-0.0, -0.0],
        [0.0],
        [-0.0, 5, -5],
        [np.nan, -0.0],
    ):
        x = np.array(values, "f4")
        want = bits(gpureduce.nansum(x) if op == "nanvar" else gpureduce.sum(x))
        parts = [partials(x[i : i + 1], op) for i in range(len(x))]
        assert bits(finish(merge(parts), "sum")) == bits(finish(partials(x, op), "sum")) == want
        assert merge(parts).raw.tobytes() == partials(x, op).raw.tobytes()


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16", "bfloat16"])
@pytest.mark.parametrize("op", ["sum", "nanmean", "var"])
def test_elements_that_stand_many_times(op, dtype):
    """Their words are those of a copy, and a sum that is zero has its sign."""
    rng = generator("many times", op, dtype)
    if op == "var" and dtype[0] == "c":
        op = "mean"
    for _ in range(40):
        numbers = rng.choice([0.0, -0.0, -0.0, 1.0, -1.0, 3e-7], (3, 2, rng.integers(1, 40)))
        x = np.broadcast_to(numbers.astype(numpy_dtype(dtype)), (9, *numbers.shape))
        axis = tuple(rng.permutation(4)[: rng.integers(1, 4)].tolist())
        p = partials(x, op, axis)
        assert p == partials(x.copy(), op, axis), (x.shape, axis)
        assert bits(finish(p)) == bits(gpureduce.reduce(x, op, axis))
    plus, minus = (np.broadcast_to(numpy_dtype(dtype).type(y), (7, 30)) for y in (1, -1))
    total = finish(merge([partials(y, "sum", 0) for y in (plus, minus)]))
    assert bits(total) == bits(np.zeros_like(total))


def test_floats_are_rounded_once_into_what_is_asked():
    x = finite_bits(generator("into"), np.dtype("f4"), 1000)
    for op in ("sum", "mean", "var"):
        assert bits(finish(partials(x, op), dtype="f8", op=op)) == bits(
            getattr(gpureduce, op)(x, dtype="f8")
        )
    ints = np.arange(1000, dtype="i4")
    assert finish(partials(ints, "sum"), dtype="i1") == gpureduce.sum(ints, dtype="i1")
    p = partials(x, "sum", dtype="f8")
    assert p.dtype == np.float64 and bits(finish(p)) == bits(gpureduce.sum(x, dtype="f8"))
    with pytest.raises(TypeError, match="does not finish into"):
        finish(partials(ints, "mean"), dtype="f4")
    with pytest.raises(TypeError, match="does not finish into"):
        finish(partials(x, "max"), dtype="f8")


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c16"])
def test_products_of_views_are_taken_by_parts(dtype, monkeypatch):
    """However many elements are copied at a time, the words of a copy of all."""
    rng = generator("products of views", dtype)
    x = draw(rng, np.dtype(dtype), 7 * 5 * 6 * 2).reshape(7, 5, 6, 2)
    views = [x.T, x[::-1], x[:, ::2], x.transpose(1, 0, 3, 2), np.broadcast_to(x[:1], x.shape)]
    for copied in (1, 24, 100, 1000, 1 << 20):
        monkeypatch.setattr("gpureduce.partial.trees._COPIED_BYTES", copied)
        for view in views:
            where = rng.random(view.shape) < 0.7
            for axis in (None, (0, 1), (0, 2), (1, 3), (0, 1, 3), 2, ()):
                for how in ({}, {"where": where, "offset": 5, "keepdims": True}):
                    want = partials(np.ascontiguousarray(view), "prod", axis, **how)
                    assert partials(view, "prod", axis, **how).tobytes() == want.tobytes()


def test_products_of_large_views_copy_little():
    x = np.ones((1500, 2000))
    for view, axis in ((x.T, None), (x[::-1], (0, 1)), (x.reshape(1500, 20, 100), (0, 2))):
        tracemalloc.start()
        try:
            assert finish(partials(view, "prod", axis=axis)).max() == 1
            assert tracemalloc.get_traced_memory()[1] < x.nbytes / 2
        finally:
            tracemalloc.stop()


def test_positions_in_a_whole_of_several_axes():
    rng = generator("places")
    x = rng.integers(0, 50, (13, 9, 11)).astype("f4")
    for op in ("argmin", "argmax", "argminmax", "nanargmax"):
        parts = []
        for i in range(0, 13, 5):
            for j in range(0, 9, 4):
                block = x[i : i + 5, j : j + 4]
                parts.append(partials(block, op, offset=(i, j, 0), whole=x.shape))
        rng.shuffle(parts)
        assert bits(finish(merge(parts))) == bits(getattr(gpureduce, op)(x))
    with pytest.raises(ValueError, match="not within the whole"):
        partials(x, "argmin", offset=(1, 0, 0), whole=x.shape)
    with pytest.raises(ValueError, match="one number for each"):
        partials(x, "argmin", offset=(1, 0), whole=x.shape)
    with pytest.raises(ValueError, match="negative"):
        partials(x, "argmin", axis=0, offset=-1)


def test_along_an_axis_of_partials():
    x = draw(generator("axis of partials"), np.dtype("f4"), 6000).reshape(20, 30, 10)
    p = partials(x, "mean", axis=1)
    assert p.shape == (20, 10) and len(p) == 20 and p[3].shape == (10,) and p[:, 2].shape == (20,)
    assert bits(finish(merge(p, axis=0), "sum")) == bits(gpureduce.sum(x, axis=(0, 1)))
    assert bits(finish(merge(p), "mean")) == bits(gpureduce.mean(x))
    assert bits(finish(merge(list(p)), "mean")) == bits(gpureduce.mean(x, axis=(0, 1)))
    assert bits(finish(p.reshape(200), "mean")) == bits(gpureduce.mean(x, axis=1).reshape(200))
    assert bits(finish(p, "sum")) == bits(gpureduce.sum(x, axis=1))


def test_what_the_elements_were_is_never_written():
    x = draw(generator("read only"), np.dtype("f4"), 100)
    x.flags.writeable = False
    p = partials(x, "var")
    before = p.raw.copy()
    finish(p, "std"), merge([p, p]), p.tobytes(), words(p)
    assert (p.raw == before).all()


# --- operators of one's own -----------------------------------------------------------------------

OWN = {
    "leaky": {"state": "f8", "combine": "a * 0.5 + b"},
    "dot": {"state": "f8", "combine": "a + b", "identity": 0.0, "inputs": "x, y", "lift": "x * y"},
    "welford": {
        "state": "n: i8, mean: f8, m2: f8",
        "lift": "n = 1; mean = x; m2 = 0.0",
        "combine": "n = a.n + b.n; d = b.mean - a.mean; "
        "mean = n == 0 ? 0.0 : a.mean + d * b.n / n; "
        "m2 = a.m2 + b.m2 + (n == 0 ? 0.0 : d * d * a.n * b.n / n)",
        "identity": {"n": 0, "mean": 0.0, "m2": 0.0},
        "finish": "m2 / n",
    },
}


@pytest.mark.parametrize("name", OWN)
def test_operators_of_ones_own_are_trees(name):
    operator = gpureduce.Operator(**OWN[name], name=name)
    rng = generator("own partials", name)
    for case in range(25):
        n = int(rng.integers(1, 200))
        given = [rng.standard_normal((n, 3)).astype("f4") for _ in operator.inputs]
        cuts = cuts_of(rng, n)
        masked = name != "leaky" and case % 3 == 0
        where = rng.random((n, 3)) < 0.7 if masked else True
        parts = [
            partials(
                tuple(x[a:b] for x in given) if len(given) > 1 else given[0][a:b],
                operator,
                axis=0,
                offset=a,
                where=where[a:b] if masked else True,
            )
            for a, b in pairwise(cuts)
        ]
        parts[0] = pickle.loads(pickle.dumps(parts[0]))
        whole = operator(*given, axis=0, where=where)
        assert bits(finish(merged_somehow(rng, parts))) == bits(whole), (name, case)
        if len(parts) > 2:
            with pytest.raises(ValueError, match="follow each other"):
                merge([parts[0], parts[2]])


@pytest.mark.parametrize("axes", [None, (0, 2), (1, 2), (2,), ()])
def test_operators_along_several_axes(axes):
    leaky = gpureduce.Operator(**OWN["leaky"])
    x = generator("own axes").standard_normal((8, 3, 4))
    all_axes = tuple(range(3)) if axes is None else axes
    first = all_axes[0] if all_axes else 0
    inner = int(np.prod([x.shape[d] for d in all_axes[1:]])) if all_axes else 0
    at, cut = (slice(None),) * first, 2
    parts = [
        partials(x[(*at, part)], leaky, axis=axes, offset=start * inner, keepdims=True)
        for start, part in ((0, slice(0, cut)), (cut, slice(cut, None)))
    ]
    if all_axes:
        assert bits(finish(merge(parts))) == bits(leaky(x, axis=axes, keepdims=True))
    whole = partials(x, leaky, axis=axes)
    assert bits(finish(whole)) == bits(leaky(x, axis=axes))


def test_partials_of_operators_merge_with_masked_ones():
    """Of an identity that two of them are not: 0 / 0."""
    rng = generator("masked operators")
    operator = gpureduce.Operator(
        "n: i8, mean: f8",
        lift="n = 1; mean = x",
        combine="n = a.n + b.n; mean = a.mean + (b.mean - a.mean) * b.n / n",
        identity=(0, 0.0),
        finish="mean",
    )
    x, where = rng.standard_normal(200), rng.random(200) < 0.5
    where[:100] = True
    parts = [
        partials(x[:100], operator),
        partials(x[100:], operator, where=where[100:], offset=100),
    ]
    assert finish(merge(parts)) == operator(x, where=where)
    held = gpureduce.Accumulator(operator)
    held.add(x[:70], where=where[:70])
    held.add(x[70:150], where=where[70:150])
    held.add(x[150:], where=where[150:])
    assert held.result() == operator(x, where=where)
    with pytest.raises(TypeError, match="takes no dtype"):
        partials(x, operator, dtype="f4")


def test_operators_are_pickled(tmp_path):
    leaky = gpureduce.Operator(**OWN["leaky"])
    x = generator("own accumulator").standard_normal(30)
    acc = gpureduce.Accumulator(leaky)
    for start in (0, 10, 20):
        acc.add(x[start : start + 10])
        acc = pickle.loads(pickle.dumps(acc))
    assert bits(acc.result()) == bits(leaky(x))
    for work in (acc.partials.tobytes, lambda: acc.save(tmp_path / "acc")):
        with pytest.raises(TypeError, match="are pickled"):
            work()
    assert not list(tmp_path.iterdir())


def test_operators_of_small_arrays():
    trace = gpureduce.Operator("f8", inputs="m[2][2]", lift="m[0][0] + m[1][1]", combine="a + b")
    m = generator("own matrices").standard_normal((4, 3, 2, 2))
    assert bits(finish(partials(m, trace))) == bits(trace(m))


def test_an_operator_that_asks_for_the_index_has_no_parts():
    operator = gpureduce.Operator("f8", lift="x * i", combine="a + b", name="moment")
    with pytest.raises(TypeError, match="asks for the index"):
        partials(np.ones(3), operator)


# --- Accumulator ----------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["sum", "nanmean", "std", "min", "argmax", "any", "prod", "ptp"])
def test_an_accumulator(op, tmp_path):
    rng = generator("accumulator", op)
    x = nasty(rng, np.dtype("f4"), (101, 4, 3))
    acc = gpureduce.Accumulator(op, shape=(4, 3), dtype="f4")
    for start in range(0, 101, 10):
        acc.add(x[start : start + 10] if start % 20 else x[start : start + 10].copy())
        if start == 50:
            acc.save(tmp_path / "acc")
            acc = gpureduce.Accumulator.load(tmp_path / "acc")
        if start == 70:
            acc = pickle.loads(pickle.dumps(acc))
    assert acc.added == 101
    want = outcome(lambda: getattr(gpureduce, op)(x, axis=0))
    assert outcome(lambda: acc.result(op)) == want


def test_an_accumulator_of_many_outputs_and_masks():
    rng = generator("wide accumulator")
    x = draw(rng, np.dtype("f4"), 4 * 200 * 300).reshape(4, 200, 300)
    where = rng.random((200, 300)) < 0.5
    acc = gpureduce.Accumulator("mean", shape=(200, 300), dtype="f4")
    for block in x:
        acc.add(block, where=where)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert bits(acc.result("mean")) == bits(gpureduce.mean(x, axis=0, where=where))
    one = gpureduce.Accumulator("sum", dtype="f4")
    one.add(x)
    one.add(x[0], where=where)
    other = gpureduce.Accumulator("sum", dtype="f4")
    other.add(x[1])
    one.merge(other)
    everything = np.concatenate([x.ravel(), x[0][where], x[1].ravel()])
    assert bits(one.result()) == bits(gpureduce.sum(everything))


def test_threads_add_to_one_accumulator():
    x = finite_bits(generator("threads add"), np.dtype("f4"), 64_000).reshape(64, 1000)
    acc = gpureduce.Accumulator("sum", dtype="f4")
    threads = [threading.Thread(target=lambda row=row: acc.add(row)) for row in x]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bits(acc.result()) == bits(gpureduce.sum(x)) and acc.added == x.size


def test_blocks_that_do_not_fit():
    acc = gpureduce.Accumulator("sum", shape=(3, 2))
    for shape in [(2,), (3,), (2, 3), ()]:
        with pytest.raises(ValueError, match="does not end with"):
            acc.add(np.ones(shape))
    acc.add(np.empty((0, 3, 2)))
    assert (acc.result() == 0).all()


def test_accumulators_of_positions_follow_each_other():
    first, second = gpureduce.Accumulator("argmin"), gpureduce.Accumulator("argmin")
    first.add([3.0, 4.0]), second.add([5.0, 1.0, 9.0])
    first.merge(second)
    first.add([0.5])
    assert first.result() == 5 and first.added == 6 and second.result() == 1
    with pytest.raises(ValueError, match="merge an Accumulator"):
        first.merge(partials([1.0], "argmin", offset=6))


def test_partials_that_were_handed_out_stay():
    acc = gpureduce.Accumulator("sum", shape=40_000)
    acc.add(np.ones(40_000))
    handed = acc.partials
    acc.add(np.ones(40_000))
    assert finish(handed).max() == 1 and acc.result().min() == 2


@pytest.mark.parametrize("block", [["3", "4"], [1 + 2j], [None, 1.0], np.array(["NaT"], "m8[s]")])
def test_what_an_accumulator_does_not_convert(block):
    with pytest.raises(TypeError, match=r"is not converted to float64|not supported"):
        gpureduce.Accumulator("sum").add(block)


def test_a_damaged_accumulator(tmp_path):
    acc = gpureduce.Accumulator("argmin")
    acc.add([3.0, 1.0])
    acc.save(tmp_path / "acc")
    data = (tmp_path / "acc").read_bytes()
    (tmp_path / "acc").write_bytes(b"\1" + data[1:])
    with pytest.raises(ValueError, match="1 elements cannot be"):
        gpureduce.Accumulator.load(tmp_path / "acc")


def test_what_partials_do_not_take():
    def mean(x):
        return "mine"

    with pytest.raises(TypeError, match="ptp takes no where"):
        partials([1.0, 5.0], "ptp", where=[True, False])
    with pytest.raises(TypeError, match="minmax takes no where"):
        partials([1.0, 5.0], "minmax", where=[True, False])
    with pytest.raises(ValueError, match="beyond 2"):
        partials([1.0, 0.0], "argmin", offset=2**63 - 1)
    with pytest.raises(ValueError, match="not known"):
        partials([1.0], mean)
    with pytest.raises(ValueError, match="''"):
        finish(partials([1.0], "sum"), "")
    with pytest.raises(TypeError, match="taken already"):
        gpureduce.fingerprint(partials([1.0], "sum"), "max")
    assert finish(partials([1.0, 2.0], np.mean)) == finish(partials([1.0, 2.0], gpureduce.mean))


def test_indices_of_partials_may_be_arrays():
    p = partials(np.float32([[1, 2, 3], [4, 5, 6]]), "sum", axis=0)
    assert finish(p[np.array([0, 2])]).tolist() == [5, 9]
    assert finish(p[np.array([True, False, True])]).tolist() == [5, 9]
