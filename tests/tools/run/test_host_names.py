# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A host's name means nothing else to any shell, to ssh or to what asks many nodes at once."""

import shlex
from pathlib import Path

import pytest
from beowire import places
from beowire.doctor import everywhere
from beowire.errors import BeowireError
from beowire.run import cluster, host_names, remote
from beowire_cli import beowire

GOOD = ["a", "node01", "n-1.example.org", "me@n1", "j.d_x@10.0.0.1", "10.0.0.1", "::1"]
GOOD += ["fe80::1%eth0", "root@fe80::1", "a" * 63]
BAD = ["", "-oProxyCommand=x", "-x", "a-", "a;id", "$(id>x)", "a b", "a\nb", "a`id`", "a|b", "a&b"]
BAD += [
    "'a'",
    "a\\b",
    "a*",
    "~",
    "a..b",
    ".a",
    "a.",
    "me@",
    "@a",
    "-l@a",
    "a b@c",
    "a@b@c",
    "x=y@a",
]
BAD += [
    "a" * 64,
    "a.b" * 90,
    "::1%",
    "::1%$(id)",
    "1:2",
    "a%h",
    "\u00e4",
    "a\x00b",
    "a\x1b[2J",
    "%h",
]


@pytest.mark.parametrize("name", GOOD)
def test_names_that_are_some(name: str) -> None:
    assert host_names.check(name) == name


@pytest.mark.parametrize("name", BAD)
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(BeowireError, match="no name of a host"):
        host_names.check(name)
    with pytest.raises(BeowireError, match="no name of a host"):
        cluster.Cluster([name], ["ssh"])


@pytest.mark.parametrize(
    "words",
    [
        [
            "run",
            "-n",
            "2",
            "--transport",
            "tcp",
            "--ssh",
            "echo",
            "--hosts",
            "$(touch x)",
            "--",
            "a",
        ],
        ["bench", "pingpong", "--ssh", "echo", "--hosts", "a;touch x"],
        ["doctor", "cluster", "--ssh", "echo", "-w", "$(touch x)"],
        ["doctor", "cluster", "--hostfile", "hosts"],
        ["doctor", "probe", "--peer", "-oProxyCommand=touch x"],
    ],
)
def test_every_command_refuses_them(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts").write_text("$(touch>x)\n")
    answer = beowire(*words)
    assert answer.status != 0
    assert "no name of a host" in answer.errors, answer.errors
    assert not (tmp_path / "x").exists()


def test_addresses_in_a_file_of_hosts(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("a:4\nfe80::1%eth0\n10.0.0.1 slots=2 # c\n")
    assert cluster.read_hostfile(file) == ["a", "fe80::1%eth0", "10.0.0.1"]


def test_options_for_ssh_end_before_the_host() -> None:
    assert cluster.of_hosts(["a"]).reach("a", "true")[-3:] == ["--", "a", "true"]
    assert cluster.of_hosts(["a"], "/usr/bin/ssh -p 1").reach("a", "b c")[-3:] == [
        "--",
        "a",
        "b c",
    ]
    assert cluster.of_hosts(["a"], "./agent").reach("a", "true") == [
        "./agent",
        "a",
        "true",
    ]


def test_ssh_does_not_wait_for_ever() -> None:
    """Neither for a host that is lost, nor for an answer of one that takes calls and is silent."""
    words = cluster.of_hosts(["a"]).reach("a", "true")
    assert words == ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "--", "a", "true"]


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """An agent, at a path with all that must be quoted, that tells what it was given."""
    file = tmp_path / "an agent's %h $HOME"
    file.write_text('#!/bin/sh\nprintf "%s\\n" "$#" "$@"\n')
    file.chmod(0o755)
    return file


def test_what_reaches_the_agent(agent: Path) -> None:
    where = cluster.of_hosts(["me@fe80::1%eth0"], shlex.quote(str(agent)))
    script = "echo '%h' \"$x\"; true"
    told = remote.execute(where, where.hosts[0], script).decode().splitlines()
    assert told == ["2", "me@fe80::1%eth0", script]


def test_what_the_doctor_asks_reaches_the_agent(agent: Path) -> None:
    where = cluster.of_hosts(["me@a"], shlex.quote(str(agent)))
    options = ["--goal", "50% of '$x' %h"]
    told = remote.execute(where, where.hosts[0], everywhere.command(where, options)).decode()
    count, host, command = told.splitlines()
    assert (count, host) == ("2", "me@a")
    assert shlex.split(command) == [str(places.root() / "beowire"), "doctor", *options]
