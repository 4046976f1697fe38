"""What the environment asks for: looked at once, before anything runs by it."""

import os

ISAS = ("v4", "v3", "plain")


def check() -> None:
    """ValueError of what would be passed over: a number that is none, an unknown name."""
    threads, isa = os.environ.get("GPUREDUCE_NUM_THREADS"), os.environ.get("GPUREDUCE_ISA")
    if threads and not (threads.strip().isdecimal() and int(threads)):
        raise ValueError(
            f"GPUREDUCE_NUM_THREADS={threads}: give the number of threads of a call, 1 or more, "
            "or leave it out"
        )
    if isa and isa not in ISAS:
        raise ValueError(f"GPUREDUCE_ISA={isa}: give one of {', '.join(ISAS)}, or leave it out")
