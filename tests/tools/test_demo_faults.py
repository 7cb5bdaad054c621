# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The demonstration's killed rank: shown by the line that tells of it, or not at all."""

import shutil

import pytest
from beowire import cluster, demo_faults, lab
from beowire.errors import BeowireError

pytestmark = pytest.mark.skipif(
    shutil.which("mpirun.openmpi") is None,
    reason="Open MPI is not installed: apt-get install openmpi-bin",
)


def test_the_report_tells_of_the_death(job_lab: lab.Lab) -> None:
    killed = demo_faults.kill_a_rank(cluster.of_lab(job_lab.name))
    assert "signal 9" in killed.report or "is gone" in killed.report
    assert killed.exit_status != 0


def test_without_a_report_nothing_is_shown(
    job_lab: lab.Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beowire is told to be silent; mpirun speaks only if it notices the death first."""
    monkeypatch.setenv("BEOWIRE_LOG", "error")
    try:
        shown = demo_faults.kill_a_rank(cluster.of_lab(job_lab.name)).report
    except BeowireError as error:
        shown = error.what
    assert "signal 9" in shown or "was not reported" in shown
