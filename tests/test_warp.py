"""gpureduce.warp: the published outputs, and a model in NumPy for every width, dtype and length."""

import inspect

import numpy as np
import pytest
from arrays import generator, random_bits
from table import assert_bits, bits

import gpureduce
from gpureduce import _core, warp

COUNT, WHY = _core.device_count()
gpu = pytest.mark.gpu
needs_gpu = pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")
DTYPES = ["int32", "int64", "float32", "float64"]
WIDTHS = [2, 4, 8, 16, 32]
N = np.arange(16)

# (function, arguments, what 16 lanes of 0 to 15 print in the texts)
PUBLISHED = [
    ("broadcast", (2,), [2] * 16),
    ("shift_up", (2,), [0, 1, *range(14)]),
    ("shift_down", (2,), [*range(2, 16), 14, 15]),
    ("wrap", (2,), [*range(2, 16), 0, 1]),
    ("wrap", (-2,), [14, 15, *range(14)]),
    ("butterfly", (1,), [1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14]),
    ("butterfly_array", (1,), [4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11]),
    ("swap", (1, 0, 3), [7, 1, 2, 3, 4, 5, 6, 0, 15, 9, 10, 11, 12, 13, 14, 8]),
]


@gpu
@needs_gpu
@pytest.mark.parametrize(("function", "arguments", "printed"), PUBLISHED, ids=lambda x: str(x)[:9])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_published_outputs(function, arguments, printed, dtype):
    got = getattr(warp, function)(N.astype(dtype), *arguments, width=16)
    assert_bits(got, np.array(printed, dtype), function)


# --- the model: where each value comes from -------------------------------------------------------


def lanes(n, width, values=1):
    """For each place: its lane in the segment, which value of the lane, where lane 0 begins."""
    place = np.arange(n)
    lane = place // values % width
    k = place % values
    return lane, k, place - lane * values - k


def taken(x, source):
    """x[source], and its own value for a place whose source is not there."""
    there = (source >= 0) & (source < len(x))
    return x[np.where(there, source, np.arange(len(x)))]


def broadcast(x, by, width):
    _, _, first = lanes(len(x), width)
    return taken(x, first + by)


def shift_up(x, by, width):
    lane, _, first = lanes(len(x), width)
    return taken(x, np.where(lane >= by, first + lane - by, -1))


def shift_down(x, by, width):
    lane, _, first = lanes(len(x), width)
    return taken(x, np.where(lane + by < width, first + lane + by, -1))


def wrap(x, by, width):
    lane, _, first = lanes(len(x), width)
    return taken(x, first + (lane + by) % width)


def butterfly(x, by, width):
    lane, _, first = lanes(len(x), width)
    return taken(x, first + (lane ^ by))


def butterfly_array(x, by, width):
    lane, k, first = lanes(len(x), width, 4)
    return taken(x, first + 4 * (lane ^ by) + k)


def swap(x, by, width, i, j):
    lane, k, first = lanes(len(x), width, 4)
    even = lane & by & -by == 0
    mine, theirs = np.where(even, i, j), np.where(even, j, i)
    there = first + 4 * (lane ^ by) + theirs
    return taken(x, np.where(k == mine, there, -1))


LENGTHS = [0, 1, 2, 3, 5, 15, 16, 17, 31, 32, 33, 63, 127, 128, 129, 255, 256, 257, 1000, 4099]


def ways(function, width):
    """(by, more arguments) of all that is allowed, but for swap's many."""
    if function == "wrap":
        return [(by, ()) for by in range(-width - 1, 2 * width + 1)]
    if function == "swap":
        return [(by, (i, j)) for by in range(1, width) for i in range(4) for j in range(4)]
    return [(by, ()) for by in range(width)]


MODELS = {m.__name__: m for m in (broadcast, shift_up, shift_down, wrap, butterfly)}
MODELS |= {m.__name__: m for m in (butterfly_array, swap)}


@pytest.mark.parametrize(("function", "arguments", "printed"), PUBLISHED, ids=lambda x: str(x)[:9])
def test_the_model_gives_the_published_outputs(function, arguments, printed):
    by, *more = arguments
    assert MODELS[function](N, by, 16, *more).tolist() == printed


