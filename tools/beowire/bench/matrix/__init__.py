# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire bench matrix`: where Beowire is ahead of TCP and where behind, cell by cell.

A cell is a figure at a size of messages, over one of Beowire's links, at an MTU, by an MPI.
`figures` knows what is measured, `grid` which cells, `nodes` where, `stacks` who carries messages
and how that is proved, `available` what is missing here, `cells` what comes of the rounds, `store`
the file of results, `measure` the order of runs, `pace` how long they take; `tables`, `plot` and
`cli` show it.
"""
