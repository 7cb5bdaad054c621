# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire bench load`: how much longer messages take under load than alone, and the tail of it.

`distribution` knows how long messages are, `plan` what is measured and how the program is told,
`nodes` where, `runs` one proved run, `measure` the order of runs, `store` the file of results;
`slowdown` makes figures of them, `incast` those of waves, `health` tells what spoils them;
`tables`, `plot` and `cli` show it.
"""
