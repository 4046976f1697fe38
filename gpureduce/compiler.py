"""What the library asks of Python when it needs a kernel: where NVRTC and the packs may be, and
whom to tell what takes time. Called from C, when a kernel is first needed; nothing here is imported
before that."""

import os
import sys

from gpureduce import pack

# Of the wheels nvidia-cuda-nvrtc and nvidia-cuda-nvrtc-cu12, below nvidia/ of some path.
_WHEELS = ("cu13/lib", "cuda_nvrtc/lib")


def say(is_warning: bool, text: str) -> None:
    """To the logger "gpureduce"."""
    import logging  # 5 ms, where there is something to be said

    logging.getLogger("gpureduce").log(logging.WARNING if is_warning else logging.INFO, text)


def packed(arch: str, key: str) -> bytes | None:
    """The image of that key from the pack for "sm_90", if there is one."""
    return pack.find(arch, key)


def nvrtc_folders() -> bytes:
    """Where Python packages bring NVRTC, a folder a line."""
    found = [
        folder
        for path in sys.path
        for wheel in _WHEELS
        if os.path.isdir(folder := os.path.join(path or ".", "nvidia", wheel))
    ]
    return os.fsencode("\n".join(found))
