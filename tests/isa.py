"""A script in a process of its own, where another instruction set is chosen: that happens once."""

import os
import subprocess
import sys
from pathlib import Path

ISAS = ("v4", "v3", "plain")
START = """
import sys
sys.path.insert(0, sys.argv[1])
import gpureduce
print(gpureduce.isa())
"""


def run_on(isa, script):
    """The set that was used, a lesser one where the processor has not this one, and the output."""
    run = subprocess.run(
        [sys.executable, "-c", START + script, str(Path(__file__).parent)],
        env={**os.environ, "GPUREDUCE_ISA": isa},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    used, _, text = run.stdout.partition("\n")
    return used, text
