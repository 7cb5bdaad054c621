#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""PyTorch's allreduce over gloo, from 8 bytes to 40 MB, each sum checked.

allreduce.py RANK ADDRESS [RANKS], by `beowire sockets` on each node; ADDRESS is that of rank 0's.
"""

import sys

import torch
import torch.distributed as group

PORT = 29500
SIZES = {1: 20, 10: 20, 1000: 20, 100_000: 20, 1_000_000: 3, 5_000_000: 3}
"""Numbers of 8 bytes, and how often they are added up."""


def main(rank: int, address: str, ranks: int = 2) -> int:
    """How many sums were wrong."""
    group.init_process_group(
        "gloo", init_method=f"tcp://{address}:{PORT}", rank=rank, world_size=ranks
    )
    factor, wrong = ranks * (ranks + 1) // 2, 0
    for count, times in SIZES.items():
        numbers = torch.arange(count, dtype=torch.int64)
        for turn in range(times):
            mine = numbers * (rank + 1) + turn
            group.all_reduce(mine)
            wrong += not torch.equal(mine, numbers * factor + turn * ranks)
    group.barrier()
    group.destroy_process_group()
    print(f"rank {rank}: {sum(SIZES.values())} sums, {wrong} wrong")
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main(int(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:])) else 0)
