"""MPI's ranks as threads of one process, and how ranks that are processes are launched."""

import shutil
import sys
import threading
from pathlib import Path

import numpy as np

SECONDS = 60


class World:
    """Ranks that are threads of this process."""

    def __init__(self, size):
        self.size, self.barrier = size, threading.Barrier(size, timeout=SECONDS)
        self.given = [None] * size

    def ranks(self):
        return [Rank(self, number) for number in range(self.size)]

    def exchange(self, rank, value):
        self.given[rank] = value
        self.barrier.wait()
        all_of_them = list(self.given)
        self.barrier.wait()
        return all_of_them


class Rank:
    def __init__(self, world, number):
        self.world, self.number = world, number

    def Get_size(self):
        return self.world.size

    def Get_rank(self):
        return self.number

    def allgather(self, value):
        return self.world.exchange(self.number, value)

    def Allreduce(self, mine, everybody):
        assert mine.dtype == everybody.dtype == np.int64
        everybody[:] = np.add.reduce(self.world.exchange(self.number, mine.copy()))


def on_all(size, work):
    """What each rank gave back or raised."""
    found = [None] * size

    def run(rank):
        try:
            with np.errstate(all="ignore"):  # a thread starts with the default
                found[rank.number] = work(rank)
        except Exception as error:
            found[rank.number] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in World(size).ranks()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


# Open MPI refuses root and more ranks than there are cores, unless it is told that this is meant.
LAUNCHING = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
LAUNCHER = shutil.which("mpiexec") or shutil.which("mpiexec", path=Path(sys.executable).parent)
