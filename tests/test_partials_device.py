"""Partials of arrays on a device: by copies in the host's memory, on a GPU and on a driver that has
none."""

import json

import fake
import numpy as np
import pytest
from arrays import finite_bits, generator
from device import on_device
from table import bits, numpy_dtype

import gpureduce
from gpureduce import _core

COUNT, WHY = _core.device_count()
DTYPES = ["float32", "float64", "float16", "int8", ">i4", "bool", "complex64"]


def views(a):
    """Strides of all signs and sizes, and none."""
    return {
        "whole": a,
        "transposed": a.T,
        "reversed": a[::-1, :, ::-1],
        "sparse": a[:, ::2, :1],
        "broadcast": np.broadcast_to(a[:1], a.shape),
        "one": a[0, 0, 0:1],
        "empty": a[:0],
    }


def check(dtype):
    """For a GPU and for the fake driver."""
    a = finite_bits(generator("device partials"), np.dtype("f4"), 7 * 6 * 5).reshape(7, 6, 5)
    with np.errstate(all="ignore"):
        a = a.astype(dtype)
    where = generator("device mask").random(a.shape) < 0.5
    for name, view in views(a).items():
        for op in ("sum", "var", "max", "count_nonzero"):
            if name == "empty" and op == "max":
                continue
            p = gpureduce.partials(on_device(view), op, axis=0)
            assert p.tobytes() == gpureduce.partials(view, op, axis=0).tobytes(), (name, op)
    p = gpureduce.partials(on_device(a), "sum", where=on_device(where))
    assert bits(gpureduce.finish(p)) == bits(gpureduce.sum(a, where=where))
    acc = gpureduce.Accumulator("sum", shape=5, dtype=a.dtype)
    acc.add(on_device(a), where=on_device(where))
    assert bits(acc.result()) == bits(gpureduce.sum(a, axis=(0, 1), where=where))
    return True


@pytest.mark.gpu
@pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")
@pytest.mark.parametrize("dtype", DTYPES)
def test_on_a_gpu(dtype):
    assert check(dtype)


@pytest.mark.gpu
@pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")
def test_tensors_of_a_gpu():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for dtype in (torch.float32, torch.bfloat16):
        t = torch.randn(1000, 5, device="cuda").to(dtype)
        host = t.cpu().view(torch.int16).numpy().view(numpy_dtype("bfloat16"))
        host = host if dtype is torch.bfloat16 else t.cpu().numpy()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            p = gpureduce.partials(t * 1, "mean", axis=0)
        assert bits(gpureduce.finish(p)) == bits(gpureduce.mean(host, axis=0))


def test_on_a_driver_without_a_device(fakes, tmp_path):
    script = (
        "import json, test_partials_device as t\n"
        "from gpureduce.partial import host\n"
        "found = []\n"
        "for host._PIECE in (64 << 20, 100, 1):\n"
        "    found += [t.check(dtype) for dtype in t.DTYPES]\n"
        "print(json.dumps(found))"
    )
    found = fake.run(script, fake.environment(fakes, tmp_path))
    assert json.loads(found) == [True] * 3 * len(DTYPES)
