"""python -m gpureduce cache: the compiled kernels that are kept for the next process."""

import argparse
import os
import re
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from gpureduce import _core, pack

MIB = 1 << 20


def folder() -> Path | None:
    """Where kernels are kept, or None without a home."""
    path = _core.cache_folder()
    return None if path is None else Path(path)


def kept() -> list[Path]:
    """The files of the cache, and what killed processes left there."""
    there = folder()
    if there is None or not there.is_dir():
        return []
    return [path for path in there.iterdir() if path.suffix in (".kernel", ".so", ".part")]


def here() -> list[str]:
    """The architectures of the devices that are there."""
    found = ("sm_{}{}".format(*device["compute_capability"]) for device in _core.devices())
    return sorted(set(found))


def named(arch: str) -> str:
    """ "sm_90" of 90, 9.0 or sm_90."""
    digits = arch.removeprefix("sm_").replace(".", "")
    if not digits.isdecimal():
        raise ValueError(f"{arch} is no architecture: give 90, for one")
    return f"sm_{digits}"


def described() -> Iterator[tuple[str, str]]:
    """Where kernels come from: name and text of each line."""
    there, files = folder(), kept()
    size = sum(file.stat().st_size for file in files) / MIB
    yield "cache", f"{there or 'none: neither HOME nor XDG_CACHE_HOME is set'}"
    yield "", f"{counted(len(files))}, {size:.1f} MiB"
    packs = sorted(Path(pack.FOLDER).glob("*.pack"))
    for path in packs:
        yield "pack", f"{path.name}, {path.stat().st_size / MIB:.1f} MiB"
    if not packs:
        yield "pack", "none"
    for arch in here() or ["sm_90"]:
        is_there, text = _core.compiler(arch)
        yield "compiler", text if is_there else f"none: {text}"


def counted(number: int) -> str:
    return "1 kernel" if number == 1 else f"{number} kernels"


def show() -> None:
    for name, text in described():
        print(f"{name:10} {text}")


def clear() -> None:
    files = kept()
    for path in files:
        path.unlink(missing_ok=True)
    print(f"{counted(len(files))} removed")


def _wanted(words: Sequence[str]) -> list[int]:
    """The numbers of the programs that have one of the words in their names; without words all."""
    return [
        number
        for number, names in enumerate(_core.programs())
        if not words or any(word in " ".join(names) for word in words)
    ]


def _compile(number: int, arch: str) -> tuple[int, str, bytes, bool]:
    key, image, was_there = _core.program_image(number, arch)
    return number, key, image, was_there


def _compiled(
    numbers: Sequence[int], arch: str, jobs: int
) -> Iterator[tuple[int, str, bytes, bool]]:
    """As they are done, with a line now and then that says how far that is."""
    start = last = time.monotonic()
    found = 0
    # Ctrl-C ends the workers at once, and the parent tells of it.
    with ProcessPoolExecutor(
        jobs, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_DFL)
    ) as pool:
        tasks = [pool.submit(_compile, number, arch) for number in numbers]
        try:
            for done, task in enumerate(tasks, 1):
                answer = task.result()
                found += answer[3]
                now = time.monotonic()
                if now - last > 5 or done == len(tasks):
                    last = now
                    print(
                        f"{arch}: {done} of {len(tasks)} kernels, {found} of them there already, "
                        f"{now - start:.0f} s",
                        flush=True,
                    )
                yield answer
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def warm(archs: Sequence[str], words: Sequence[str], jobs: int) -> None:
    """Compiles into the cache."""
    there, numbers = folder(), _wanted(words)
    if there is None:
        raise OSError("there is no cache to warm: neither HOME nor XDG_CACHE_HOME is set")
    if not numbers:
        raise ValueError(f"no kernel has {' or '.join(words)} in its name")
    try:
        there.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        raise OSError(f"kernels cannot be kept in {there}: {error.strerror}") from error
    for arch in archs:
        for _ in _compiled(numbers, arch, jobs):
            pass


def _rank(fold: str) -> int:
    """How seldom it is asked for: sums and extremes of the commonest types first."""
    if not re.search(r"<(float|double|int|long int)[,> ]", fold):
        return 2
    return 0 if re.search(r"Sum<|Extremes<|ExactFold<", fold) else 1


def make_packs(archs: Sequence[str], jobs: int) -> None:
    """Packs of all kernels, by kinds; those of a textbook's are one."""
    programs = _core.programs()
    for arch in archs:
        made = {n: (key, image) for n, key, image, _ in _compiled(range(len(programs)), arch, jobs)}
        kinds: dict[str, list[int]] = {}
        for n in sorted(made, key=lambda n: (_rank(programs[n][1]), programs[n])):
            kernel, _, header = programs[n]
            is_textbook = header.startswith("textbook/")
            kinds.setdefault(header if is_textbook else kernel.partition("<")[0], []).append(n)
        path = Path(pack.FOLDER) / f"{arch}.pack"
        pack.write(path, [[made[n] for n in kinds[kind]] for kind in sorted(kinds)])
        raw = sum(len(image) for _, image in made.values())
        print(f"{path}: {raw / MIB:.1f} MiB in {path.stat().st_size / MIB:.2f}")


def add_command(commands: Any) -> None:
    command = commands.add_parser("cache", help="the compiled kernels: show, warm, clear, pack")
    actions = command.add_subparsers(metavar="ACTION")
    command.set_defaults(run=lambda _: show())

    action = actions.add_parser("show", help="what is kept, and what would compile")
    action.set_defaults(run=lambda _: show())
    action = actions.add_parser("clear", help="remove what is kept")
    action.set_defaults(run=lambda _: clear())

    def archs(given: argparse.Namespace) -> list[str]:
        found = [named(arch) for arch in re.split("[ ,]+", given.arch.strip()) if arch] or here()
        if not found:
            raise ValueError("there is no device here: name architectures, --arch 90 for one")
        return found

    for name, what in (
        ("warm", "compile all kernels now"),
        ("pack", "make the packs of a release"),
    ):
        action = actions.add_parser(name, help=f"{what}, for the devices here or --arch")
        action.add_argument("--arch", default="", metavar="80,90", help="architectures")
        action.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    actions.choices["warm"].add_argument(
        "words", nargs="*", help="only kernels with one in a name, as columns or PairSum"
    )
    actions.choices["warm"].set_defaults(run=lambda a: warm(archs(a), a.words, a.jobs))
    actions.choices["pack"].set_defaults(run=lambda a: make_packs(archs(a), a.jobs))
