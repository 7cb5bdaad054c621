# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `beowire bench start` computes, what it refuses, and one short run in a lab of its own."""

import json
import shutil
from pathlib import Path

import pytest
from beowire.bench import start
from beowire.bench.start import Plan, Report
from beowire.errors import BeowireError
from beowire.lab import lab
from beowire.run import cluster, path
from beowire.run.launch import Job
from beowire_cli import beowire

needs_openmpi = pytest.mark.skipif(
    shutil.which("mpirun.openmpi") is None,
    reason="Open MPI is not installed: apt-get install openmpi-bin",
)


def test_the_ratio_is_the_median_of_the_rounds() -> None:
    tcp_s = [1.0, 2.0, 4.0, 1.0, 1.0, 1.0]
    beowire_s = [1.1, 2.4, 4.0, 9.0, 1.2, 1.3]
    told = start.figure(2, "run", tcp_s, beowire_s)
    # One disturbed round (9.0) moves neither the ratio nor its interval's lower end.
    assert told.ratio.value == pytest.approx(1.2)
    assert (told.ratio.low, told.ratio.high) == pytest.approx((1.0, 9.0))
    assert start.medians(told) == pytest.approx((1.0, 1.85))


@pytest.mark.parametrize("text", ["", "1", "2,x", "2,,4", "-2"])
def test_numbers_of_ranks_that_are_none(text: str) -> None:
    with pytest.raises(BeowireError, match="ranks"):
        start.parse_ranks(text)


def test_everything_is_in_the_file() -> None:
    report = Report(Plan((2,), 1), load=[0.5, 1.5])
    report.figures.append(start.figure(2, "mpirun", [1.0], [1.5]))
    told = json.loads(json.dumps(report.as_json(), allow_nan=True))
    assert told["figures"][0]["tcp_s"] == [1.0]
    assert told["figures"][0]["ratio"]["value"] == pytest.approx(1.5)
    assert (told["ranks"], told["rounds"], told["load"]) == ([2], 1, [0.5, 1.5])


def test_a_job_that_took_another_way_is_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path, "read_endpoints", lambda _: [])
    start._check_endpoints(Job(["x"], 2, "tcp"), tmp_path)
    with pytest.raises(BeowireError, match="0 endpoints"):
        start._check_endpoints(Job(["x"], 2, "beowire"), tmp_path)


@needs_openmpi
def test_a_job_that_fails_is_shown(job_lab: lab.Lab) -> None:
    broken = Job(["sh", "-c", "echo it broke; exit 3"], 2, "tcp")
    with pytest.raises(BeowireError, match="it broke"):
        start._timed(broken, cluster.of_lab(job_lab.name), "mpirun")


@needs_openmpi
@pytest.mark.usefixtures("own_shm")
def test_a_short_run(tmp_path: Path) -> None:
    file = tmp_path / "start.json"
    done = beowire("bench", "start", "--ranks", "2", "--rounds", "1", "--json", str(file))
    assert done.status == 0, done.errors
    assert "too few rounds" in done.output
    told = json.loads(file.read_text())
    assert [(each["ranks"], each["way"]) for each in told["figures"]] == [(2, "mpirun"), (2, "run")]
    for each in told["figures"]:
        assert len(each["tcp_s"]) == len(each["beowire_s"]) == 1
        assert each["ratio"]["value"] == pytest.approx(each["beowire_s"][0] / each["tcp_s"][0])
    assert "--prove" in told["commands"]["2 run beowire"]
    assert not lab.exists(told["lab"]["name"])
