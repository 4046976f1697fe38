"""The machine's C compiler, and the objects that it made: kept for the next process where kernels
for devices are kept too."""

import ctypes
import os
import stat
from pathlib import Path

from gpureduce import _core

# Exactness: no contraction, no reassociation, wrap-around, as setup.py's EXACT. The last two let
# roots and comparisons be vectorised; nothing here reads errno or trap flags.
FLAGS = ["-std=gnu11", "-ffp-contract=off", "-fno-fast-math", "-fwrapv", "-fno-math-errno",
         "-fno-trapping-math", "-fPIC", "-shared", "-fvisibility=hidden", "-w"]  # fmt: skip
LEVELS = {"v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"], "v3": ["-march=x86-64-v3"]}
SECONDS_MOST = 300


def _which(name: str) -> str | None:
    """_which(), without the 2 ms of its import."""
    if "/" in name:
        return name if os.access(name, os.X_OK) else None
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder or ".", name)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return None


def compiler() -> tuple[str, ...] | None:
    """CC's words, or the first of cc, gcc and clang; None where there is none."""
    if named := os.environ.get("CC"):
        import shlex

        try:
            words = shlex.split(named)
        except ValueError as error:
            _say(f"CC={named} is no command: {error}")
            return None
        return tuple(words) if words and _which(words[0]) else None
    for name in ("cc", "gcc", "clang"):
        if there := _which(name):
            return (there,)
    return None


def looked_for() -> str:
    """The compilers of which compiler() takes one, for a message."""
    named = os.environ.get("CC")
    return f"CC={named}" if named else "cc, gcc or clang; CC names another"


def _digest(command: tuple[str, ...], text: str) -> str:
    import hashlib

    program = os.path.realpath(_which(command[0]) or command[0])
    is_ = os.stat(program)
    made_by = [*command, program, str(is_.st_size), str(is_.st_mtime_ns), os.uname().machine]
    whole = "\0".join(["gpureduce 1", *made_by, *FLAGS, _core.isa(), text])
    return hashlib.sha256(whole.encode()).hexdigest()[:40]


def library(text: str, level: str = "-O3") -> ctypes.CDLL | None:
    """The text compiled and loaded; None where there is no compiler, or none that can."""
    command = compiler()
    if command is None:
        return None
    command = (*command, level)
    return _loaded(_digest(command, text), command, text)


_libraries: dict[str, ctypes.CDLL] = {}


def _loaded(digest: str, command: tuple[str, ...], text: str) -> ctypes.CDLL | None:
    if digest in _libraries:
        return _libraries[digest]
    folder = _cache(make=True)
    name = f"{digest}.so"
    image = _read(folder / name) if folder else None
    is_kept = image is not None
    if image is None:
        image = _compiled(command, text)
        if image is None:
            return None
        is_kept = folder is not None and _written(folder, name, image)
    found = _open(folder / name) if is_kept and folder else None
    if found is None:  # no folder, or one whose files may not be run
        found = _opened_aside(name, image)
    if found is not None:
        _libraries[digest] = found
    return found


def _opened_aside(name: str, image: bytes) -> ctypes.CDLL | None:
    import tempfile

    try:
        with tempfile.TemporaryDirectory(prefix="gpureduce-") as aside:
            path = Path(aside) / name
            path.write_bytes(image)
            return _open(path)
    except OSError as error:
        _say(f"a compiled operator has no room for its file: {error}")
        return None


def _open(path: Path) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        return None


# --- the folder -----------------------------------------------------------------------------------


def _is_ours(is_: os.stat_result) -> bool:
    """What others may write would let them run code here."""
    return is_.st_uid == os.geteuid() and not is_.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _cache(make: bool) -> Path | None:
    there = _core.cache_folder()
    if there is None:
        return None
    folder = Path(there)
    try:
        if make:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_ = os.lstat(folder)
    except OSError:
        return None
    return folder if stat.S_ISDIR(is_.st_mode) and _is_ours(is_) else None


def _read(path: Path) -> bytes | None:
    """A whole file of ours: its end says what is before it."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    is_ = os.fstat(file)
    if not stat.S_ISREG(is_.st_mode) or not _is_ours(is_):
        os.close(file)
        return None
    with open(file, "rb") as opened:
        image = opened.read()
    return image if len(image) > 64 and _seal(image[:-32]) == image[-32:] else None


def _seal(image: bytes) -> bytes:
    import hashlib

    return hashlib.sha256(image).digest()


def _written(folder: Path, name: str, image: bytes) -> bool:
    """Aside, and renamed when it is whole."""
    import tempfile

    try:
        file, aside = tempfile.mkstemp(dir=folder, prefix=f"{name}.", suffix=".part")
    except OSError as error:
        _say(f"compiled operators cannot be kept in {folder}: {error.strerror}")
        return False
    try:
        with open(file, "wb") as opened:
            opened.write(image)
        os.replace(aside, folder / name)
        return True
    except OSError as error:
        Path(aside).unlink(missing_ok=True)
        _say(f"compiled operators cannot be kept in {folder}: {error.strerror}")
        return False


def _say(text: str) -> None:
    from gpureduce.compiler import say

    say(True, text)


# --- compiling ------------------------------------------------------------------------------------


def _compiled(command: tuple[str, ...], text: str) -> bytes | None:
    import subprocess
    import tempfile

    try:
        with tempfile.TemporaryDirectory(prefix="gpureduce-") as aside:
            return _compiled_in(Path(aside), command, text)
    except (OSError, subprocess.TimeoutExpired) as error:
        _say(f"{command[0]} cannot compile operators: {error}")
        return None


def _compiled_in(aside: Path, command: tuple[str, ...], text: str) -> bytes | None:
    import subprocess

    source, target = aside / "operator.c", aside / "operator.so"
    source.write_text(text, encoding="utf-8")
    words = [*command, *FLAGS, *LEVELS.get(_core.isa(), [])]
    done = subprocess.run(
        [*words, str(source), "-o", str(target), "-lm"],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=SECONDS_MOST,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode == 0:
        image = target.read_bytes()
        return image + _seal(image)
    words_of_it = (done.stderr or done.stdout).strip().replace(str(source), "operator.c")
    _say(f"{command[0]} did not compile an operator:\n{words_of_it[:2000]}")
    return None


def described() -> str:
    """What compiles operators here, for a message."""
    import shlex

    command = compiler()
    return shlex.join(command) if command else f"no C compiler ({looked_for()})"
