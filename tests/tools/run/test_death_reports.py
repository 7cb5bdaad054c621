# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What counts as the report of a killed rank, in the words of each launcher and of Beowire."""

import pytest
from beowire.run.endings import report_of_death

OPENMPI = (
    "mpirun.openmpi noticed that process rank 2 with PID 23339 on node node3 exited on signal 9 "
    "(Killed)."
)
MPICH = """\
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 22682 RUNNING AT node3
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
"""
BEOWIRE = (
    "beowire: node3 (node e4517a1c1b2590ea) engine 26 is gone (Connection refused): "
    "operations with it end with an error"
)
NOTHING = """\
[node1:1] ORTE_ERROR_LOG: Out of resource in file ../../../orte/util/show_help.c at line 507
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
killed: rank 0 was told of the loss: MPI_ERR_INTERN: internal error
"""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (OPENMPI, OPENMPI),
        (MPICH, "PID 22682 RUNNING AT node3, EXIT CODE: 9"),
        (BEOWIRE, BEOWIRE),
        (f"{BEOWIRE}\n{OPENMPI}", OPENMPI),
    ],
)
def test_a_report_is_found(said: str, told: str) -> None:
    assert report_of_death(f"{NOTHING}{said}\n{NOTHING}", 2, ["node3"]) == told


@pytest.mark.parametrize(
    "said",
    [
        "",
        NOTHING,
        OPENMPI.replace("node3", "node30"),
        OPENMPI.replace("rank 2", "rank 0"),
        OPENMPI.replace("signal 9", "signal 15"),
        MPICH.replace("node3", "node1"),
        MPICH.replace("CODE: 9", "CODE: 3"),
        BEOWIRE.replace("node3", "node1"),
        BEOWIRE.replace("node3", "unknown host"),
    ],
)
def test_other_words_are_no_report(said: str) -> None:
    assert report_of_death(said, 2, ["node3"]) == ""
