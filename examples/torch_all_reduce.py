"""torch.distributed: exact means over all processes by an all-reduce of int64 words.

    torchrun --nproc-per-node 2 examples/torch_all_reduce.py

With the backend nccl the words are moved to the process's GPU first: NCCL adds int64 there.
"""

import numpy as np
import torch
import torch.distributed as dist

import gpureduce


def all_reduce(part: np.ndarray, op: str, axis: int) -> np.ndarray:
    """The same bits in every process, for any number of them."""
    p = gpureduce.partials(part, op, axis=axis)
    words = torch.from_numpy(gpureduce.words(p))
    if dist.get_backend() == "nccl":
        words = words.cuda()
    dist.all_reduce(words, op=dist.ReduceOp.SUM)
    return gpureduce.finish(gpureduce.from_words(words.cpu().numpy(), op, part.dtype), op)


def main() -> None:
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rng = np.random.default_rng(dist.get_rank())
    part = (rng.normal(size=(1000, 3)) * [1, 1e10, 1e-10]).astype(np.float32)
    mean = all_reduce(part, "mean", axis=0)
    print(f"{dist.get_rank()} {mean}\n", end="", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
