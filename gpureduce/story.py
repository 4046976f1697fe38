"""Why each step of the ladder is as fast as it is: the step it is held against, and the reason.

The reasons are those of the committed run (benchmarks/results/ladder.md); the numbers beside them
are always those of the run that is shown.
"""

WHY = {
    "neighbored": (
        "",
        "nine steps for 512 values, and in five of them all warps work, for ever fewer lanes",
    ),
    "neighbored_less": (
        "neighbored",
        "the same pairs by whole warps, half as many of them in each step",
    ),
    "interleaved": (
        "neighbored_less",
        "neighbouring lanes read neighbouring words: fewer lines of memory for a warp",
    ),
    "unroll2": (
        "interleaved",
        "half as many blocks, and two loads a thread that do not wait for one another",
    ),
    "unroll4": ("unroll2", "the same again"),
    "unroll8": (
        "unroll4",
        "less than before: the copy is already read at {copy:.0%} of the read limit",
    ),
    "unroll_warp8": (
        "unroll8",
        "six barriers fewer, but while a block waits at its barriers others load",
    ),
    "complete_unroll_warp8": (
        "unroll_warp8",
        "fewer instructions, which were not what was waited for",
    ),
    "complete_unroll_template": ("complete_unroll_warp8", "nor were the tests"),
    "gmem": ("interleaved", "the same work by blocks of twice as many threads"),
    "smem": (
        "gmem",
        "no copy to read and write, but a block's life is still one load, waited for, and a tree",
    ),
    "unroll4_smem": (
        "smem",
        "four loads are waited for together, and a quarter of the blocks and trees is left",
    ),
    "shfl": ("smem", "one barrier and no shared tree; yet one load a thread, unlike unroll4_smem"),
    "single_block": ("neighbored", "one multiprocessor works, and all others are idle"),
    "single_block_noncomm": (
        "single_block",
        "every 512 elements are waited for between two barriers, and nothing else is in flight",
    ),
    "single_warp": ("", "this is what a launch takes, and all that is seen of the five"),
    "single_warp_unguarded": ("single_warp", "the launch is all that is seen"),
    "single_warp_noncomm": ("single_warp", "the launch is all that is seen"),
    "single_warp_noncomm_padded": ("single_warp", "the launch is all that is seen"),
    "single_warp_registers": ("single_warp", "the launch is all that is seen"),
    "block_of_warps": (
        "single_block",
        "nine barriers fewer, once; the loop before them takes the time",
    ),
    "two_pass": (
        "unroll4_smem",
        "no block for every tile but a loop, whose loads go on, and one tree a block",
    ),
    "last_block": ("two_pass", "one launch fewer"),
    "last_block_noncomm": (
        "last_block",
        "the order is kept by two barriers for every 512 elements, at which loading stops",
    ),
    "default": (
        "last_block",
        "loads of 16 bytes, eight in flight; {launch:.1f} µs of what is left are the launch",
    ),
}
