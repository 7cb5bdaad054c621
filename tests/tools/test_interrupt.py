# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Ctrl-C on a terminal, in the middle of every long command: it ends at once, says so, and leaves
no process, lab, temporary file or shared memory behind."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from beowire import places
from beowire.lab import lab
from beowire.run import mpi
from beowire_cli import NO_NAMESPACES, traces
from terminal import Terminal, on_terminal

pytestmark = pytest.mark.usefixtures("own_shm")

INTERRUPTED = (130, -2)
"""Both are 130 to a shell; the second comes while Python defines a class by executing text."""

SHARED_MEMORY = ("mpich_shm_", "vader_segment.", "sm_segment.", "ucx_shm_", "beowire")


def shared_memory() -> set[str]:
    return {each.name for each in Path("/dev/shm").iterdir() if each.name.startswith(SHARED_MEMORY)}


@pytest.fixture
def nothing_left(tmp_path: Path) -> Iterator[Path]:
    """A directory for temporary files; the test must not leave shared memory behind."""
    before = shared_memory()
    yield tmp_path
    assert shared_memory() - before == set()


def end(terminal: Terminal) -> None:
    """Presses Ctrl-C; the command must end by it and leave nothing."""
    terminal.press_ctrl_c()
    assert terminal.wait() in INTERRUPTED, terminal.output
    assert "Traceback" not in terminal.output
    assert terminal.left() == []


@pytest.mark.parametrize("transport", ["tcp", "beowire"])
@pytest.mark.parametrize("name", ["openmpi", "mpich", "openmpi5", "mpich5"])
def test_run(name: str, transport: str, job_lab: lab.Lab, nothing_left: Path) -> None:
    chosen = "openmpi" if name == "openmpi" else str(mpi.wheel_dir(name))
    if name == "openmpi" and shutil.which("mpirun.openmpi") is None:
        pytest.skip("Open MPI is not installed")
    if name != "openmpi" and not Path(chosen).is_dir():
        pytest.skip(f"{name} is not installed in {chosen}")
    if name == "openmpi5" and job_lab.mode == "loopback":
        pytest.skip("Open MPI 5 starts nothing on loopback addresses; namespaces are refused here")
    suffix = ".mpich" if "mpich" in name else ""
    script = f"echo begun $((40 + 2)); exec {places.example(f'pi{suffix}')} --precision 1e-11"
    arguments = ["run", "--lab", job_lab.name, "-n", "4", "--transport", transport]
    command = [*arguments, "--mpi", chosen, "--", "sh", "-c", script]
    with on_terminal(nothing_left, *command) as terminal:
        terminal.expect("begun 42")
        time.sleep(1.5)
        end(terminal)
    assert job_lab.processes() == []
    assert [each.name for each in job_lab.directory.iterdir() if each.name.startswith("job-")] == []


@pytest.mark.parametrize(
    ("when", "baseline"),
    [
        ("trying TCP", "fastest"),
        ("round 1 of 5, tcp", "native"),
        ("round 1 of 5, beowire", "native"),
    ],
)
def test_bench(when: str, baseline: str, job_lab: lab.Lab, nothing_left: Path) -> None:
    report = nothing_left / "report.json"
    arguments = ["bench", "pingpong", "--lab", job_lab.name, "--mode", "latency", "--sizes", "8"]
    arguments += ["--baseline", baseline, "--json", str(report)]
    with on_terminal(nothing_left, *arguments) as terminal:
        terminal.expect(when)
        time.sleep(0.5)
        end(terminal)
    assert job_lab.processes() == []


@pytest.mark.skipif(shutil.which("hpcc") is None, reason="hpcc is not installed")
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("when", ["making a lab|pi over tcp", "pi over tcp", "pi over beowire"])
def test_demo(when: str, nothing_left: Path) -> None:
    with on_terminal(nothing_left, "demo") as terminal:
        terminal.expect(when)
        time.sleep(0.5)
        end(terminal)
        assert traces(f"demo{terminal.process.pid}") == []


@pytest.mark.skipif(NO_NAMESPACES is not None, reason=f"raw frames: {NO_NAMESPACES}")
@pytest.mark.parametrize("delay_s", [0.0, 0.3, 0.6])
def test_lab_up(delay_s: float, lab_name: str, nothing_left: Path) -> None:
    with on_terminal(nothing_left, "lab", "up", lab_name, "--nodes", "60") as terminal:
        until = time.monotonic() + 60
        while not traces(lab_name):
            assert time.monotonic() < until, "nothing of the lab was made"
            time.sleep(0.01)
        time.sleep(delay_s)
        terminal.press_ctrl_c()
        status = terminal.wait()
        assert terminal.left() == []
        if lab.exists(lab_name):
            assert lab.load(lab_name).ready
        else:
            assert status in INTERRUPTED, terminal.output
            assert traces(lab_name) == []
