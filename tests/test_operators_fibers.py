"""Users' operators as a device folds them, where there is none: planned as for one, and run by
fibers (operator_fibers.py)."""

import shutil

import numpy as np
import operator_walks as walks
import pytest
from arrays import generator
from operator_cases import CASES
from operator_fibers import ROOT, Fibers, There
from table import SANITIZED

from gpureduce import Operator
from gpureduce.custom.cut import FAN

pytestmark = [
    pytest.mark.skipif(not shutil.which("g++"), reason="no g++"),
    pytest.mark.skipif(
        not (ROOT / "kernels").is_dir(), reason="the sources are not beside the tests"
    ),
    pytest.mark.skipif(SANITIZED, reason="AddressSanitizer does not know these stacks"),
]


@pytest.fixture(scope="module")
def fibers(tmp_path_factory):
    return Fibers(tmp_path_factory.mktemp("fibers"))


class Place:
    has_own_functions = False
    put = staticmethod(There)

    @staticmethod
    def fetched(a):
        return a.array if isinstance(a, There) else np.asarray(a)


@pytest.fixture
def place(fibers, monkeypatch):
    fibers.install(monkeypatch)
    fibers.launches.clear()
    return Place


@pytest.mark.parametrize("name", CASES)
def test_the_bits_are_the_cpus(name, place):
    walks.walk_layouts(place, name, generator("fibers of operators", name), 6)


@pytest.mark.parametrize(
    "name", ["affine", "line", "two sum", "welford", "half", "complex product"]
)
def test_addresses(name, place, fibers):
    walks.walk_addresses(place, name, generator("addresses of fibers", name), 60)
    assert {bool(args[11]) for *_, args in fibers.launches} == {False, True}  # by words


@pytest.mark.parametrize("name", walks.MASKED)
def test_masks(name, place):
    walks.walk_masks(place, name, generator("masked fibers", name), 4)


LONG = [((140_001,), 0), ((3, 9000), 1), ((5000, 40), 0), ((20_000, 3), 0), ((30, 70, 20), (0, 2))]


@pytest.mark.parametrize("name", ["welford", "runs", "hypot", "matrices", "half", "line"])
def test_long_ones_are_cut(name, place, fibers, monkeypatch):
    monkeypatch.setattr(fibers, "processors", 9)  # with room for more parts than one warp folds
    walks.walk_long_ones(place, name, generator("long fibers", name), LONG)
    assert {unit for unit, *_ in fibers.launches} >= {1, 32}
    shared = {kind: max(args[8] for unit, _, args in fibers.launches if unit == kind)
              for kind in (1, 32)}  # fmt: skip
    assert shared[1] > 1 and shared[32] > FAN  # so many share an output


def test_quick_steps(place, fibers):
    walks.walk_quick(place, generator("quick fibers"), 4)
    assert {unit for unit, *_ in fibers.launches} == {1, 32}


SHORT = [((400, 12), 1), ((300, 30), 1), ((90, 101), 1), ((7, 99), 1)]


@pytest.mark.parametrize("name", ["welford", "runs", "hypot", "matrices", "half"])
def test_short_rows_go_together(name, place, fibers):
    walks.walk_long_ones(place, name, generator("short fibers", name), SHORT)
    assert {unit for unit, *_ in fibers.launches} == {0}


@pytest.mark.parametrize("name", ["welford", "runs", "hypot", "matrices", "half", "line"])
def test_outputs_of_few(name, place, fibers):
    walks.walk_few(place, name, generator("few of fibers", name))
    assert {unit for unit, *_ in fibers.launches} >= ({2} if name == "matrices" else {2, 4, 8})


@pytest.mark.parametrize("name", ["runs", "line", "two sum"])
def test_segments(name, place):
    walks.walk_segments(place, name, generator("segments of fibers", name), 900, 7)


@pytest.mark.parametrize(
    "walk",
    [walks.walk_arguments, walks.walk_outs, walks.walk_rows, walks.walk_the_host,
     walks.large_states, walks.many_numbers, walks.walk_again],
)  # fmt: skip
def test_what_else_is_asked(walk, place):
    walk(place)


@pytest.mark.parametrize("kernel", walks.TEXTBOOK)
def test_the_textbook_kernels(kernel, place):
    walks.walk_textbook(place, kernel)


def test_what_is_refused(place):
    two = walks.made("two sum")
    x, other = np.ones((3, 4)), np.ones(4)
    with pytest.raises(ValueError, match="memory that the inputs have"):
        two(There(x), axis=0, out=There(x[0]))
    with pytest.raises(ValueError, match="out has the shape"):
        two(There(x), axis=1, out=There(other))
    with pytest.raises(TypeError, match="does not fit out's"):
        two(There(x), axis=0, out=There(np.empty(4, int)))
    with pytest.raises(ValueError, match="written to"):
        two(There(x), axis=0, out=There(other, read_only=True))
    with pytest.raises(TypeError, match="where must be of bool, not float64"):
        two(There(x), where=There(other))
    with pytest.raises(ValueError, match="where of shape"):
        two(There(x), where=There(np.ones(3, bool)))
    with pytest.raises(ValueError, match="no identity"):
        Operator("f8", combine="a - b")(There(x[:0]))
    with pytest.raises(IndexError):
        two.segments(There(x), [0], [4])
    with pytest.raises(TypeError, match="one device"):
        two(There(x), device="cuda:all")
    with pytest.raises(ValueError, match="not known"):
        two(There(x), device="tpu")
