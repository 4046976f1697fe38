"""Wheels name the functions of glibc 2.28: what newer ones moved is in recipe/old_glibc.h."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gpureduce import _core

HEADER = Path(__file__).resolve().parent.parent / "recipe/old_glibc.h"
NEWEST = (2, 28)
# By its older name.
RENAMED = {"fstat": "__fxstat"}

pytestmark = pytest.mark.skipif(
    not HEADER.exists() or not shutil.which("objdump"), reason="no sources here, or no objdump"
)


def test_all_that_is_newer_has_an_older_version():
    done = subprocess.run(
        ["objdump", "-T", _core.__file__], capture_output=True, text=True, check=True
    )
    needed = re.findall(r"\*UND\*.*GLIBC_([\d.]+)\) +(\w+)", done.stdout)
    assert len(needed) > 20
    newer = {name for version, name in needed if tuple(map(int, version.split("."))) > NEWEST}
    older = set(re.findall(r"GPR_OLD(?:_AS)?\((\w+), ", HEADER.read_text()))
    assert {RENAMED.get(name, name) for name in newer} <= older
