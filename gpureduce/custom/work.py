"""Work in slices: by several threads, with Ctrl-C answered and progress told between them."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from gpureduce import _core

TOLD_SECONDS = 0.1


class Slice(NamedTuple):
    """size is in elements."""

    arguments: tuple[int, ...]
    size: int


class _Queue:
    """Slices for whoever asks, and how much of them is done."""

    def __init__(self, slices: Iterable[Slice]):
        self.slices: Iterator[Slice] = iter(slices)
        self.lock = threading.Lock()
        self.done = 0
        self.failed: BaseException | None = None

    def take(self) -> Slice | None:
        with self.lock:
            return None if self.failed else next(self.slices, None)

    def work(self, fold: Callable[..., Any], told: Callable[[int], None] | None) -> None:
        while (piece := self.take()) is not None:
            fold(*piece.arguments)
            with self.lock:
                self.done += piece.size
            if told:
                told(self.done)

    def help(self, fold: Callable[..., Any]) -> None:
        try:
            self.work(fold, None)
        except BaseException as error:
            self.failed = error


def run(
    slices: Iterable[Slice],
    number: int,
    total: int,
    fold: Callable[..., Any],
    progress: Callable[[int, int], object] | None,
) -> None:
    """fold(*arguments) of every slice."""
    queue = _Queue(slices)
    told = _teller(progress, total) if progress else None
    helpers = min(_core.get_num_threads(), number) - 1
    threads = [
        threading.Thread(target=queue.help, args=(fold,), daemon=True) for _ in range(helpers)
    ]
    try:
        for thread in threads:
            thread.start()
        queue.work(fold, told)
    except BaseException as error:
        queue.failed = error
        raise
    finally:
        for thread in threads:
            _wait_for(thread)
    if queue.failed:
        raise queue.failed
    if progress:
        progress(total, total)


def _wait_for(thread: threading.Thread) -> None:
    """What it writes to must not go before it has ended."""
    interrupted = None
    while thread.ident is not None and thread.is_alive():
        try:
            thread.join()
        except KeyboardInterrupt as error:
            interrupted = error
    if interrupted:
        raise interrupted


def _teller(progress: Callable[[int, int], object], total: int) -> Callable[[int], None]:
    last = time.monotonic()

    def tell(done: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= TOLD_SECONDS and done < total:
            last = now
            progress(done, total)

    return tell
