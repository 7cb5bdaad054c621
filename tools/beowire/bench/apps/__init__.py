# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire bench apps`: programs of the distribution over TCP and over Beowire, in turn.

`application` says what a program is to the benchmark, `catalogue` which there are; `lammps`,
`gromacs`, `hpcc` and `own` have their inputs and read what they print. `answers` compares results,
`installed` knows what is missing, `compiled` compiles what no package has, `place` puts files on
the nodes, `measure` has the order of runs, `cells` what comes of them, `store` the file of
results, `ledger` and `profile` where the time goes; `tables`, `plot` and `cli` show it.
"""
