"""Results along an axis of a device array stay on the device, in the library that it came from."""

import warnings

import numpy as np
import pytest
from arrays import draw, finite_bits, generator, real_of
from device import Interface, copy_out, interface_of, on_device
from table import OPS, bits, call, numpy_dtype

import gpureduce
from gpureduce import _core, array_api

COUNT, WHY = _core.device_count()
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}"),
    pytest.mark.filterwarnings("ignore"),
]
FUNCTIONS = [name for name, op in OPS.items() if op["function"]]
DTYPES = ["float32", "float64", "int32", "int8", "bool", "complex64", "float16"]


def host(array):
    """A device array's elements, by nothing but its interface."""
    interface = array.__cuda_array_interface__
    dtype = np.dtype(interface["typestr"])
    count = int(np.prod(interface["shape"]))
    strides = interface["strides"]
    assert strides is None or count == 0 or min(strides, default=1) >= 0
    span = 1 + sum((n - 1) * s for n, s in zip(interface["shape"], strides or (), strict=False))
    size = (span - 1 + dtype.itemsize) if strides else count * dtype.itemsize

    class Memory:
        address = interface["data"][0]

    if count == 0:
        return np.empty(interface["shape"], dtype)
    Memory.size = size
    raw = np.frombuffer(copy_out(Memory), np.uint8)
    return np.ndarray(interface["shape"], dtype, raw.tobytes(), 0, strides)


@pytest.mark.parametrize("function", ["sum", "mean", "max", "argmin", "nansum", "std"])
def test_dots_keep_a_whole_result_on_the_device(function):
    a = draw(generator("dots", function), numpy_dtype("float32"), 60).reshape(3, 4, 5)
    got = call(function, on_device(a), out=...)
    assert type(got) is _core.DeviceArray and got.shape == ()
    assert bits(host(got)) == bits(np.asarray(call(function, a, device="cpu")))
    host_array = call(function, a, out=..., device="cuda")
    assert type(host_array) is np.ndarray and bits(host_array) == bits(host(got))


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_any_array_gets_a_device_array(function, name):
    a = draw(generator("own", name), numpy_dtype(name), 60).reshape(3, 4, 5)
    for axis in (0, 1, -1):
        try:
            want = call(function, a, axis=axis, device="cpu")
        except TypeError:
            with pytest.raises(TypeError):
                call(function, on_device(a), axis=axis)
            continue
        got = call(function, on_device(a), axis=axis)
        if not isinstance(got, tuple):
            got, want = (got,), (want,)
        for one, other in zip(got, want, strict=True):
            assert type(one) is _core.DeviceArray
            assert bits(host(one)) == bits(np.asarray(other)), f"{function} {name} axis {axis}"


def test_a_device_array_can_be_reduced_again():
    a = np.arange(60.0).reshape(3, 4, 5)
    sums = gpureduce.sum(on_device(a), axis=0)
    assert sums.shape == (4, 5)
    assert repr(sums) == "<gpureduce.DeviceArray of shape (4, 5), dtype float64, on cuda:0>"
    assert gpureduce.sum(sums) == a.sum()
    assert gpureduce.max(gpureduce.sum(sums, axis=1, keepdims=True)) == a.sum((0, 2)).max()


def test_whole_arrays_give_scalars_and_named_axes_arrays():
    a = np.arange(60.0).reshape(3, 4, 5)
    assert type(gpureduce.sum(on_device(a))) is np.float64
    for all_of_them in ((0, 1, 2), (-1, 0, 1)):
        got = gpureduce.sum(on_device(a), axis=all_of_them)
        assert got.shape == () and host(got) == a.sum()
    assert gpureduce.argmax(on_device(a.ravel()), axis=0).shape == ()
    assert gpureduce.sum(on_device(a), keepdims=True).shape == (1, 1, 1)


def test_masks_and_initial_on_the_device():
    rng = generator("own masks")
    a, keep = rng.standard_normal((300, 70)), rng.random((300, 70)) < 0.5
    got = gpureduce.sum(on_device(a), axis=0, where=on_device(keep), initial=2.5)
    assert bits(host(got)) == bits(gpureduce.sum(a, axis=0, where=keep, initial=2.5))
    row = gpureduce.sum(on_device(a), axis=1, where=on_device(keep[0]))
    assert bits(host(row)) == bits(gpureduce.sum(a, axis=1, where=keep[0]))
    with pytest.raises(TypeError, match="where must lie on the device"):
        gpureduce.sum(on_device(a), axis=0, where=keep)
    with pytest.raises(ValueError, match="broadcast"):
        gpureduce.sum(on_device(a), axis=0, where=on_device(keep[:3]))


