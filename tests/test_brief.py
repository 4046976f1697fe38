"""Partials in doubles, as chunked arrays have them among their tasks: the bits of words."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from arrays import draw, finite_bits, generator
from cuts import cuts_of
from isa import ISAS, run_on
from table import bits

import gpureduce
from gpureduce.chunked import plan as plans
from gpureduce.chunked.brief import Brief, merged, together

NAMES = ["sum", "nanmean", "var", "nanstd"]


def parts_of(plan, x, cuts, mask=None):
    masks = [None if mask is None else mask[a:b] for a, b in pairwise(cuts)]
    return [plan.part([x[a:b]], m, [0, 0]) for (a, b), m in zip(pairwise(cuts), masks, strict=True)]


def usual(rng, dtype, n):
    return rng.standard_normal(n).astype(dtype)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", NAMES)
def test_any_cut_has_the_bits_of_the_whole(name, dtype):
    rng, brief = generator("brief", name, dtype), 0
    for n in range(150):
        shape = tuple(rng.integers(1, 60, 2).tolist())
        make = (draw, finite_bits, lambda rng, dtype, n: rng.standard_normal(n).astype(dtype))[
            n % 3
        ]
        x = make(rng, np.dtype(dtype), shape[0] * shape[1]).reshape(shape)
        if n % 5 == 0:
            x[rng.random(shape) < 0.1] = rng.choice([np.nan, np.inf, -np.inf, -0.0])
        if n % 7 == 0:
            x = np.asfortranarray(x)
        axis = [0, (0, 1)][n % 2]
        how = {"axis": axis} | ({"where": rng.random(shape) < 0.6} if n % 4 == 0 else {})
        plan = plans.plan_of(name, x, how, "arrays")
        parts = parts_of(plan, x, cuts_of(rng, shape[0]), how.get("where"))
        brief += sum(isinstance(p, Brief) for p in parts)
        rng.shuffle(parts)
        while len(parts) > 1 and rng.random() < 0.5:
            parts[:2] = [pickle.loads(pickle.dumps(merged(parts[:2])))]
        want = getattr(gpureduce, name)(x, **how)
        assert bits(plan.finished(together(parts), 0)) == bits(want), (n, shape, how)
    assert brief > 50


def test_they_have_the_words_of_partials():
    x = generator("brief words").standard_normal((40, 30))
    x[3, 4], x[5, 6] = np.nan, np.inf
    x[:, 7], x[:, 8] = -0.0, 0.0
    for dtype in ("f4", "f8"):
        for name in NAMES:
            plan = plans.plan_of(name, x.astype(dtype), {"axis": 0}, "arrays")
            p = together(parts_of(plan, x.astype(dtype), [0, 7, 40]))
            assert isinstance(p, Brief) and isinstance(p.merged(), Brief)
            words = gpureduce.partials(x.astype(dtype), name, 0, keepdims=True)
            if name in ("sum", "nanmean"):
                assert p.words() == words == p.merged().words()
            assert bits(gpureduce.finish(p.words(), name)) == bits(gpureduce.finish(words, name))


def test_what_doubles_do_not_hold_has_words():
    wide = np.array([[1e300, 1], [1, 2], [1e-300, 3.0]])
    plan = plans.plan_of("sum", wide, {"axis": 0}, "arrays")
    assert isinstance(plan.part([wide[1:]], None, [0, 0]), Brief)
    assert not isinstance(plan.part([wide], None, [0, 0]), Brief)
    ones = [plan.part([row[np.newaxis]], None, [0, 0]) for row in wide]
    assert all(isinstance(p, Brief) for p in ones) and not isinstance(merged(ones), Brief)
    assert bits(plan.finished(together(ones), 0)) == bits(gpureduce.sum(wide, axis=0))
    small = np.full((9, 2), 5e-324)  # whose squares no double holds
    plan = plans.plan_of("var", small, {"axis": 0}, "arrays")
    assert not isinstance(plan.part([small], None, [0, 0]), Brief)
    large = np.full((9, 2), 1.5e308)
    plan = plans.plan_of("mean", large, {"axis": 0}, "arrays")
    assert bits(plan.finished(plan.part([large], None, [0, 0]), 0)) == bits(large[0])


def test_a_network_brings_them_where_it_likes():
    x = generator("brief buffers").standard_normal((9, 4))
    plan, buffers = plans.plan_of("sum", x, {"axis": 0}, "arrays"), []
    sent = pickle.dumps(plan.part([x], None, [0, 0]), 5, buffer_callback=buffers.append)
    odd = [memoryview(b"." + bytes(b.raw()))[1:] for b in buffers]
    assert odd and bits(plan.finished(pickle.loads(sent, buffers=odd), 0)) == bits(
        gpureduce.sum(x, axis=0)
    )


SCRIPT = """
import numpy as np
from gpureduce.chunked import plan as plans
from gpureduce.chunked.brief import together
rng = np.random.default_rng(5)
for name in ("sum", "var"):
    for dtype in ("f4", "f8"):
        for shape in ((700, 33), (9, 300), (64, 64)):
            x = (rng.standard_normal(shape) * 2.0 ** rng.integers(-30, 30, shape)).astype(dtype)
            for axis in (0, 1):
                plan = plans.plan_of(name, x, {"axis": axis}, "arrays")
                parts = [plan.part([y], None, [0, 0]) for y in np.array_split(x, 3, axis)]
                got = plan.finished(together(parts), 0)
                assert got.tobytes() == getattr(gpureduce, name)(x, axis=axis).tobytes()
"""


@pytest.mark.parametrize("isa", ISAS)
def test_every_instruction_set(isa):
    run_on(isa, SCRIPT)
