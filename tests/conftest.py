"""What every test shares: the seed in the header, the thread count put back afterwards."""

import shutil
import signal

import fake
import numpy as np
import pytest
from arrays import SEED

import gpureduce
from gpureduce import _core

# A job in a shell's background is started deaf to Ctrl-C, and so are the processes it starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


DEVICES, WHY = _core.device_count()


def pytest_report_header():
    lines = [
        f"gpureduce: GPUREDUCE_TEST_SEED={SEED}, isa {gpureduce.isa()}, "
        f"{gpureduce.get_num_threads()} threads"
    ]
    return lines if DEVICES else [*lines, f"gpureduce: tests that need a GPU are left out: {WHY}"]


def pytest_collection_modifyitems(config, items):
    """What needs a GPU is nearly half of the tests."""
    if not DEVICES:
        left_out = [item for item in items if item.get_closest_marker("gpu")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("gpu")]


@pytest.fixture(scope="session")
def fakes(tmp_path_factory):
    """The folder of a driver and a compiler without a device."""
    if not shutil.which(fake.CC):
        pytest.skip(f"no {fake.CC}")
    if not fake.SOURCES.is_dir():
        pytest.skip("the sources are not beside the tests")
    return fake.build(tmp_path_factory.mktemp("fakes"))


@pytest.fixture(autouse=True)
def threads_put_back():
    yield
    gpureduce.set_num_threads(0)


@pytest.fixture(autouse=True)
def values_alone():
    """Numbers here are nasty on purpose; what is told of them is tested in test_warnings.py."""
    with np.errstate(all="ignore"):
        yield