def test_segments_on_the_device():
    a = generator("own segments").standard_normal((1000, 3)).astype(np.float32)
    starts, stops = np.array([0, 10, 10, 990]), np.array([10, 10, 900, 1000])
    got = gpureduce.segments(on_device(a), starts, stops, "sum")
    assert bits(host(got)) == bits(gpureduce.segments(a, starts, stops, "sum"))
    got = gpureduce.segments(on_device(a.T), starts, stops, "sum", axis=1)
    assert bits(host(got)) == bits(gpureduce.segments(a.T, starts, stops, "sum", axis=1))


def test_dtypes_are_converted_there():
    a = generator("own dtypes").integers(-100, 100, (64, 33)).astype(np.int16)
    for to in (np.float32, np.float64, np.int32, np.complex64, np.int8):
        got = gpureduce.sum(on_device(a), axis=0, dtype=to)
        assert bits(host(got)) == bits(gpureduce.sum(a, axis=0, dtype=to))
    swapped = a.astype(">i2")
    assert bits(host(gpureduce.sum(on_device(swapped), axis=1))) == bits(gpureduce.sum(a, axis=1))


def test_out_on_the_device():
    a = generator("own out").standard_normal((64, 33))
    out = on_device(np.zeros(33))
    assert gpureduce.sum(on_device(a), axis=0, out=out) is out
    assert bits(host(out)) == bits(gpureduce.sum(a, axis=0))
    scalar = on_device(np.zeros(()))
    assert gpureduce.max(on_device(a), out=scalar) is scalar
    assert host(scalar) == a.max()


@pytest.mark.parametrize(
    ("out", "error", "match"),
    [
        (lambda: on_device(np.zeros(32)), ValueError, "shape"),
        (lambda: on_device(np.zeros(33, np.float32)), TypeError, "float32"),
        (lambda: on_device(np.zeros(66)[::2]), ValueError, "C order"),
        (lambda: np.zeros(33), TypeError, "cuda:0"),
        (lambda: 3, TypeError, "cuda:0"),
        (lambda: (on_device(np.zeros(33)),), TypeError, "cuda:0"),
    ],
    ids=["shape", "dtype", "stride", "host", "number", "tuple"],
)
def test_out_that_does_not_fit(out, error, match):
    with pytest.raises(error, match=match):
        gpureduce.sum(on_device(np.ones((64, 33))), axis=0, out=out())


def test_out_that_is_read_only():
    memory = on_device(np.zeros(33))
    interface = memory.__cuda_array_interface__
    address = interface["data"][0]
    out = Interface({**interface_of(np.zeros(33), address), "data": (address, True)}, memory)
    with pytest.raises(ValueError, match="writeable"):
        gpureduce.sum(on_device(np.ones((64, 33))), axis=0, out=out)


