# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A record of a node: private, without what checks do not need; a damaged one is told."""

import gzip
import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import beowire_cli
import pytest
from beowire.doctor import privacy
from beowire.doctor.examine import Outcome, State, examine
from beowire.doctor.node import Goal, Node
from beowire.doctor.registry import ALL
from beowire.doctor.source import Recorded, Recorder
from beowire.errors import BeowireError
from beowire_cli import COMMAND
from world import World, world

_SECRET = "correct-horse-battery-staple"
_ALONE = shlex.join([*COMMAND[:-1], "beowire.doctor"])
_TREE = Path(__file__).parents[3]
_HANG_S = 400

namespaces = pytest.mark.skipif(
    bool(beowire_cli.NO_NAMESPACES), reason=f"namespaces: {beowire_cli.NO_NAMESPACES}"
)


@pytest.fixture
def made() -> Iterator[World]:
    with world("latency") as here:
        yield here


def record(made: World, tree: Path, script: str = "") -> None:
    """Records the namespace by the command, among the processes that the script starts."""
    script = f"umask 0; {script} {_ALONE} --record {tree} >/dev/null; s=$?; test $s -le 1"
    command = [
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-c",
        script,
    ]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd=_TREE,
            timeout=_HANG_S,
        )

    done = made.run(run)
    assert done.returncode == 0, done.stderr


@namespaces
def test_a_record_is_its_owners_alone_and_has_no_secret(made: World, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    program = f"nice -n 5 sh -c 'sleep 1000; :' {_SECRET}"
    rank = f"PASSWORD={_SECRET} OMPI_COMM_WORLD_RANK={_SECRET} {program} &"
    record(made, tree, f"{rank} export TOKEN={_SECRET};")
    files = [each for each in tree.rglob("*") if each.is_file()]
    assert len(files) > 100
    for each in files:
        assert _SECRET not in each.read_text(), each
    modes = {each.lstat().st_mode & 0o777 for each in files}
    assert modes == {0o600}
    assert {each.stat().st_mode & 0o777 for each in (tree, *tree.rglob("*")) if each.is_dir()} == {
        0o700
    }
    done = examine(Node(Recorded(tree), Goal.LATENCY), [ALL["jobs.priority"]])
    (outcome,) = done.outcomes
    assert (outcome.state, outcome.said.partition("(")[0]) == (
        State.BAD,
        "niced down: sh ",
    )


def test_of_files_with_secrets_the_rest_is_left_out() -> None:
    environment = f"HOME=/root\0PMI_RANK=3\0MY_PMI_RANK=4\0PASSWORD={_SECRET}\0"
    assert privacy.limited("/proc/12/environ", environment) == "PMI_RANK=\0"
    assert privacy.limited("/proc/12/environ", f"PASSWORD={_SECRET}\0") == "\0"
    maps = "7f00-7f01 r--p 0 0:1 9 /home/me/lib/libmpi.so.40\n7f01-7f02 r--p 0 0:1 8 /home/me/x\n"
    assert privacy.limited("/proc/12/maps", maps) == "/libmpi.so\n"
    sockets = "0: 2 0 0 1 1 9 @beowire.4711\n0: 2 0 0 1 1 8 /home/me/.agent\n"
    assert privacy.limited("/proc/net/unix", sockets) == "0: 2 0 0 1 1 9 @beowire.4711\n"
    line = f"root=/dev/sda1 preempt=full rd.iscsi.password={_SECRET} quiet\n"
    assert privacy.limited("/proc/cmdline", line) == "root preempt=full rd.iscsi.password quiet\n"
    assert privacy.limited("/proc/sys/vm/swappiness", "60\n") == "60\n"


def test_a_record_goes_into_no_folder_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "there").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BeowireError, match="cannot be made"):
        Recorder(tmp_path / "there")
    (tmp_path / "there2").mkdir()
    with pytest.raises(BeowireError, match="cannot be made"):
        Recorder(tmp_path / "there2")


DEEP = "[" * 100_000
_LINK = {"name": "n0", "index": 2, "up": True, "addresses": ["10.0.0.1/8"], "master": None} | {
    "below": None,
    "carrier": 1,
    "kind": None,
    "counters": {},
    "mtu": 1500,
    "max_mtu": 9000,
    "txqlen": 1000,
}


def tree_of(path: Path, links: str, **answers: str) -> Recorded:
    """A record with these answers."""
    for name, text in {"links": links, **answers}.items():
        file = path / "answers" / f"{name}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return Recorded(path)


@pytest.mark.parametrize(
    "links",
    ["", "{", "[3]", '[{"name": "n0"}]', '{"n0": 1}', "null", "\udcff", DEEP],
    ids=lambda links: repr(links[:20]),
)
def test_damaged_answers_of_interfaces_are_told(tmp_path: Path, links: str) -> None:
    source = tree_of(tmp_path, "[]")
    place = tmp_path / "answers" / "links.json"
    place.write_bytes(links.encode(errors="surrogateescape"))
    with pytest.raises(BeowireError, match="interfaces") as found:
        examine(Node(source, Goal.LATENCY), ALL.values())
    assert found.value.code == 2


