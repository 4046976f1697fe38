"""Every row answers as it did, on every instruction set and any number of threads."""

import json

import pytest
from isa import ISAS, run_on
from oracle import DIGESTS, digest
from table import ROWS, SANITIZED

import gpureduce

pytest.importorskip("ml_dtypes", reason="no ml_dtypes, which has bfloat16")
KEPT = json.loads(DIGESTS.read_text())
OPS = sorted({op for op, *_ in ROWS})


def test_every_row_is_kept():
    assert {(op, name) for op in KEPT for name in KEPT[op]} == {(op, name) for op, name, *_ in ROWS}


@pytest.mark.parametrize("op", OPS)
def test_every_row_answers_as_it_did(op):
    got = {name: digest(op, name) for row, name, *_ in ROWS if row == op}
    assert got == KEPT[op]


@pytest.mark.skipif(SANITIZED, reason="the sanitized build has its runtime from this process alone")
@pytest.mark.parametrize("isa", [isa for isa in ISAS if isa != gpureduce.isa()])
def test_so_does_every_instruction_set(isa):
    used, text = run_on(isa, "import json, oracle\nprint(json.dumps(oracle.digests()))\n")
    if used != isa:
        pytest.skip(f"this processor has {used} at most")
    assert json.loads(text) == KEPT


@pytest.mark.parametrize("threads", [1, 3])
def test_so_does_every_number_of_threads(threads):
    gpureduce.set_num_threads(threads)
    for op, name in (("sum", "float64"), ("var", "float32"), ("prod", "complex64")):
        assert digest(op, name) == KEPT[op][name], (op, name)
