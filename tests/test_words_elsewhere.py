"""Words that other libraries add, which know nothing but sums of int64."""

import numpy as np
import pytest
from arrays import finite_bits, generator
from table import bits

import gpureduce
from gpureduce import from_words, partials, words

PIECES, GROUPS = 60, 4
KINDS = [("f4", "sum"), ("f8", "mean"), ("f4", "std"), ("i4", "var"), ("c8", "mean"), ("?", "any")]


def pieces(dtype, op):
    """A group for each piece, its words, and what the groups are to give."""
    rng = generator("elsewhere", dtype, op)
    x = finite_bits(rng, np.dtype("f4"), PIECES * 50).reshape(PIECES, 50)
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
    group = rng.integers(GROUPS, size=PIECES)
    rows = words(partials(x, op, axis=1))
    want = [bits(getattr(gpureduce, op)(x[group == g])) for g in range(GROUPS)]
    return group, rows, want


def finished(rows, dtype, op):
    p = from_words(np.asarray(rows), op, dtype)
    return [bits(gpureduce.finish(one)) for one in p]


def frame_of(group, rows):
    return {"g": group, **{f"w{n}": column for n, column in enumerate(rows.T)}}


@pytest.mark.parametrize(("dtype", "op"), KINDS)
def test_pandas(dtype, op):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    group, rows, want = pieces(dtype, op)
    summed = pd.DataFrame(frame_of(group, rows)).groupby("g").sum()
    assert finished(summed.to_numpy(), dtype, op) == want


@pytest.mark.parametrize(("dtype", "op"), KINDS)
def test_duckdb(dtype, op):
    """Its sums of BIGINT are HUGEINT, which an int64 holds here."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    group, rows, want = pieces(dtype, op)
    names = [f"w{n}" for n in range(rows.shape[1])]
    sums = ", ".join(f"SUM({name})::BIGINT AS {name}" for name in names)
    with duckdb.connect() as connection:
        connection.register("parts", pa.table(frame_of(group, rows)))
        found = connection.sql(f"SELECT g, {sums} FROM parts GROUP BY g ORDER BY g").fetchall()
    assert finished([row[1:] for row in found], dtype, op) == want


@pytest.mark.parametrize(("dtype", "op"), KINDS)
def test_arrow(dtype, op):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    group, rows, want = pieces(dtype, op)
    names = [f"w{n}" for n in range(rows.shape[1])]
    table = pa.table(frame_of(group, rows)).group_by("g")
    summed = table.aggregate([(name, "sum") for name in names]).sort_by("g")
    found = np.stack([summed[f"{name}_sum"].to_numpy() for name in names], axis=1)
    assert finished(found, dtype, op) == want


@pytest.mark.parametrize(("dtype", "op"), KINDS)
def test_plain_sums_of_arrays(dtype, op):
    group, rows, want = pieces(dtype, op)
    ways = {"numpy": lambda part: part.sum(axis=0)}
    for library, take in (
        ("dask.array", lambda da, part: da.from_array(part, chunks=(7, 5)).sum(0).compute()),
        ("xarray", lambda xr, part: xr.DataArray(part, dims=("p", "w")).sum("p").values),
    ):
        try:
            module = __import__(library, fromlist=["array"])
        except ImportError:
            continue
        ways[library] = lambda part, module=module, take=take: take(module, part)
    for name, way in ways.items():
        found = np.stack([way(rows[group == g]) for g in range(GROUPS)])
        assert finished(found, dtype, op) == want, name


@pytest.mark.parametrize(("dtype", "op"), KINDS)
def test_flox(dtype, op):
    flox = pytest.importorskip("flox", reason="flox is not installed")
    group, rows, want = pieces(dtype, op)
    found, *_ = flox.groupby_reduce(rows.T, group, func="sum")
    assert finished(found.T, dtype, op) == want