def test_other_damaged_answers_end_their_checks_alone(tmp_path: Path) -> None:
    source = tree_of(tmp_path, json.dumps([_LINK]), qdiscs="{", clock="[]", napi="3")
    packed = tmp_path / "proc" / "config.gz"
    packed.parent.mkdir()
    release = tmp_path / "proc" / "sys" / "kernel" / "osrelease"
    release.parent.mkdir(parents=True)
    release.write_text("6.12.0\n")
    packed.write_bytes(gzip.compress(b"CONFIG_X=y\n" * 1000)[:20])
    done = examine(Node(source, Goal.LATENCY), ALL.values())
    states = {each.check.name: each.state for each in done.outcomes}
    assert states["link.mtu"] is State.BAD
    for name in ("qdisc.shaping", "clock.synchronized", "kernel.debugging"):
        assert states[name] is State.FAILED, name


def test_an_answer_of_any_depth_ends_its_check_alone(tmp_path: Path) -> None:
    tree_of(tmp_path, json.dumps([_LINK]), qdiscs=DEEP)
    release = tmp_path / "proc" / "sys" / "kernel" / "osrelease"
    release.parent.mkdir(parents=True)
    release.write_text("6.12.0\n")
    told = beowire_cli.beowire("doctor", "--json", "--root", str(tmp_path))
    assert "Traceback" not in told.errors
    states = {each["check"]: each["state"] for each in json.loads(told.output)["outcomes"]}
    assert states["qdisc.shaping"] == State.FAILED
    assert states["link.mtu"] == State.BAD


def test_a_record_of_others_gives_the_terminal_no_orders(tmp_path: Path) -> None:
    bell, title = "a\x07", "\x1b]0;taken\x1b\\[/b] :x:"
    tree_of(tmp_path, json.dumps([_LINK | {"name": bell, "kind": title, "txqlen": 10}]))
    host = tmp_path / "proc" / "sys" / "kernel" / "hostname"
    host.parent.mkdir(parents=True)
    host.write_text(title)
    for words in (["-v"], ["fix", "--dry-run"], ["--only", "link.mtu"]):
        told = beowire_cli.beowire("doctor", *words, "--root", str(tmp_path))
        assert "Traceback" not in told.errors
        assert "a?" in told.output, words
        for text in (told.output, told.errors):
            assert not [each for each in text if each != "\n" and not each.isprintable()], text


def test_a_node_without_interfaces_is_not_well(tmp_path: Path) -> None:
    source = tree_of(tmp_path, "[]")
    assert examine(Node(source, Goal.LATENCY), [ALL["link.mtu"]]).troubles
    assert not examine(Node(source, Goal.LATENCY), [ALL["tcp.sack"]]).troubles


def test_a_path_that_cannot_be_probed_is_not_well(tmp_path: Path) -> None:
    source = tree_of(tmp_path, json.dumps([_LINK]))
    (tmp_path / "answers" / "path").mkdir()
    (tmp_path / "answers" / "path" / "there.json").write_text("{}")
    for peer, text in (("", ""), ("there", "cannot be judged"), ("other", "cannot be judged")):
        done = examine(Node(source, Goal.LATENCY, peer=peer), [ALL["path.mtu"]])
        assert text in "".join(done.troubles)
        assert bool(done.troubles) == bool(text)


_TREES = {
    "version 1": {
        "proc/self/cgroup": "4:memory:/job\n3:cpu,cpuacct:/job\n0::/\n",
        "sys/fs/cgroup/cpu,cpuacct/notify_on_release": "0\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "50000\n",
        "sys/fs/cgroup/cpu,cpuacct/job/cpu.stat": "nr_periods 9\nnr_throttled 1\n",
        "sys/fs/cgroup/memory/notify_on_release": "0\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "1073741824\n",
    },
    "version 2 in a namespace of its own": {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
        "sys/fs/cgroup/cpu.max": "50000 100000\n",
        "sys/fs/cgroup/cpu.stat": "nr_throttled 1\n",
        "sys/fs/cgroup/memory.high": "1073741824\n",
    },
    "version 2 beside version 1": {
        "proc/self/cgroup": "5:pids:/\n0::/job\n",
        "sys/fs/cgroup/unified/cgroup.controllers": "cpu memory\n",
        "sys/fs/cgroup/unified/job/cpu.max": "50000 100000\n",
        "sys/fs/cgroup/unified/job/cpu.stat": "nr_throttled 1\n",
        "sys/fs/cgroup/unified/job/memory.high": "1073741824\n",
    },
}


@pytest.mark.parametrize("files", _TREES.values(), ids=_TREES)
def test_limits_of_control_groups_are_found(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    source = tree_of(tmp_path, "[]")

    def look(*names: str) -> list[Outcome]:
        node = Node(source, Goal.LATENCY)
        return examine(node, [ALL[f"groups.{name}"] for name in names]).outcomes

    assert [each.state for each in look("quota", "memory")] == [State.BAD, State.BAD]
    assert look("quota")[0].said.endswith("stopped 1 time")
    for place in tmp_path.rglob("cpu*.*"):
        place.write_text("max 100000\n" if place.name == "cpu.max" else "-1\n")
    assert look("quota")[0].state is State.GOOD
    for place in tmp_path.rglob("cgroup.controllers"):
        place.unlink()
    for place in tmp_path.rglob("notify_on_release"):
        place.unlink()
    assert [each.state for each in look("quota", "memory")] == [State.ABSENT, State.ABSENT]
