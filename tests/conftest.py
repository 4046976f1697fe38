"""What every test shares: the seed in the header, the thread count put back afterwards."""

import pytest
from arrays import SEED

import gpureduce


def pytest_report_header():
    return (
        f"gpureduce: GPUREDUCE_TEST_SEED={SEED}, isa {gpureduce.isa()}, "
        f"{gpureduce.get_num_threads()} threads"
    )


@pytest.fixture(autouse=True)
def threads_put_back():
    yield
    gpureduce.set_num_threads(0)
