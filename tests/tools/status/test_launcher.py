# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The hosts that a launcher was told: whose words are whose, and which files are read for it."""

import os
from pathlib import Path

import pytest
from beowire.errors import BeowireError
from beowire.run import host_sets
from beowire.run.cluster import of_hosts
from beowire.status import job, launcher, processes

OWNER = os.geteuid()


@pytest.mark.parametrize(
    ("command", "hosts"),
    [
        ("/usr/bin/mpirun.openmpi --host a:2,b:2 -n 4 ./x", ["a", "b"]),
        ("mpiexec.hydra -launcher ssh -hosts n1,n2 -n 4 ./x", ["n1", "n2"]),
        ("prterun -H one ./x", ["one"]),
        ("mpirun -n 4 ./x", []),
        ("./x --host a", []),
        ("mpirun --host=a,b ./x", ["a", "b"]),
        ("mpirun --host=fe80::1,b:2 ./x", ["fe80::1", "b"]),
        ("mpirun --hostfile list ./x", ["n1", "n2"]),
        ("mpirun --hostfile=list ./x", ["n1", "n2"]),
        ("mpirun -machinefile list ./x", ["n1", "n2"]),
        ("mpiexec.hydra -f list ./x", ["n1", "n2"]),
        ("/opt/mpich/bin/mpiexec -f list ./x", ["n1", "n2"]),
        ("mpiexec.hydra -genv A=b -genv A b -f list ./x", ["n1", "n2"]),
        ("mpirun --hostfile list --host n2 ./x", ["n2"]),
        ("mpirun -n 1 --host a ./x : --host b -n 1 ./x", ["a", "b"]),
        ("mpirun --hostfile absent ./x", []),
        ("mpirun --hostfile pipe ./x", []),
        ("mpirun --hostfile", []),
        ("", []),
    ],
)
def test_the_hosts_of_a_launcher(command: str, hosts: list[str], tmp_path: Path) -> None:
    (tmp_path / "list").write_text("# ours\nn1 slots=4\nn2:2\n")
    os.mkfifo(tmp_path / "pipe")
    assert launcher.named_hosts(command.split(), tmp_path, OWNER) == hosts


@pytest.mark.parametrize(
    "command",
    [
        "mpirun -n 4 ./x -f list",
        "mpiexec.hydra -n 4 ./x -f list",
        "mpirun -n 4 ./x --hostfile list",
        "mpirun ./x --host a",
        "mpirun host a ./x",
        "mpirun --oversubscribe -x NAME --mca btl tcp ./x --host a",
        "mpiexec.hydra -genvall -genv NAME value ./x -f list",
        "mpiexec.hydra -genv NAME=value ./x --host a",
        "mpiexec.hydra -env NAME=value -genv NAME value ./x --host a",
        "mpirun --bind-to=none ./x --host a",
        "mpirun --an-option-of-tomorrow ./x --host a",
        "mpirun.openmpi -f list ./x",
        "orterun -f list ./x",
        "prunella --host a ./x",
        "/home/mpirun/x --host a",
    ],
)
def test_words_of_the_program_are_not_the_launchers(command: str, tmp_path: Path) -> None:
    (tmp_path / "list").write_text("n1\nn2\n")
    assert launcher.named_hosts(command.split(), tmp_path, OWNER) == []


def test_a_file_of_another_user_is_not_read(tmp_path: Path) -> None:
    """A process names what it likes, and who asks may be root."""
    (tmp_path / "list").write_text("n1\n")
    words = ["mpirun", "--hostfile", "list", "./x"]
    assert launcher.named_hosts(words, tmp_path, OWNER) == ["n1"]
    assert launcher.named_hosts(words, tmp_path, OWNER + 1) == []
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert launcher.named_hosts(["mpirun", "-hostfile", "link"], tmp_path, OWNER + 1) == []


def test_own_processes_may_name_files_of_the_administrator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "list").write_text("n1\n")
    monkeypatch.setattr(os, "geteuid", lambda: OWNER + 1)
    words = ["mpirun", "--hostfile", "list", "./x"]
    assert launcher.named_hosts(words, tmp_path, OWNER + 1) == ["n1"]
    assert launcher.named_hosts(words, tmp_path, OWNER + 2) == []


def test_what_is_no_file_is_not_even_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening a device may do something, and a pipe tells its writer."""
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "long").open("wb") as file:
        file.truncate((1 << 20) + 1)
    (tmp_path / "another's").write_text("n1\n")
    opened = []
    real = os.open

    def watched(path: str, flags: int, *rest: int) -> int:
        opened.append(flags)
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", watched)
    for name, owner in (("pipe", OWNER), ("long", OWNER), ("another's", OWNER + 1)):
        assert launcher.named_hosts(["mpirun", "--hostfile", name], tmp_path, owner) == []
    assert [flags & os.O_PATH for flags in opened] == [os.O_PATH] * 3


def test_who_becomes_another_user_meanwhile_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "words", lambda _: ["mpirun", "--host", "a", "./x"])
    own = os.getpid()
    assert job.hosts_of(own) == ["a"]
    users = iter([0, 1000])
    monkeypatch.setattr(processes, "owner", lambda _: next(users))
    monkeypatch.setattr(processes, "below", lambda pid: {pid})
    monkeypatch.setattr(processes, "environment", lambda _: {})
    assert job.hosts_of(own) == []


def test_the_owner_is_the_real_user() -> None:
    assert processes.owner(os.getpid()) == os.getuid()
    assert processes.owner(1 << 30) is None


@pytest.mark.parametrize(
    "text",
    [
        "n[1-99999999]",
        "n[1-400]m[1-400]",
        ",".join(["n[1-1000]"] * 66),
        "n1!n[0-65536]",
        "n[65537-1]",
    ],
)
def test_hosts_are_counted_before_they_are_made(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_sets, "NodeSet", None)
    with pytest.raises(BeowireError, match="more than 65536 hosts"):
        of_hosts([text])
    with pytest.raises(BeowireError, match="more than 65536 hosts"):
        of_hosts(["n"] * (host_sets.HOSTS_MAX + 1))


@pytest.mark.parametrize(
    "text",
    ["n[0-9_9999_999]", "n[1-", "n1]", "n[[1-2]]", "n[-5-5]", "n[a]", "n" + "1" * 5000],
)
def test_what_cannot_be_counted_is_no_set_of_hosts(text: str) -> None:
    with pytest.raises(BeowireError, match="cannot be read"):
        of_hosts([text])


def test_sets_of_hosts() -> None:
    assert of_hosts(["n[1-3,7]", "a,b"]).hosts == ["n1", "n2", "n3", "n7", "a", "b"]
    assert of_hosts(["n[01-07/3]-x!n04-x"]).hosts == ["n01-x", "n07-x"]
    assert len(of_hosts(["n[1-200]m[1-300]"]).hosts) == 60000


def test_groups_of_others_texts_are_not_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A command of the administrator's would be executed with the group's name in it."""
    asked = []

    def look_up(_: object, group: str, *__: object) -> None:
        asked.append(group)
        raise ValueError

    monkeypatch.setattr("ClusterShell.NodeSet.ParsingEngine.parse_group_string", look_up)
    for groups, names in ((False, []), (True, ["@all"])):
        with pytest.raises(BeowireError):
            of_hosts(["@all"], groups=groups)
        assert asked == names
