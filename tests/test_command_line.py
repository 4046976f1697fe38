"""python -m gpureduce sum FILE: .npy files and raw numbers, and one line for what goes wrong."""

import importlib.util
import io
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from table import OPS, assert_bits, call, dtype_names, numpy_dtype
from test_threads import SECONDS, python

import gpureduce
from gpureduce import __main__, _core

FUNCTIONS = [name for name, op in OPS.items() if op["function"]]
A = (np.arange(24.0).reshape(2, 3, 4) * 7) % 11


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """The command line in this process, in a room of its own: what it prints."""
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", A)
    A.tofile("a.raw")

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["gpureduce", *words])
        __main__.main()
        out, err = capsys.readouterr()
        assert all("the first line is taken as a header" in line for line in err.splitlines())
        return out

    return run


def shown(result, name):
    """One number a line, all of it; of two results the least first."""
    return "".join(f"{one!s}\n" for one in np.asarray(result).flat)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function(command, name):
    assert command(name, "a.npy") == shown(call(name, A), name)
    assert command(name, "a.npy", "--axis", "1") == shown(call(name, A, axis=1), name)
    kept = command(name, "a.npy", "--axis=-1", "--keepdims", "--device", "cpu")
    assert kept == shown(call(name, A, axis=-1, keepdims=True), name)
    if OPS[name]["position"]:
        with pytest.raises(SystemExit):
            command(name, "a.npy", "--axis", "0,1")
    else:
        two = shown(call(name, A, axis=(0, 2)), name)
        assert command(name, "a.npy", "--axis", "0,2") == two
        assert command(name, "a.npy", "--axis", "0", "--axis", "-1") == two
    if OPS[name]["spread"]:
        assert command(name, "a.npy", "--ddof", "1.5") == shown(call(name, A, ddof=1.5), name)
    if OPS[name]["alias"]:
        assert command(OPS[name]["alias"], "a.npy") == command(name, "a.npy")


@pytest.mark.parametrize("name", ["sum", "minmax", "argmax"])
def test_out(command, name):
    for words, axis in ([], None), (["--axis", "0"], 0):
        assert command(name, "a.npy", *words, "--out", "result.npy") == ""
        assert_bits(np.load("result.npy"), call(name, A, axis=axis), name)


@pytest.mark.parametrize("dtype", [name for name in dtype_names() if "time" not in name])
def test_raw_numbers(command, dtype):
    a = A.astype(numpy_dtype(dtype))
    with open("raw", "wb") as file:
        file.write(b"head.." + a.tobytes())
    words = ["max", "raw", "--dtype", dtype, "--offset", "6"]
    assert command(*words) == f"{gpureduce.max(a)!s}\n"
    assert command(*words, "--shape", "2,3,4", "--axis", "0,1") == shown(a.max((0, 1)), "max")


def test_other_layouts(command):
    A.astype(">f4").tofile("raw")
    assert command("sum", "raw", "--dtype", ">f4") == f"{gpureduce.sum(A, dtype='f4')}\n"
    np.save("f.npy", np.asfortranarray(A).astype(">i2"))
    assert command("sum", "f.npy", "--axis", "0") == shown(A.sum(0).astype(int), "sum")
    np.save("time.npy", A.astype("m8[s]"))
    assert command("max", "time.npy") == "10 seconds\n"
    A.astype("M8[D]").tofile("raw")
    assert command("max", "raw", "--dtype", "M8[D]") == "1970-01-11\n"


def test_nothing_in_the_file(command):
    open("empty", "w").close()
    np.save("empty.npy", np.ones((0, 3)))
    assert command("sum", "empty", "--dtype", "f4") == "0.0\n"
    assert command("sum", "empty", "--dtype", "f4", "--shape", "0,2", "--axis", "0") == "0.0\n0.0\n"
    assert command("sum", "empty.npy", "--axis", "1") == ""
    np.save("scalar.npy", np.int8(3))
    assert command("sum", "scalar.npy") == "3\n"


def test_progress(command):
    pytest.importorskip("tqdm")
    assert command("sum", "a.npy", "--progress") == f"{A.sum()}\n"


