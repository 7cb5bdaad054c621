# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The input file of hpcc, the program of the HPC Challenge."""

from collections.abc import Sequence


def hpcc_input(ranks: int, sizes: Sequence[int], block: int, transposed: Sequence[int] = ()) -> str:
    """HPL's problems of these sizes, one after the other, on a grid of ranks as square as possible,
    in blocks of `block`; `transposed` are the sizes of further transpositions of a matrix.

    The layout is fixed: a value and a remark on each line.
    """
    rows = max(each for each in range(1, int(ranks**0.5) + 1) if ranks % each == 0)
    lines = [
        "HPLinpack benchmark input file",
        "Beowire",
        "HPL.out      output file name (if any)",
        "8            device out",
        f"{len(sizes)}            # of problems sizes (N)",
        f"{' '.join(map(str, sizes))} Ns",
        "1            # of NBs",
        f"{block}           NBs",
        "0            PMAP process mapping",
        "1            # of process grids (P x Q)",
        f"{rows}            Ps",
        f"{ranks // rows}            Qs",
        "16.0         threshold",
        "1            # of panel fact",
        "2            PFACTs",
        "1            # of recursive stopping criterium",
        "4            NBMINs",
        "1            # of panels in recursion",
        "2            NDIVs",
        "1            # of recursive panel fact.",
        "1            RFACTs",
        "1            # of broadcast",
        "1            BCASTs",
        "1            # of lookahead depth",
        "1            DEPTHs",
        "2            SWAP",
        "64           swapping threshold",
        "0            L1 in form",
        "0            U  in form",
        "1            Equilibration",
        "8            memory alignment in double",
        "##### ignored #####",
        f"{len(transposed)}            Number of additional problem sizes for PTRANS",
        f"{' '.join(map(str, transposed or (1200,)))} values of N",
        "0            number of additional blocking sizes for PTRANS",
        "40           values of NB",
    ]
    return "\n".join(lines) + "\n"
