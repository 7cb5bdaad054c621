# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The example programs as a user meets them: results, reports, help and mistakes."""

import json
import math
import subprocess

import pytest
from beowire.bench.pingpong import between_nodes_bytes
from beowire.errors import BeowireError
from beowire.run.cluster import Cluster
from beowire.run.launch import Transport
from beowire.run.mpi import Mpi
from mpi_programs import executable, run_example

MPIS: tuple[Mpi, ...] = ("openmpi", "mpich")
TRANSPORTS: tuple[Transport, ...] = ("tcp", "beowire")


@pytest.mark.parametrize("mpi", MPIS)
def test_pi_does_not_depend_on_the_number_of_ranks(mpi: Mpi, four: Cluster) -> None:
    reports = [
        json.loads(run_example("pi", four, ranks, mpi, ("--precision", "1e-5", "--json"))[1])
        for ranks in (1, 2, 3, 4)
    ]
    assert len({report["checksum"] for report in reports}) == 1
    assert abs(reports[0]["pi"] - math.pi) <= 1e-5


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("ranks", [2, 4])
def test_tridiagonal_sends_long_messages(ranks: int, mpi: Mpi, four: Cluster) -> None:
    size = 600_000
    arguments = ("--size", str(size), "--repeat", "2", "--json")
    # Four arrays of the system go out and one solution comes back, but for rank 0's share.
    sent = 2 * 5 * 8 * (size - size // ranks - 1)
    _, output = run_example("tridiagonal", four, ranks, mpi, arguments, payload_bytes=sent)
    report = json.loads(output)
    assert report["message_bytes"] > 1_000_000
    assert report["residual"] < 1e-13


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("more", [(), ("--wait", "900")], ids=["computing", "waiting"])
def test_stencil_is_exact(more: tuple[str, ...], mpi: Mpi, four: Cluster) -> None:
    arguments = ("--rows", "37", "--columns", "5000", "--steps", "9", *more, "--json")
    # Each of three borders passes a row both ways in each step, and once more at the end.
    sent = 3 * 2 * 10 * 8 * 5000
    _, output = run_example("stencil", four, 4, mpi, arguments, payload_bytes=sent)
    report = json.loads(output)
    assert report["error"] == 0
    assert report["message_bytes"] == 40_000
    if more:
        # The slowest rank has ten of the 37 rows.
        assert report["time_ns"] >= 9 * 900_000 * 9 // 37


def test_stencil_names_mistakes(pair: Cluster) -> None:
    with pytest.raises(BeowireError, match="stencil: --rows 1 are fewer than the 2 ranks"):
        run_example("stencil", pair, 2, "openmpi", ("--rows", "1"), transport="tcp")


@pytest.fixture
def linpack() -> None:
    """The program that ScaLAPACK is needed for is built."""
    try:
        executable("examples/linpack", "openmpi")
    except BeowireError:
        pytest.skip("examples/linpack is left out: libscalapack-openmpi-dev is missing")


@pytest.mark.usefixtures("linpack")
@pytest.mark.parametrize("block", [7, 40, 300])
def test_linpack_finds_the_solution_over_both_transports(block: int, four: Cluster) -> None:
    arguments = ("--size", "180", "--block", str(block), "--json")
    reports = [
        json.loads(run_example("linpack", four, 4, "openmpi", arguments, transport=each)[1])
        for each in TRANSPORTS
    ]
    assert reports[0]["checksum"] == reports[1]["checksum"]
    assert all(0 < report["residual"] < 16 for report in reports)
    assert reports[0]["flops"] == round(2 / 3 * 180**3 + 3 / 2 * 180**2)


@pytest.mark.usefixtures("linpack")
def test_linpack_names_mistakes(pair: Cluster) -> None:
    with pytest.raises(BeowireError, match="linpack: --block: 0 is outside 1 to 65536"):
        run_example("linpack", pair, 2, "openmpi", ("--block", "0"), transport="tcp")


@pytest.mark.parametrize("mode", ["latency", "bandwidth", "rate"])
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("mpi", MPIS)
def test_pingpong(mode: str, transport: Transport, mpi: Mpi, pair: Cluster) -> None:
    sizes = "0,1,8,1000,65536,1m"
    arguments: tuple[str, ...] = (
        "--mode",
        mode,
        "--sizes",
        sizes,
        "--iters",
        "40",
        "--window",
        "8",
    )
    arguments += ("--verify", "--json", "-")
    record, output = run_example("pingpong", pair, 2, mpi, arguments, transport=transport)
    report = json.loads(output)
    assert report["mode"] == mode
    assert len(set(report["hosts"])) == (2 if record.nodes else 1)
    assert [result["size_bytes"] for result in report["results"]] == [0, 1, 8, 1000, 65536, 1 << 20]
    for result in report["results"]:
        samples = sorted(result["samples_ns"])
        assert result["min_ns"] == samples[0]
        assert result["max_ns"] == samples[-1]
        assert result["min_ns"] <= result["p50_ns"] <= result["p90_ns"] <= result["p99_ns"]
        assert result["p50_ns"] in samples
    if transport == "beowire":
        assert record.payload_bytes >= between_nodes_bytes(report)


@pytest.mark.parametrize("mpi", MPIS)
def test_pingpong_leaves_other_ranks_alone(mpi: Mpi, four: Cluster) -> None:
    """Rank 0 and the last rank measure; the ranks between must not disturb, only end well."""
    _, output = run_example("pingpong", four, 4, mpi, ("--iters", "100", "--json", "-"))
    report = json.loads(output)
    assert report["ranks"] == 4
    assert len(set(report["hosts"])) == (2 if four.lab and four.lab.mode == "namespace" else 1)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("pi", ("--precision", "much"), "--precision: 'much' is not a number"),
        ("pi", ("--precision", "2"), "--precision: 2 is outside 1e-11 to 0.1"),
        ("pi", ("now",), "'now' is not expected; see --help"),
        ("tridiagonal", ("--size", "3"), "--size: 3 unknowns are too few for 2 ranks"),
        ("tridiagonal", ("--sizes", "9"), "'--sizes' is no option here"),
        ("pingpong", ("--mode", "speed"), "--mode: 'speed' is none of latency, bandwidth, rate"),
        ("pingpong", ("--sizes", "1,,2"), "--sizes: '' is not a whole number"),
        ("pingpong", ("--json", "/nowhere/file"), "cannot write /nowhere/file: No such file"),
    ],
)
def test_mistakes_are_named(
    name: str, arguments: tuple[str, ...], message: str, pair: Cluster
) -> None:
    with pytest.raises(BeowireError) as caught:
        run_example(name, pair, 2, "mpich", arguments, transport="tcp")
    said = [line for line in caught.value.what.splitlines() if line.startswith(f"{name}.mpich: ")]
    assert len(said) == 1, caught.value.what
    assert message in said[0]


def test_one_rank_is_too_few_for_pingpong(pair: Cluster) -> None:
    with pytest.raises(BeowireError, match="needs at least 2 ranks"):
        run_example("pingpong", pair, 1, "mpich", (), transport="tcp")


@pytest.mark.parametrize("name", ["pi", "tridiagonal", "pingpong", "exchange"])
def test_help(name: str, pair: Cluster) -> None:
    _, output = run_example(name, pair, 2, "openmpi", ("--help",), transport="tcp")
    assert output.count("usage: ") == 1


@pytest.mark.parametrize("name", ["pi", "tridiagonal", "pingpong", "exchange"])
@pytest.mark.parametrize("mpi", MPIS)
def test_programs_know_nothing_of_beowire(name: str, mpi: Mpi) -> None:
    """Stock MPI programs: linked with the distribution's MPI and the C library, nothing else."""
    needed = subprocess.run(
        ["readelf", "-d", str(executable(f"examples/{name}", mpi))],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    libraries = {
        line.split("[")[1].split("]")[0] for line in needed.splitlines() if "NEEDED" in line
    }
    assert {"libc.so.6"} < libraries <= {"libmpi.so.40", "libmpich.so.12", "libm.so.6", "libc.so.6"}