WRONG = {
    "no file": ("sum nowhere.npy", "nowhere.npy"),
    "a directory": ("sum .", "directory"),
    "no .npy": ("sum a.raw", "--dtype"),
    "empty": ("sum nothing", "--dtype"),
    "cut off": ("sum cut.npy", "cut.npy: mmap"),
    "a pipe": ("sum pipe", "pipe is a pipe"),
    "raw numbers from a pipe": ("sum pipe --dtype u1", "pipe is a pipe"),
    "no end of its header": ("sum open.npy", "open.npy: "),
    "a shape of truth": ("sum true.npy", "true.npy: "),
    "objects": ("sum objects.npy", "objects.npy: arrays of Python objects are not reduced"),
    "objects in an .npz": ("sum objects.npz", "objects.npz: arrays of Python objects are not"),
    "text": ("sum text.npy", "<U1"),
    "structure": ("sum structure.npy", "'f0'"),
    "not of floats": ("nansum bits.npy --axis 3", "axis 3"),
    "npy with dtype": ("sum a.npy --dtype f8", "without --dtype"),
    "npz with dtype": ("sum two.npz --dtype u1", "two.npz is an .npz file, and --dtype is"),
    "table with dtype": ("sum mixed.csv --dtype u1", "mixed.csv is a table, and --dtype is for"),
    "npy with shape": ("sum a.npy --shape 24", "a.npy: --shape and --offset are for raw numbers"),
    "npy with offset": ("sum a.npy --offset 8", "--offset"),
    "unknown dtype": ("sum a.raw --dtype f3", "float64"),
    "nonsense dtype": ("sum a.raw --dtype []", "float64"),
    "object dtype": ("sum a.raw --dtype O", "float64"),
    "dtype of nothing": ("sum a.raw --dtype S0", "float64"),
    "long double": ("sum a.raw --dtype g", "float64"),
    "shape too small": ("sum a.raw --dtype f8 --shape 2,3", "192 bytes"),
    "shape too large": ("sum a.raw --dtype f8 --shape 2,3,5", "192 bytes"),
    "shape negative": ("sum a.raw --dtype f8 --shape=-2", "--shape -2: one length may be -1"),
    "shape twice negative": ("sum a.raw --dtype f8 --shape -4,-6", "--shape -4,-6: one length"),
    "shape open twice": ("sum a.raw --dtype f8 --shape -1,-1", "--shape -1,-1: one length"),
    "shape open beside none": ("sum nothing --dtype f8 --shape 0,-1", "--shape 0,-1: one length"),
    "shape of no numbers": ("sum a.raw --dtype f8 --shape 2x3", "--shape 2x3"),
    "size": ("sum a.raw --dtype f8 --offset 3", "189 bytes"),
    "offset too large": ("sum a.raw --dtype f8 --offset 200", "has 192 bytes, 0 to 192"),
    "offset negative": ("sum a.raw --dtype f8 --offset -8", "has 192 bytes, 0 to 192"),
    "axis": ("sum a.npy --axis 3", "axis 3 is out of bounds"),
    "axis twice": ("sum a.npy --axis 1,-2", "duplicate"),
    "axis of no numbers": ("sum a.npy --axis x", "--axis x"),
    "two axes": ("argmin a.npy --axis 0,1", "one --axis"),
    "device": ("sum a.npy --device gpu", "'gpu'"),
    "no device": ("sum a.npy --device cuda:99", ""),
    "nowhere to write": ("sum a.npy --out nowhere/b.npy", "nowhere/b.npy"),
    "no file to write": ("sum a.npy --out .", ".npy, .csv"),
    "nothing to reduce": ("max empty.npy", "zero-size"),
    "made as it is read": ("sum /proc/version", "/proc/version is made as it is read"),
    "raw, made as it is read": ("sum /proc/version --dtype u1", "/proc/version is made as it is"),
    "demo of no file": ("demo nowhere", "nowhere"),
    "demo of a file and the Earth": ("demo words --picture x.png", "without a file"),
    "demo of no .npy file": ("demo nowhere.npy", "nowhere.npy"),
    "demo of a directory": ("demo .", "directory"),
    "demo of what is cut off": ("demo cut.npy", "cut.npy: "),
    "demo of half a header": ("demo open.npy", "open.npy: "),
    "demo of objects": ("demo objects.npy", "objects.npy: arrays of Python objects are not"),
    "demo of text": ("demo text.npy", "text.npy is of <U1"),
    "demo of structure": ("demo structure.npy", "structure.npy is of [('f0'"),
    "demo of nothing": ("demo empty.npy", "empty.npy: there are no numbers"),
    "demo of an empty text": ("demo nothing", "nothing: there are no numbers"),
    "demo of no numbers": ("demo words", "words: there are no numbers"),
    "demo of rows of any length": ("demo rows", "rows: line 2 has 1 cells and line 1 has 2"),
    "demo of bytes": ("demo a.raw", "a.raw: "),
    "a cell of text": ("sum mixed.csv", "mixed.csv: line 3: 'x' is no number"),
    "demo of a cell of text": ("demo mixed.csv", "mixed.csv: line 3: 'x' is no number"),
    "a table of nothing": ("sum nothing.csv", "nothing.csv: there are no numbers"),
    "two arrays": ("sum two.npz", "two.npz holds a, b: say which with --key"),
    "no arrays": ("sum zero.npz", "zero.npz: there are no arrays in it"),
    "no such array in none": ("sum zero.npz --key a", "zero.npz: there are no arrays in it"),
    "an empty .npz": ("sum empty.npz", "empty.npz: damaged or cut off"),
    "a cut .npz": ("sum cut.npz", "cut.npz: damaged or cut off"),
    "a wrong sum in an .npz": ("sum wrong.npz", "wrong.npz: damaged or cut off: Bad CRC-32"),
    "a damaged .npz of small size": ("sum small.npz", "small.npz: damaged or cut off"),
    "a .npy file by another name": ("sum renamed.npz", "renamed.npz is a .npy file"),
    "no .npz": ("sum words.npz", "words.npz: neither a .npy nor an .npz file"),
    "no such array": ("sum two.npz --key c", "two.npz holds a, b"),
    "a key of no .npz": ("sum a.npy --key c", "a.npy is none"),
    "a suffix of no format": ("sum a.npy --out b.xls", ".npy, .csv, .json, .txt"),
    "npy to the screen": ("sum a.npy --format npy", "--out FILE"),
    "demo of infinity": ("demo infinite", "infinite: the demo takes numbers up to 1e+19"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_goes_wrong_is_one_line(command, capsys, what):
    words, said = WRONG[what]
    for name, text in (
        ("nothing", ""),
        ("words", "a b"),
        ("rows", "1 2\n3"),
        ("infinite", "1 inf"),
        ("mixed.csv", "a,b\n1,2\n3,x\n"),
        ("nothing.csv", ""),
        ("empty.npz", ""),
        ("words.npz", "a b"),
    ):
        Path(name).write_text(text)
    os.mkfifo("pipe")
    for name, header in (
        ("open", b"{'descr': '<f8'"),
        ("true", b"{'descr': '<f8', 'fortran_order': False, 'shape': (True,), }"),
    ):
        with open(f"{name}.npy", "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
            file.write(bytes(8))
    np.savez("two.npz", a=A, b=A)
    np.savez("zero.npz")
    np.savez("objects.npz", a=np.array([None]))
    Path("renamed.npz").write_bytes(Path("a.npy").read_bytes())
    Path("cut.npz").write_bytes(Path("two.npz").read_bytes()[:-10])
    for name, save in (("wrong", np.savez), ("small", np.savez_compressed)):
        save(f"{name}.npz", a=np.random.default_rng(1).random(100))
        data = bytearray(Path(f"{name}.npz").read_bytes())
        data[300:320] = bytes(20)
        Path(f"{name}.npz").write_bytes(data)
    np.save("objects.npy", np.array([None]))
    np.save("text.npy", np.array(["a"]))
    np.save("structure.npy", np.zeros(3, "i4,f4"))
    np.save("bits.npy", np.ones(3, bool))
    np.save("empty.npy", np.ones(0))
    with open("a.npy", "rb") as whole, open("cut.npy", "wb") as cut:
        cut.write(whole.read()[:-1])
    with pytest.raises(SystemExit) as ended:
        command(*words.split())
    out, err = capsys.readouterr()
    assert ended.value.code == 1 and not out
    begin = f"gpureduce: {words.split()[0]}: "
    assert err.startswith(begin) and err.count("\n") == 1 and said in err, err
    assert err.count(words.split()[0] + ": ") == 1


@pytest.mark.parametrize(
    "data, words, said",
    [
        (b"\x93NUMPY\x01\x00\x0a\x00{'shape': (", [], "stdin: a damaged header"),
        (b"\x93NUMPY\x01\x00", [], "stdin: "),
        (b"\x93NUMPY", ["--dtype", "u1"], "stdin is a .npy file, and --dtype is for raw numbers"),
    ],
)
def test_what_goes_wrong_of_stdin(command, capsys, monkeypatch, data, words, said):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    with pytest.raises(SystemExit) as ended:
        command("sum", "-", *words)
    out, err = capsys.readouterr()
    assert ended.value.code == 1 and not out
    assert err.startswith(f"gpureduce: sum: {said}") and err.count("\n") == 1, err


def test_every_number_is_printed(command):
    a = np.arange(6000.0).reshape(2, 3000) / 3
    np.save("wide.npy", a.astype("f4"))
    want = a.astype("f4").max(0)
    words = ["max", "wide.npy", "--axis", "0"]
    for text in (
        command(*words).split(),
        command(*words, "--format", "csv").split(","),
        json.loads(command(*words, "--format", "json")),
    ):
        assert_bits(np.array(text, "f4"), want, "every digit that counts")


def test_formats(command):
    assert command("minmax", "a.npy") == "0.0\n10.0\n"
    assert json.loads(command("minmax", "a.npy", "--format", "json")) == [0.0, 10.0]
    table = command("sum", "a.npy", "--axis", "0", "--format", "csv")
    assert table == "".join(",".join(map(str, row)) + "\n" for row in A.sum(0))
    assert json.loads(command("any", "a.npy", "--format", "json")) is True
    np.save("c.npy", np.array([1 + 2j]))
    assert json.loads(command("sum", "c.npy", "--format", "json")) == [1.0, 2.0]
    np.save("t.npy", np.array([3], "m8[s]"))
    assert json.loads(command("sum", "t.npy", "--format", "json")) == "3 seconds"
    np.save("empty.npy", np.ones((0, 3)))
    for form, want in (("csv", ""), ("lines", ""), ("json", "[]\n")):
        assert command("sum", "empty.npy", "--axis", "1", "--format", form) == want
    for name, want in (("o.txt", "117.0\n"), ("o.csv", "117.0\n"), ("o.json", "117.0\n")):
        assert command("sum", "a.npy", "--out", name) == "" and Path(name).read_text() == want


def test_other_files(command, monkeypatch):
    Path("a.csv").write_text("# note\nx;y\n1;2\n3;\n")
    assert command("nansum", "a.csv", "--axis", "0") == "4.0\n2.0\n"
    Path("a.txt").write_text("1 2\n3 4\n")
    assert command("sum", "a.txt", "--axis", "1") == "3\n7\n"
    np.savez("one.npz", a=A)
    assert command("sum", "one.npz") == f"{A.sum()}\n"
    np.savez("two.npz", a=A, b=A + 1)
    assert command("sum", "two.npz", "--key", "b") == f"{(A + 1).sum()}\n"
    assert command("sum", "a.raw", "--dtype", "f8", "--shape", "-1,4", "--axis", "0") == shown(
        A.reshape(-1, 4).sum(0), "sum"
    )
    for name, words in (("a.npy", []), ("a.raw", ["--dtype", "f8"])):
        with open(name, "rb") as file:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
            assert command("sum", "-", *words) == f"{A.sum()}\n"


@pytest.mark.parametrize(
    "name, text, want",
    [
        ("a.tsv", "1\t2\n\t4\n5\t\n", "6.0 6.0"),
        ("a.tsv", "\ta\tb\n1\t2\t\n\t3\t4\r\n\n", "1.0 5.0 4.0"),
        ("a.tsv", "\t2\n1\t\n", "1.0 2.0"),
        ("a.tsv", "1\t2\n\t\n", "1.0 2.0"),
        ("a.tsv", "\t\n1\t2\n", "1.0 2.0"),
        ("a.tsv", "1 2\n3 4\n", "4 6"),
        ("a.txt", "1\t2\n\t4\n", "1.0 6.0"),
        ("a.txt", "\t1 2\n\t3 4\t\n\t\n", "4 6"),
        ("a.csv", "\t1,2\n\t\n3,4\t\n \t# note\n", "4 6"),
        ("a.csv", "\ufeff1,2\n3,4\n", "4 6"),
        ("a.csv", "\ufeff# note\na;b\n1;2\n", "1 2"),
        ("a.csv", "9007199254740993\n1\n", "9007199254740994"),
        ("a.csv", "9223372036854775808\n0\n", "9.223372036854776e+18"),
        ("a.csv", "-9223372036854775808\n+1\n", "-9223372036854775807"),
        ("a.csv", "1,2.5\n2,0\n", "3.0 2.5"),
    ],
)
def test_cells_of_tables(command, name, text, want):
    """Empty cells at a line's ends are cells where tabs are between them; a byte order mark is
    none."""
    Path(name).write_text(text, encoding="utf-8", newline="")
    assert command("nansum", name, "--axis", "0").split() == want.split()


def test_a_header_is_said(monkeypatch, capsys, command):
    Path("a.csv").write_text("1_000\n5\n")
    monkeypatch.setattr(sys, "argv", ["gpureduce", "sum", "a.csv"])
    __main__.main()
    assert capsys.readouterr() == ("5\n", "a.csv: the first line is taken as a header: 1_000\n")
    Path("a.csv").write_text("5\n1_000\n")
    with pytest.raises(SystemExit):
        command("sum", "a.csv")
    assert "line 2: '1_000' is no number" in capsys.readouterr().err


def test_a_first_row_of_empty_cells_is_no_header(command):
    Path("a.tsv").write_text("\t\n1\t2\n")
    assert command("sum", "a.tsv", "--axis", "1") == "nan\n3.0\n"


def test_raw_numbers_in_a_dat_file(command):
    A.tofile("a.dat")
    assert command("sum", "a.dat", "--dtype", "f8") == f"{A.sum()}\n"


def test_version(command, capsys):
    with pytest.raises(SystemExit) as ended:
        command("--version")
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"gpureduce {gpureduce.__version__}\n"


@pytest.mark.skipif(_core.device_count()[0] > 0, reason="there is a GPU")
def test_what_is_advised_works_here(command, capsys):
    with pytest.raises(SystemExit):
        command("sum", "a.npy", "--device", "cuda")
    (line,) = capsys.readouterr().err.splitlines()
    advice = "--device cpu"
    assert line.endswith(f", or use {advice}") and "device=" not in line
    assert command("sum", "a.npy", *advice.split()) == command("sum", "a.npy")


def test_warnings_are_a_line_too(command, capsys, monkeypatch):
    np.save("empty.npy", np.ones(0))
    monkeypatch.setattr(sys, "argv", ["gpureduce", "mean", "empty.npy"])
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        __main__.main()
    assert capsys.readouterr() == ("nan\n", "gpureduce: mean: Mean of empty slice\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_cannot_be_written_is_told(command, tmp_path, unbuffered):
    """A full disk, and a reader that has gone: not 0."""
    words = [sys.executable, "-m", "gpureduce", "sum", "a.npy", "--axis", "0"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment["PYTHONUNBUFFERED"] = unbuffered
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            words, stdout=full, stderr=subprocess.PIPE, text=True, env=environment
        )
    assert done.returncode == 1 and done.stderr.startswith("gpureduce: sum: ")
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run(words, stdout=writes, stderr=subprocess.PIPE, text=True, env=environment)
    os.close(writes)
    assert (done.returncode, done.stderr) == (1, "")


def test_how_much_is_land(command, monkeypatch):
    """Without the package, of an Earth that is made up: all of ours are the nearest float32."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, package=None: None)
    lines = command("land").splitlines()
    assert "pip install global-land-mask" in lines[0] and "is land" in lines[2]
    totals = {line[:44].strip(): line[44:].split()[0] for line in lines[5:]}
    ours = {total for name, total in totals.items() if name.startswith("gpureduce")}
    assert len(totals) >= 9 and ours == {totals["the nearest float32"]}
    assert totals["NumPy, whole"] not in ours


def test_demo_of_a_table_with_commas(command):
    Path("table.csv").write_text("1,2\n3,4\n")
    assert "(2, 2) float64: 4 values, no NaN" in command("demo", "table.csv")


def test_demo_of_an_archive(command, capsys):
    np.savez("one.npz", a=A)
    np.savez("two.npz", a=A, b=A[0])
    assert "(2, 3, 4) float64: 24 values, no NaN" in command("demo", "one.npz")
    assert "(3, 4) float64: 12 values, no NaN" in command("demo", "two.npz", "--key", "b")
    for words, text in (("two.npz", "say which with --key"), ("a.npy --key a", "a.npy is none")):
        with pytest.raises(SystemExit):
            command("demo", *words.split())
        assert text in capsys.readouterr().err


def test_without_tqdm(command, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(SystemExit):
        command("sum", "a.npy", "--progress")
    assert "pip install tqdm" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["sum", "sum a.npy --offset x", "sum a.npy --nonsense", "summe"])
def test_usage(command, capsys, words):
    with pytest.raises(SystemExit) as ended:
        command(*words.split())
    assert ended.value.code == 2 and "usage" in capsys.readouterr().err


def test_as_a_module(tmp_path):
    np.save(tmp_path / "a.npy", A)
    words = [sys.executable, "-m", "gpureduce", "mean", tmp_path / "a.npy"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=SECONDS)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{A.mean()}\n", "")


def test_ctrl_c():
    script = """
import sys
from gpureduce import __main__, stubs
def interrupted():
    raise KeyboardInterrupt
stubs.FILES["__init__.pyi"] = interrupted
sys.argv = ["gpureduce", "stubs"]
__main__.main()
"""
    process = python(script, PYTHONPATH=os.pathsep.join(sys.path))
    assert process.communicate(timeout=SECONDS) == ("", "") and process.returncode == 130
