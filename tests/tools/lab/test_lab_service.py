# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Labs with beowired on each node, and jobs whose ranks run as a user without privileges."""

from collections.abc import Iterator
from pathlib import Path

import beowire_cli
import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.lab import lab, service, up
from beowire_cli import beowire

USER = "nobody"


@pytest.fixture(scope="module")
def served() -> Iterator[lab.Lab]:
    """A lab of two nodes with the service."""
    if beowire_cli.NO_NAMESPACES:
        pytest.skip(f"raw frames: {beowire_cli.NO_NAMESPACES}")
    name = beowire_cli.fresh_name()
    answer = beowire("lab", "up", name, "--nodes", "2", "--service")
    assert answer.status == 0, answer.errors
    made = lab.load(name)
    yield made
    beowire_cli.remove(name)
    assert not service.socket_path(made, "node1").parent.parent.exists()
    assert not any(runs(pid) for pid in made.services.values())


def runs(pid: int) -> bool:
    """Whether the process runs; whoever is to take its status may not have done so."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def opened(made: lab.Lab, node: str) -> int:
    """How many endpoints the service of a node has given to users."""
    return service.log_path(made, node).read_text().count("opened uid=65534")


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_ranks_of_a_user_have_raw_frames(served: lab.Lab, mpi: str) -> None:
    """On each node by its own service; the kernel's counters say the same."""
    before = [opened(served, node) for node in served.node_names()]
    program = places.product("examples/meet" + (".mpich" if mpi == "mpich" else ""))
    answer = beowire(
        *("run", "--lab", served.name, "-n", "4", "--transport", "beowire", "--mpi", mpi),
        *("--user", USER, "--prove", "--", str(program)),
        BEOWIRE_LINKS="local,packet",
    )
    assert answer.status == 0, answer.errors
    assert "proved: payload over Beowire" in answer.errors
    after = [opened(served, node) for node in served.node_names()]
    assert all(now >= then + 2 for then, now in zip(before, after, strict=True))


def test_info_names_the_service(served: lab.Lab) -> None:
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    info = str(places.product("programs/beowire-info"))
    answer = beowire("lab", "exec", served.name, "node2", "--", *become, info)
    assert "frames of EtherType 88B5 on eth0, by the service beowired" in answer.output
    answer = beowire("lab", "exec", served.name, "node2", "--", info)
    assert "frames of EtherType 88B5 on eth0, up to" in answer.output
    answer = beowire(
        *("lab", "exec", served.name, "node2", "--", *become, "env", "BEOWIRE_SERVICE=off", info)
    )
    assert "or the service beowired, which is not there (BEOWIRE_SERVICE=off)" in answer.output


def test_who_cannot_be_is_told(served: lab.Lab) -> None:
    run = ["run", "-n", "1", "--transport", "beowire", "--user"]
    there = ["--lab", served.name, "--", "true"]
    assert "There is no user no-such-user." in beowire(*run, "no-such-user", *there).errors
    answer = beowire(*run, USER, "--hosts", "a", "--", "true")
    assert "On real hosts ranks run as who logs in there." in answer.errors


def test_loopback_addresses_have_no_service(lab_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEOWIRE_LAB_MODE", "loopback")
    with pytest.raises(BeowireError, match="which carry no raw frames"):
        up.up(lab_name, 2, 9000, served=True)
    assert not lab.exists(lab_name)


def test_a_service_that_does_not_start_leaves_nothing(
    lab_name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "beowired"
    broken.write_text("#!/bin/sh\necho it is broken >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(places, "product", lambda _name: broken)
    with pytest.raises(BeowireError, match="The service of node1 did not start: it is broken"):
        up.up(lab_name, 2, 9000, served=True)
    assert not lab.exists(lab_name)
    assert not Path(f"/run/beowire-lab/{lab_name}").exists()
