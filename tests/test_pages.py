"""README, CONTRIBUTING and docs/: what they show is so, and what they name is there."""

import doctest
import importlib
import re
from pathlib import Path

import pytest
from test_docstrings import GLOBS, GPU, run

import gpureduce
from gpureduce.__main__ import main

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = ("kernels", "csrc", "gpureduce", "tests", "benchmarks", "docs", "examples", "recipe")

pytestmark = pytest.mark.skipif(
    not PAGES[0].exists(), reason="the sources are not beside the tests"
)
each_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)


def named(path, pattern):
    return set(re.findall(pattern, path.read_text(), re.M))


@each_page
def test_what_it_shows(path):
    """What stands after >>> in blocks of Python."""
    parser, globs = doctest.DocTestParser(), dict(GLOBS)
    blocks = re.findall(r"^```python\n(.*?)^```", path.read_text(), re.M | re.S)
    for number, block in enumerate(blocks):
        if ">>>" in block:
            test = parser.get_doctest(block, globs, f"{path.name}[{number}]", str(path), 0)
            run([test], GPU.search(block))
            globs.update(test.globs)


@each_page
def test_links_lead_somewhere(path):
    for link in named(path, r"\]\(([^)#\s]+)"):
        assert link.startswith("https://") or (path.parent / link).exists(), link


@each_page
def test_files_are_there(path):
    for name in named(path, rf"(?<![\w/.])((?:{'|'.join(FOLDERS)})/[\w/.*-]*\w)"):
        assert [*ROOT.glob(name.replace("NAME", "*"))], name


@each_page
def test_names_are_there(path):
    for name in named(path, r"\bgpureduce((?:\.[a-z_A-Z]\w*)+)"):
        if name in (".h", ".pc"):
            continue
        thing = gpureduce
        for part in name[1:].split("."):
            if not hasattr(thing, part):
                importlib.import_module(f"{thing.__name__}.{part}")
            thing = getattr(thing, part)


@each_page
def test_targets_and_extras_are_there(path):
    makefile, project = ((ROOT / name).read_text() for name in ("Makefile", "pyproject.toml"))
    for target in named(path, r"(?:^    |`)make ([a-z-]+)"):
        assert re.search(rf"^{target}:", makefile, re.M), target
    for extra in named(path, r"pip install '\S*\[(\w+)\]'"):
        assert re.search(rf"^{extra} = \[", project, re.M), extra


@each_page
def test_commands_are_there(path, monkeypatch, capsys):
    """Each answers to --help."""
    for command in named(path, r"(?:^    |`)(?:python -m )?gpureduce ([a-z]+)\b(?! \d)"):
        monkeypatch.setattr("sys.argv", ["gpureduce", command, "--help"])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code and "usage: " in capsys.readouterr().out, command


@each_page
def test_variables_are_read(path):
    sources = [*(ROOT / "gpureduce").rglob("*.py"), *(ROOT / "csrc").rglob("*.[ch]")]
    for name in named(path, r"\bGPUREDUCE_[A-Z_]+\b"):
        assert any(name in file.read_text() for file in sources), name


def test_the_readme_is_short():
    assert len(PAGES[0].read_text().splitlines()) <= 120
