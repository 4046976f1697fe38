"""The digest of tests/gpu_record.py is of code: comments and blanks do not count, literals do."""

import shutil
import subprocess

import gpu_record
import pytest
from table import TOOLS

SAME = """
#define TWICE(x) ((x) + (x)) /* an argument // twice
                                evaluated */
#define  LONG a \\
              b
int f(int a /* first */, int b) { // "no string"
  const char *text = "/* no  comment */ // \\" none '";
  return a + -b * '"' / TWICE (a);
}
"""
AS_WELL = """

#define TWICE(x) ((x) + (x))
#define LONG a b
int f( int a,int b )
{
  const char *text = "/* no  comment */ // \\" none '"; /* a
  comment */
  return a + -b*'"'/TWICE(a);  }
"""
OTHERS = {
    "a literal's blanks": AS_WELL.replace("no  comment", "no comment"),
    "a literal's comment": AS_WELL.replace("// \\", "\\"),
    "another operator": AS_WELL.replace("+ -b", "--b"),
    "another word": AS_WELL.replace("const char", "constchar"),
    "a macro without arguments": AS_WELL.replace("TWICE(x)", "TWICE (x)"),
    "a comment around code": AS_WELL.replace("return", "/* return").replace("(a);", "(a); */"),
    "no line of its own": AS_WELL.replace("a b\nint", "a b int"),
}


def test_comments_and_blanks_do_not_count():
    assert gpu_record.code(SAME) == gpu_record.code(AS_WELL)
    assert "first" not in gpu_record.code(SAME) and "none '" in gpu_record.code(SAME)


@pytest.mark.parametrize("what", OTHERS)
def test_code_counts(what):
    assert OTHERS[what] != AS_WELL
    assert gpu_record.code(OTHERS[what]) != gpu_record.code(AS_WELL)


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc")
def test_what_is_left_of_the_sources_is_the_same_code():
    """Token for token, as the compiler's preprocessor sees it."""
    sources = sorted((gpu_record.ROOT / "csrc").rglob("*.c"))
    if not sources:
        pytest.skip("the sources are not beside the tests")
    command = ["gcc", "-fpreprocessed", "-dD", "-E", "-P", "-x", "c", "-"]
    for path in sources:
        texts = path.read_text(), gpu_record.code(path.read_text())
        tokens = [
            subprocess.run(command, input=text, capture_output=True, text=True, env=TOOLS)
            for text in texts
        ]
        assert all(done.returncode == 0 for done in tokens), tokens
        assert gpu_record.code(tokens[0].stdout) == gpu_record.code(tokens[1].stdout), path


def test_the_digest_is_of_every_source():
    if not (gpu_record.ROOT / "csrc").is_dir():
        pytest.skip("the sources are not beside the tests")
    rooms = (gpu_record.ROOT / room for room in ("csrc", "kernels"))
    suffixes = {path.suffix for room in rooms for path in room.rglob("*") if path.is_file()}
    assert suffixes == gpu_record.SUFFIXES
    assert len(gpu_record.digest()) == 64


@pytest.mark.parametrize("line", ["not there\n", "int", "  int twice;\n"])
def test_what_came_since_is_one_line(line):
    with pytest.raises(ValueError, match="not one line"):
        gpu_record.without("  int twice;\n  int twice;\n  int once;\n", line)
    assert gpu_record.without("  int once;\n", "  int once;\n") == ""


def test_what_came_since_is_said_and_changes_the_digest(capsys, monkeypatch):
    if not (gpu_record.ROOT / "csrc").is_dir():
        pytest.skip("the sources are not beside the tests")
    assert set(gpu_record.SINCE) <= {
        path.relative_to(gpu_record.ROOT).as_posix()
        for room in ("csrc", "kernels")
        for path in (gpu_record.ROOT / room).rglob("*")
    }
    assert (gpu_record.digest() == gpu_record.digest(gpu_record.SINCE)) == (not gpu_record.SINCE)
    assert gpu_record.check() is None
    said = capsys.readouterr().out
    for name, (line, _) in gpu_record.SINCE.items():
        assert f"{name} has `{line.strip()}` since" in said
    if gpu_record.SINCE:
        of_the_run = gpu_record.digest(gpu_record.SINCE)
        monkeypatch.setattr(gpu_record, "digest", lambda since=None: of_the_run)
        assert "to be emptied" in gpu_record.check()