@gpu
@needs_gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", MODELS)
def test_every_argument(function, dtype):
    rng = generator("warp", function, dtype)
    for width in WIDTHS:
        for number, (by, more) in enumerate(ways(function, width)):
            x = random_bits(rng, np.dtype(dtype), LENGTHS[number % len(LENGTHS)])
            kept = x.copy()
            got = getattr(warp, function)(x, by, *more, width=width)
            want = MODELS[function](x, by, width, *more)
            assert_bits(got, want, f"{function} {by} {more}, width {width}, {len(x)} values")
            assert bits(x) == bits(kept)


@gpu
@needs_gpu
@pytest.mark.parametrize("function", MODELS)
def test_every_length(function):
    more = (0, 3) if function == "swap" else ()
    for n in LENGTHS:
        x = np.arange(n) * 1.5
        for label, given in (
            ("plain", x),
            ("reversed", np.arange(n)[::-1] * 1.5),
            ("strided", np.repeat(x, 3)[::3]),
            ("byte-swapped", x.astype(">f8")),
            ("list", x.tolist()),
        ):
            want = MODELS[function](np.asarray(given, float), 1, 32, *more)
            assert_bits(getattr(warp, function)(given, 1, *more), want, f"{n} values, {label}")


@pytest.mark.sanitized
@gpu
@needs_gpu
@pytest.mark.parametrize("function", MODELS)
def test_the_kernels_under_the_sanitizers(function):
    more = (0, 3) if function == "swap" else ()
    for dtype in DTYPES:
        x = np.arange(1037).astype(dtype)
        want = MODELS[function](x, 3, 8, *more)
        assert_bits(getattr(warp, function)(x, 3, *more, width=8), want, dtype)


# --- without a device -----------------------------------------------------------------------------


@pytest.mark.parametrize("function", MODELS)
def test_wrong_arguments_are_refused(function):
    call = getattr(warp, function)
    more = (0, 3) if function == "swap" else ()
    for width in (0, 1, 3, 5, 31, 64, -2):
        with pytest.raises(ValueError, match=rf"{function}: width is {width}; 2, 4, 8, 16 or 32"):
            call(N, 1, *more, width=width)
    for by in (-1, 16, 100) if function != "wrap" else ():
        with pytest.raises(ValueError, match=rf"{function}: \w+ is {by}; [01] to 15"):
            call(N, by, *more, width=16)
    for x in (N.reshape(4, 4), 3.0):
        with pytest.raises(ValueError, match=rf"{function}: x has the shape .* one dimension"):
            call(x, 1, *more)
    for dtype in ("bool", "int8", "uint32", "float16", "complex64", "O", "M8[s]"):
        with pytest.raises(TypeError, match=f"{function}: dtype"):
            call(np.zeros(4, dtype), 1, *more)
    for by, width in ((1.5, 16), (1, 16.0), (None, 16)):
        with pytest.raises(TypeError):
            call(N, by, *more, width=width)


def test_swap_has_four_values():
    for i, j in ((4, 0), (0, 4), (-1, 0)):
        with pytest.raises(ValueError, match=r"swap: [ij] is -?[14]; 0 to 3"):
            warp.swap(N, 1, i, j)
    with pytest.raises(ValueError, match="mask is 0; 1 to 31"):
        warp.swap(N, 0, 1, 2)


@pytest.mark.parametrize("function", MODELS)
@pytest.mark.skipif(COUNT > 0, reason="there is a GPU")
def test_without_a_device_it_says_what_is_missing(function):
    more = (0, 3) if function == "swap" else ()
    with pytest.raises(gpureduce.DeviceError, match="driver") as caught:
        getattr(warp, function)(N, 1, *more)
    assert str(caught.value) == WHY and "device=" not in WHY, "there is none of the CPU"


@pytest.mark.parametrize("function", warp.__all__)
def test_every_shuffle_is_documented(function):
    assert set(warp.__all__) == set(MODELS)
    text = inspect.getdoc(getattr(warp, function))
    for parameter in inspect.signature(getattr(warp, function)).parameters:
        assert f"{parameter} : " in text or f"{parameter}, " in text or f", {parameter} " in text
    assert "Returns\n-------" in text and "Raises\n------" in text and "{" not in text[:200]
