"""Three hundred wrong calls: none crashes, each says what was given, and the type is NumPy's."""

import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from table import TOOLS
from wrong_calls import CALLS, COMMANDS, OTHERS, numpys

import gpureduce
import gpureduce.mpi


def test_there_are_three_hundred():
    assert len(CALLS) + len(COMMANDS) + len(OTHERS) >= 300


def raised(function):
    with warnings.catch_warnings(), pytest.raises(Exception) as caught:
        warnings.simplefilter("ignore")
        function()
    return caught.value


@pytest.mark.parametrize("label", CALLS)
def test_in_python(label):
    call = CALLS[label]
    got = raised(lambda: getattr(gpureduce, call.name)(call.array, **call.given))
    assert call.word in str(got) and len(str(got)) > 10, got
    if call.numpy:
        ask = numpys(call.name, call.array, call.given) if call.numpy is True else call.numpy
        want = raised(ask)
        builtin = next(
            kind for kind in type(want).__mro__ if kind.__module__ != "numpy._core._exceptions"
        )
        assert isinstance(got, builtin), (got, want)
    else:
        assert isinstance(got, (TypeError, ValueError, IndexError)), got
    assert gpureduce.sum([1.0, 2.0]) == 3


def things(words):
    """What an expression names, of libraries that may not be there."""
    A = np.arange(6.0).reshape(2, 3)
    plus = gpureduce.Operator("f8", combine="a + b", identity=0.0)
    found = {"g": gpureduce, "np": np, "A": A, "plus": plus, "P": gpureduce.partials(A, "sum", 0)}
    if "D" in words:
        found["D"] = pytest.importorskip("dask.array").ones((4, 4), chunks=2)
    if "Z" in words:
        found["Z"] = pytest.importorskip("zarr").ones((4, 4), chunks=(2, 2))
    if "R" in words:
        found["R"] = pytest.importorskip("pyarrow").array(["a", None])
    if "X" in words:
        found["X"] = pytest.importorskip("xarray").DataArray(A, dims=("t", "s"))
    if words & {"F", "S"}:
        pandas = pytest.importorskip("pandas")
        found |= {"S": pandas.Series([1.0, 2.0]), "F": pandas.DataFrame({"a": [1.0], "b": ["x"]})}
    return found


@pytest.mark.parametrize("text", OTHERS)
def test_of_what_numpy_has_not(text):
    kind, word = OTHERS[text]
    names = things(set(re.findall(r"\b[A-Z]\b", text)))
    got = raised(lambda: eval(text, names))
    assert isinstance(got, kind), repr(got)
    assert re.search(word if "|" in word else re.escape(word), str(got)), got
    assert gpureduce.sum([1.0, 2.0]) == 3


PROGRAM = """
import contextlib, io, json, sys
from gpureduce.__main__ import main
found = {}
for line in json.load(sys.stdin):
    sys.argv = ["gpureduce", *line.split()]
    told, shown = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(told), contextlib.redirect_stdout(shown):
        try:
            main()
            status = 0
        except SystemExit as error:
            status = error.code
    found[line] = (status, told.getvalue(), shown.getvalue())
json.dump(found, sys.stdout)
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """All of them by one process, as its start takes longest."""
    room = tmp_path_factory.mktemp("wrong")
    np.save(room / "a.npy", np.arange(6.0).reshape(2, 3))
    np.save(room / "text.npy", np.array(["a"]))
    np.save(room / "empty.npy", np.zeros(0))
    np.savez(room / "two.npz", a=np.ones(2), b=np.ones(3))
    (room / "raw.bin").write_bytes(bytes(32))
    (room / "cut.npy").write_bytes((room / "a.npy").read_bytes()[:100])
    (room / "words.csv").write_text("one,two\nthree,four\n")
    here = [str(Path(gpureduce.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps([*COMMANDS]), cwd=room,
        capture_output=True, text=True, check=True,
        env=TOOLS | {"PYTHONPATH": os.pathsep.join(here)},
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.parametrize("line", COMMANDS)
def test_as_a_command(line, answers):
    status, told, shown = answers[line]
    assert status in (1, 2) and shown == "" and "Traceback" not in told, (status, told, shown)
    assert COMMANDS[line] in told, told
    last = told.rstrip().splitlines()[-1]
    assert last.startswith("gpureduce: "), told
    assert status == 2 or len(told.splitlines()) == 1, told