def test_warnings_that_need_no_wait_and_errors_are_the_hosts():
    a = np.full((3, 4), np.nan)
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        assert np.isnan(gpureduce.nanmax(on_device(a)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = gpureduce.nanmax(on_device(a), axis=0)
    assert np.isnan(host(got)).all()
    with pytest.raises(ValueError, match="All-NaN"):
        gpureduce.nanargmax(on_device(a), axis=0)
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"):
        gpureduce.var(on_device(np.ones((1, 4))), axis=0, ddof=1)


@pytest.mark.parametrize("name", ["float32", "float64", "int32", "bool", "complex64"])
def test_cupy_gets_cupy(name):
    cupy = pytest.importorskip("cupy")
    a = draw(generator("own cupy", name), numpy_dtype(name), 6000).reshape(100, 60)
    given = cupy.asarray(a)
    cupy.cuda.get_current_stream().synchronize()  # asarray's copy may still be under way
    stream = cupy.cuda.Stream(non_blocking=True)
    for function in ("sum", "max", "argmax", "any", "minmax", "var"):
        for view in (given, given.T, given[::3, ::-2]):
            with stream:
                got = getattr(gpureduce, function)(view, axis=0)
                got = got if isinstance(got, tuple) else (got,)
                twice = [one + one for one in got]  # on the same stream
            stream.synchronize()
            want = getattr(gpureduce, function)(view.get(), axis=0, device="cpu")
            want = want if isinstance(want, tuple) else (want,)
            for one, two, other in zip(got, twice, want, strict=True):
                assert isinstance(one, cupy.ndarray)
                assert bits(one.get()) == bits(other)
                assert bits(two.get()) == bits(other + other)


@pytest.mark.parametrize("name", ["float32", "float64", "int64", "bool", "bfloat16"])
def test_torch_gets_torch(name):
    torch = pytest.importorskip("torch")
    a = torch.randn(100, 60, device="cuda").to(getattr(torch, name))
    for function in ("sum", "max", "argmin", "count_nonzero", "std"):
        got = getattr(gpureduce, function)(a, axis=1)
        assert isinstance(got, torch.Tensor)
        assert got.device == a.device
        again = [getattr(gpureduce, function)(a[i]) for i in (0, 57, 99)]
        assert [float(got[i]) for i in (0, 57, 99)] == [float(one) for one in again]
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        b = torch.full((1 << 12, 1 << 12), 1.0, device="cuda")
        for _ in range(20):
            total = gpureduce.sum(b, axis=0) + 1
    side.synchronize()
    assert float(total.sum()) == ((1 << 12) + 1) * (1 << 12)


def test_torchs_allocator_has_the_results():
    torch = pytest.importorskip("torch")
    a = torch.randn(64, 1 << 12, device="cuda")
    before = torch.cuda.memory_allocated()
    got = gpureduce.sum(a, axis=0)
    assert torch.cuda.memory_allocated() - before >= got.numel() * 4
    segments = gpureduce.segments(a, [0, 10], [10, 4000], "add", axis=1)
    want = gpureduce.segments(a.cpu().numpy(), [0, 10], [10, 4000], "add", axis=1)
    assert segments.shape == (64, 2) and bits(segments.cpu().numpy()) == bits(want)
    low, high = gpureduce.minmax(a, axis=1)
    assert torch.equal(low, a.amin(1)) and torch.equal(high, a.amax(1))


@pytest.mark.parametrize("name", ["float32", "int64", "bfloat16"])
def test_torchs_graphs(name):
    """Captured without a call before, and launched again with other numbers."""
    torch = pytest.importorskip("torch")
    a = (100 * torch.randn(300, 70, device="cuda")).to(getattr(torch, name))
    out, graph = torch.empty(70, dtype=a.dtype, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = {
            ("sum", 0, False): gpureduce.sum(a, axis=0),
            ("max", 0, False): gpureduce.max(a, axis=0, out=out),
            ("sum", 1, False): gpureduce.sum(a, axis=1),
            ("min", None, True): gpureduce.min(a, keepdims=True),
        }
        both = gpureduce.minmax(a, axis=1)
        with pytest.raises(ValueError, match="captured"):
            gpureduce.sum(a)
    for factor in (1, 3):
        a.mul_(factor)
        graph.replay()
        torch.cuda.synchronize()
        for (function, axis, keepdims), got in results.items():
            want = getattr(gpureduce, function)(a, axis=axis, keepdims=keepdims)
            assert torch.equal(got, want), f"{function} {axis}"
        for got, want in zip(both, gpureduce.minmax(a, axis=1), strict=True):
            assert torch.equal(got, want)


@pytest.mark.parametrize("function", ["sum", "prod", "max", "minmax", "argmax", "mean"])
def test_one_long_output_is_an_array_too(function):
    """By the kernels for whole arrays, or in a graph by those for many outputs."""
    torch = pytest.importorskip("torch")
    a = torch.randn((1 << 22) + 3, dtype=torch.float64, device="cuda").abs().add(0.5)
    reduced = getattr(gpureduce, function)
    want = reduced(a.cpu().numpy(), axis=0)
    got = reduced(a, axis=0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = reduced(a, axis=0)
    graph.replay()
    for result in (got, captured):
        parts = result if function == "minmax" else (result,)
        assert [part.shape for part in parts] == [()] * len(parts)
        assert [part.item() for part in parts] == list(np.ravel(want))


def test_cupys_graphs():
    cupy = pytest.importorskip("cupy")
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        a = cupy.arange(300 * 70, dtype="f4").reshape(300, 70)
        out = cupy.empty(70, "f4")
        gpureduce.sum(a, axis=0)  # so that CuPy's pool has memory
        stream.synchronize()
        stream.begin_capture()
        one = gpureduce.sum(a, axis=0)
        gpureduce.max(a, axis=0, out=out)
        graph = stream.end_capture()
        for factor in (1, 3):
            a *= factor
            graph.launch(stream)
            stream.synchronize()
            assert bits(one.get()) == bits(gpureduce.sum(a.get(), axis=0))
            assert bits(out.get()) == bits(a.get().max(0))


# One for each way that the kernels for many outputs have: rows in a packet, of two, of four,
# staged rows, rows of a warp's, of blocks'; columns of a few rows, of many blocks, of so many that
# they come together in crowds, of rows taken together; of every second one, staged rows with some
# between them, and of every second element; any strides.
WAYS = [
    ((5000, 4), 1, slice(None)),
    ((5003, 8), 1, slice(None)),
    ((5003, 16), 1, slice(None)),
    ((300, 33), 1, slice(None)),
    ((5000, 800), 1, slice(None)),
    ((3, 40_000), 1, slice(None)),
    ((2, 600_000), 0, slice(None)),
    ((3000, 72), 0, slice(None)),
    ((40_000, 64), 0, slice(None)),
    ((40_000, 3), 0, slice(None)),
    ((3, 900_002), 0, (slice(None), slice(None, None, 2))),
    ((3000, 48), 1, (slice(None), slice(1, -1))),
    ((3001, 33), 1, (slice(None), slice(None, None, 2))),
    ((60, 700), 1, (slice(None), slice(None, None, 2))),
]


@pytest.mark.sanitized
@pytest.mark.parametrize("name", ["float32", "float64", "int8", "complex64"])
def test_every_way_of_many_outputs(name):
    for shape, axis, which in WAYS:
        a = draw(generator("ways", name, shape), numpy_dtype(name), int(np.prod(shape)))
        a = a.reshape(shape)[which]
        for function in ("sum", "max", "argmax", "var", "prod"):
            got = call(function, on_device(a), axis=axis)
            want = call(function, a, axis=axis, device="cpu")
            assert bits(host(got)) == bits(want), f"{function} {name} {shape} axis {axis}"
    keep = generator("ways mask").random(a.shape) < 0.5
    got = gpureduce.sum(on_device(a), axis=1, where=on_device(keep))
    assert bits(host(got)) == bits(gpureduce.sum(a, axis=1, where=keep, device="cpu"))


@pytest.mark.sanitized
@pytest.mark.parametrize("name", ["float32", "int8"])
def test_segments_of_every_length(name):
    rng = generator("ways segments", name)
    a = draw(rng, numpy_dtype(name), 300_000)
    lengths = np.concatenate([rng.integers(0, 40, 2000), [0, 500, 3000, 20_000, 200_000]])
    starts = rng.integers(0, a.size - lengths + 1)
    for op in ("add", "maximum"):
        got = gpureduce.segments(on_device(a), starts, starts + lengths, op, initial=0)
        want = gpureduce.segments(a, starts, starts + lengths, op, initial=0, device="cpu")
        assert bits(host(got)) == bits(want)


@pytest.mark.parametrize("rows", [2, 5, 40, 64])
def test_columns_of_a_few_rows(rows):
    """More of them than threads; some with a number that is far smaller than the others."""
    rng = generator("few rows", rows)
    a = rng.standard_normal((rows, 700_001 if rows == 5 else 700_000), np.float32)
    a[rng.integers(0, rows, 1000), rng.integers(0, a.shape[1], 1000)] *= np.float32(1e-12)
    a[rng.integers(0, rows, 1000), rng.integers(0, a.shape[1], 1000)] *= np.float32(1e-30)
    a[:, 77] = 0
    a[0, 78] = np.inf
    for function in ("sum", "mean", "max", "argmax"):
        got = call(function, on_device(a), axis=0)
        want = call(function, a, axis=0, device="cpu")
        assert bits(host(got)) == bits(want), f"{function} of {rows} rows"


def awkward_columns(name, rows, columns):
    """Ordinary numbers, but for the first ten columns and the last two."""
    dtype = numpy_dtype(name)
    rng = generator("awkward", name, rows, columns)
    a = draw(rng, dtype, rows * columns).reshape(rows, columns)
    large = dtype.type(np.finfo(real_of(dtype)).max)
    any_bits = [finite_bits(rng, dtype, rows) for _ in range(3)]
    a[:, 0] = -dtype.type(0)
    a[:, 1] = 0
    a[rows // 2 :, 2] = -a[: rows - rows // 2, 2][::-1]  # to zero, or a number of the middle
    a[:, 3] = any_bits[0]
    a[:, 4] = -np.abs(any_bits[1])
    a[rows // 2, 5] = np.inf
    a[:, 6] = large * (-1) ** np.arange(rows)
    a[: rows // 3, 7] = large
    a[:, 8] = any_bits[2] * dtype.type(1e-30 if dtype.itemsize > 2 else 1e-4)
    a[rows // 7, 9] = np.nan
    a[:, -1] = -dtype.type(0)
    a[rows - 1, -1] = 0
    a[0, -2], a[rows - 1, -2] = np.inf, -np.inf
    return a


# Columns that blocks add up together: many blocks to few, few to many, rows taken together.
@pytest.mark.parametrize(
    "shape",
    [
        (200_000, 12),
        (30_000, 130),
        (70_000, 14),
        (9_000, 1200),
        pytest.param((12_000, 12), marks=pytest.mark.sanitized),
    ],
)
@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64", "complex128"])
def test_sums_that_blocks_share(name, shape):
    a = awkward_columns(name, *shape)
    given = on_device(a)
    for function in ("sum", "mean"):
        want = call(function, a, axis=0, device="cpu")
        for _ in range(3):  # each leaves its memory as it found it
            assert bits(host(call(function, given, axis=0))) == bits(want), function


@pytest.mark.parametrize("name", ["float32", "float64", "int16", "complex64"])
def test_runs_of_a_strided_axis(name):
    a = draw(generator("runs", name), numpy_dtype(name), 40 * 30 * 5000).reshape(40, 30, 5000)
    keep = generator("runs mask").random(a.shape) < 0.5
    for which in (np.s_[:, :, 1:-1:2], np.s_[:, ::-2, :-3]):
        for function in ("sum", "max", "var", "prod"):
            for axis in ((1, 2), None):
                got = call(function, on_device(a[which]), axis=axis, keepdims=True)
                want = call(function, a[which], axis=axis, keepdims=True, device="cpu")
                assert bits(host(got)) == bits(want), f"{function} {name} {which} {axis}"
        got = gpureduce.sum(on_device(a[which]), axis=(1, 2), where=on_device(keep[which]))
        want = gpureduce.sum(a[which], axis=(1, 2), where=keep[which], device="cpu")
        assert bits(host(got)) == bits(want)


@pytest.mark.alone
def test_nothing_leaks():
    from device import free_bytes

    a = on_device(np.ones((1 << 10, 1 << 10), np.float32))
    free = []
    for _ in range(3):
        for _ in range(2000):
            gpureduce.sum(a, axis=0)
            with pytest.raises(TypeError):
                gpureduce.sum(a, axis=0, out=3)
        free.append(free_bytes())
    assert free[2] >= free[1], free  # 8 MB of results each time


@pytest.mark.parametrize("library", ["cupy", "torch", "jax"])
def test_array_api(library):
    """Arrays of the caller's library, also where no dimension is left."""
    module = pytest.importorskip(library)
    a = draw(generator("array api"), np.dtype("float32"), 60).reshape(3, 4, 5)
    there = {
        "cupy": lambda: module.asarray(a),
        "torch": lambda: module.as_tensor(a, device="cuda"),
        "jax": lambda: module.device_put(a, module.devices("gpu")[0]),
    }
    here = {"cupy": lambda x: x.get(), "torch": lambda x: x.cpu().numpy(), "jax": np.asarray}
    x = there[library]()
    for axis in (None, 0, (0, 1, 2), (0, 2)):
        for keepdims in (False, True):
            for function in ("sum", "max", "std"):
                got = getattr(array_api, function)(x, axis=axis, keepdims=keepdims)
                want = getattr(array_api, function)(a, axis=axis, keepdims=keepdims)
                assert type(got) is type(x) and tuple(got.shape) == want.shape
                assert bits(here[library](got)) == bits(want), f"{function} {axis} {keepdims}"


def test_array_api_of_an_unknown_library():
    a = draw(generator("array api"), np.dtype("int32"), 12).reshape(3, 4)
    x = on_device(a)
    x.dtype = a.dtype
    assert type(array_api.sum(x, axis=0)) is _core.DeviceArray
    assert bits(host(array_api.sum(x, axis=0))) == bits(a.sum(0))
    whole = array_api.sum(x)
    assert type(whole) is np.ndarray and whole.shape == () and whole == a.sum()
