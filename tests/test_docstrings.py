"""Help as numpydoc has it, short enough to be read, with examples that are true."""

import doctest
import inspect
import math
import pydoc
import re

import numpy as np
import pytest

import gpureduce
from gpureduce import _core, array_api, warp, work_queue

SECTIONS = ["Parameters", "Returns", "Raises", "See Also", "Notes", "References", "Examples"]
TWO_SCREENS = 80
GLOBS = {"gpureduce": gpureduce, "math": math, "np": np}
GPU = re.compile(r'device="cuda|kernel="|warp\.|work_queue\.')


def documented():
    """{name: object} of what the package and its modules offer."""
    found = {name: getattr(gpureduce, name) for name in gpureduce.__all__}
    for module in (array_api, warp, work_queue):
        short = module.__name__.removeprefix("gpureduce.")
        found |= {f"{short}.{name}": getattr(module, name) for name in module.__all__}
    return {name: thing for name, thing in found.items() if inspect.isroutine(thing)}


DOCUMENTED = documented()


def headings(text):
    return re.findall(r"^([A-Z][A-Za-z ]+)\n-+$", text, re.M)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_sections_are_numpydocs(name):
    text = inspect.getdoc(DOCUMENTED[name])
    assert re.match(r"[A-Z`].*\.\n", f"{text}\n"), "a first line that is a sentence"
    found = headings(text)
    assert found == [section for section in SECTIONS if section in found], found
    assert {"Returns", "Examples"} <= {*found} or not found or name == "set_num_threads", found
    assert "Examples" in found, found
    for line in text.splitlines():
        assert len(line) <= 100, line
    for kind in re.findall(r"^(\S+)\n    If ", text, re.M):
        assert kind in ("gpureduce.DeviceError", "numpy.exceptions.AxisError") or re.fullmatch(
            r"[A-Z]\w+Error", kind
        ), kind


@pytest.mark.parametrize("name", gpureduce.functions.PUBLIC)
def test_help_fits_two_screens(name):
    text = pydoc.render_doc(getattr(gpureduce, name), renderer=pydoc.plaintext)
    text = re.sub(r"\(\n.*?\n\)\n", "(...)\n", text, count=1, flags=re.S)  # a line each since 3.13
    assert len(text.splitlines()) <= TWO_SCREENS


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_are_true(name):
    tests = doctest.DocTestFinder().find(DOCUMENTED[name], name, globs=dict(GLOBS))
    run(tests, "shift" in name or GPU.search(f"{name}("))


def run(tests, needs_gpu):
    if needs_gpu and not _core.device_count()[0]:
        return
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in tests:
        runner.run(test, clear_globs=False)
    result = runner.summarize(verbose=False)
    assert not result.failed, f"{result.failed} of {result.attempted} examples"
