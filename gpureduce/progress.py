"""progress=: how far a long reduction is, by tqdm's bar or by the caller's own function."""

import importlib
from collections.abc import Callable
from typing import Any

Progress = bool | Callable[[int, int], object]

# What ends sooner shows nothing.
_SECONDS = 0.5


def shown(progress: Progress, name: str, work: Callable[..., Any], *arguments: Any) -> Any:
    """work(*arguments, what it tells (elements done, of how many) some ten times a second)."""
    if progress is None or progress is False:
        return work(*arguments, None)
    if callable(progress):
        return work(*arguments, progress)
    if progress is not True:
        raise TypeError(
            f"gpureduce.{name}: progress {progress!r} is not True, False or a function of "
            "(done, total)"
        )
    with _bar(name) as bar:

        def move(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        return work(*arguments, move)


def _bar(name: str) -> Any:
    try:
        tqdm = importlib.import_module("tqdm").tqdm
    except ImportError:
        raise ImportError(
            "progress=True shows a bar by tqdm, which is not installed: pip install tqdm"
        ) from None
    return tqdm(desc=name, unit=" elements", unit_scale=True, delay=_SECONDS, miniters=1)
