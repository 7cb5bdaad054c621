# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command as an administrator uses it, in a namespace of its own.

Only checks of the namespace's own settings are fixed here, and jobs of the machine are hidden by
a namespace of processes.
"""

import copy
import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import beowire_cli
import pytest
import typer
from beowire.doctor import fix_cli, guard, journal, watch
from beowire.doctor.cli import app
from beowire.doctor.examine import State, examine
from beowire.doctor.node import Goal, Node
from beowire.doctor.registry import ALL
from beowire.doctor.source import Source
from beowire.doctor.words import counted
from beowire.errors import BeowireError
from beowire_cli import COMMAND, Answer
from faults import FAULTS
from pyroute2 import IPRoute
from typer.testing import CliRunner
from world import PEER, World, world

pytestmark = pytest.mark.skipif(
    bool(beowire_cli.NO_NAMESPACES), reason=f"namespaces: {beowire_cli.NO_NAMESPACES}"
)

_SACK = Path("/proc/sys/net/ipv4/tcp_sack")
_NOBODY = 65534
_ALONE = [*COMMAND[:-1], "beowire.doctor"]
_TREE = Path(__file__).parents[3]
_HANG_S = 400


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("BEOWIRE_STATE", str(tmp_path / "state"))
    with world("latency") as here:
        yield here


def doctor(made: World, *arguments: str) -> Answer:
    """Runs the doctor in the namespace; alone, since it starts sooner so."""

    def run() -> Answer:
        done = subprocess.run([*_ALONE, *arguments], capture_output=True, text=True, check=False)
        return Answer(done.returncode, done.stdout, done.stderr)

    return made.run(run)


def alone(made: World, script: str) -> Answer:
    """Runs a shell script in the namespace, where it sees no processes but its own. `$doctor` is
    the command."""
    environment = os.environ | {"doctor": shlex.join(_ALONE)}
    command = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script]

    def run() -> Answer:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            cwd=_TREE,
            timeout=_HANG_S,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return made.run(run)


def mtu(made: World) -> int:
    def read() -> int:
        with IPRoute() as route:
            link = route.get_links(route.link_lookup(ifname="n0")[0])
            return int(next(iter(link)).get_attr("IFLA_MTU"))

    return made.run(read)


def test_the_verdict_names_what_is_wrong_why_and_the_fix(made: World) -> None:
    made.sysctl("ipv4/tcp_sack", "0")
    made.sysctl("ipv4/tcp_window_scaling", "0")
    answer = doctor(made, "--only", "tcp")
    assert answer.status == 1
    text = answer.output
    assert "tcp.sack: net.ipv4.tcp_sack = 0; good is 1" in text
    assert ALL["tcp.sack"].why in " ".join(text.split())
    assert "sysctl -w net.ipv4.tcp_sack='1'" in text
    assert text.index("tcp.window_scaling") < text.index("tcp.sack")
    assert "2 findings" in text


def test_one_of_something_is_not_many(made: World) -> None:
    made.sysctl("ipv4/tcp_sack", "0")
    FAULTS["link.mtu"].plant(made)
    words = ("-i", "n0", "--only", "link.mtu")
    assert "1 looked at: 1 finding, 0 good" in doctor(made, "--only", "tcp.sack").output
    told = doctor(made, "fix", "--dry-run", *words).errors
    assert "left to a run by --interrupting, which interrupts the link: 1 fix\n" in told
    assert (counted(2, "fix", "fixes"), counted(0, "finding")) == ("2 fixes", "0 findings")


def test_a_clean_node_ends_with_status_0(made: World) -> None:
    answer = doctor(made, "--only", "tcp.sack", "--only", "offloads", "-i", "n0")
    assert (answer.status, answer.errors) == (0, "")


def test_json_holds_what_a_machine_needs(made: World) -> None:
    FAULTS["offloads.tso"].plant(made)
    answer = doctor(made, "--only", "offloads.tso", "-i", "n0", "--json")
    assert answer.status == 1
    told = json.loads(answer.output)
    (outcome,) = told["outcomes"]
    assert (outcome["check"], outcome["interface"], outcome["state"]) == (
        "offloads.tso",
        "n0",
        "bad",
    )
    commands = {change["command"]: change["undo"] for change in outcome["changes"]}
    assert commands["ethtool -K n0 tx-tcp-segmentation on"] == (
        "ethtool -K n0 tx-tcp-segmentation off"
    )
    assert told["interfaces"][0]["kind"] == "veth"


def test_a_missing_interface_is_named_and_the_rest_goes_on(made: World) -> None:
    answer = doctor(made, "-i", "nosuch", "-i", "n0", "--only", "link.mtu", "--only", "tcp.sack")
    assert answer.status == 2
    assert "There is no Ethernet interface nosuch here; there are:" in answer.errors
    assert "2 looked at" in answer.output


def test_a_recorded_tree_gives_the_same_answers(made: World, tmp_path: Path) -> None:
    tree = str(tmp_path / "tree")
    told = [
        json.loads(doctor(made, *arguments, "--json", "--peer", PEER).output)["outcomes"]
        for arguments in (("--record", tree), ("--root", tree))
    ]
    states = [
        {(each["check"], each["interface"]): (each["state"], each["read"]) for each in outcomes}
        for outcomes in told
    ]
    assert len(states[0]) > 100
    differing = {key for key in states[0] if states[0][key][0] != states[1].get(key, [""])[0]}
    # Processes come and go, so that recording all of their files would be a file for each.
    assert differing <= {("jobs.priority", ""), ("interrupts.balancer", "")}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--goal", "speed"), "There is no goal speed"),
        (("--why", "tcp.sak"), "Did you mean tcp.sack"),
        (("--only", "nothing.of.it"), "There is no check nothing.of.it"),
        (("--round-trip-ms", "-1"), "no time of a round trip"),
        (("--root", "/nowhere"), "There is no tree at /nowhere"),
        (("--goal", "wan", "undo"), "options before undo say nothing"),
    ],
    ids=lambda value: str(value[0]),
)
def test_bad_arguments_are_told(arguments: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(app, list(arguments))
    assert isinstance(result.exception, BeowireError)
    assert result.exception.code == 2
    assert said in str(result.exception)
    assert result.exception.fix


def test_an_error_is_told_without_a_traceback() -> None:
    answer = beowire_cli.beowire("doctor", "--goal", "speed")
    assert answer.status == 2
    assert answer.errors.startswith("beowire: There is no goal speed")
    assert "Traceback" not in answer.errors


def test_fix_asks_shows_fixes_and_undo_puts_back(made: World) -> None:
    def sack() -> str:
        return made.run(_SACK.read_text)

    made.sysctl("ipv4/tcp_sack", "0")
    only = ("fix", "--only", "tcp.sack")
    shown = doctor(made, *only, "--dry-run")
    assert "sysctl -w net.ipv4.tcp_sack='1'" in shown.output
    assert "undo: sysctl -w net.ipv4.tcp_sack='0'" in shown.output
    unasked = doctor(made, *only)
    assert (unasked.status, sack()) == (2, "0\n")
    assert "nobody to ask" in unasked.errors
    done = doctor(made, *only, "--yes")
    assert (done.status, sack()) == (0, "1\n")
    assert "doctor undo" in done.errors
    back = doctor(made, "undo")
    assert (back.status, sack()) == (0, "0\n")
    assert "nothing to undo" in doctor(made, "undo").output


def test_what_lasts_is_written_and_taken_away_again(made: World, tmp_path: Path) -> None:
    made.sysctl("ipv4/tcp_sack", "0")
    FAULTS["link.queue_length"].plant(made)
    FAULTS["napi.threaded"].plant(made)
    names = ("tcp.sack", "link.queue_length", "napi.threaded")
    only = [word for name in names for word in ("--only", name)]
    image = tmp_path / "image"
    assert doctor(made, "persist", "--yes").status == 1
    assert doctor(made, "fix", *only, "-i", "n0", "--yes").status == 0
    etc = image / "etc"
    (etc / "sysctl.d").mkdir(parents=True)
    file = etc / "sysctl.d" / "90-beowire.conf"
    file.write_text("# of someone else\n")
    answer = doctor(made, "persist", "--prefix", str(image), "--yes")
    assert answer.status == 0, answer.errors
    assert "net.ipv4.tcp_sack = 1\n" in file.read_text()
    # This interface has no address that would name it at boot.
    assert "    ip link set n0 txqueuelen 1000\n" in answer.output
    assert "/sys/class/net/n0/threaded" in "".join(
        each.read_text() for each in etc.rglob("*.conf") if "sysctl.d" not in str(each)
    )
    assert doctor(made, "undo").status == 0
    assert file.read_text() == "# of someone else\n"
    assert [each for each in etc.rglob("*") if each.is_file()] == [file]
    assert made.run(_SACK.read_text) == "1\n"


def test_what_lasts_can_be_taken_away_after_a_reboot(made: World, tmp_path: Path) -> None:
    """The first network namespace may have another number by then."""
    made.sysctl("ipv4/tcp_sack", "0")
    image = tmp_path / "image"
    assert doctor(made, "fix", "--only", "tcp.sack", "--yes").status == 0
    assert doctor(made, "persist", "--prefix", str(image), "--yes").status == 0
    (file,) = (image / "etc/sysctl.d").iterdir()
    for each in (tmp_path / "state" / "doctor").glob("*.journal"):
        head, _, rest = each.read_text().partition("\n")
        earlier = json.loads(head) | {"boot": "another", "network": "net:[1]"}
        each.write_text(f"{json.dumps(earlier)}\n{rest}")
    tree = tmp_path / "tree"
    (tree / "answers").mkdir(parents=True)
    assert "nothing to undo" in doctor(made, "undo", "--root", str(tree)).output
    answer = doctor(made, "undo", "--all")
    assert answer.status == 0, answer.errors
    assert not file.exists()
    assert "of other network namespaces or trees: 1 undo file" in answer.errors
    assert made.run(_SACK.read_text) == "1\n"


def test_a_namespace_does_not_change_its_machine(made: World, tmp_path: Path) -> None:
    """The machine's own settings are written nowhere here: they are refused before."""
    answer = doctor(made, "fix", "--only", "kernel.autogroup", "--only", "memory", "--dry-run")
    assert "sysctl -w vm." not in answer.output
    assert "sysctl -w kernel." not in answer.output
    made.sysctl("ipv4/tcp_sack", "0")
    assert doctor(made, "fix", "--only", "tcp.sack", "--yes").status == 0
    lasting = doctor(made, "persist", "--dry-run")
    assert (lasting.status, lasting.output) == (2, "")
    assert "whole machine" in lasting.errors
    image = doctor(made, "persist", "--dry-run", "--prefix", str(tmp_path))
    assert image.status == 0


def test_a_damaged_undo_file_does_not_block_the_others(made: World, tmp_path: Path) -> None:
    made.sysctl("ipv4/tcp_sack", "0")
    assert doctor(made, "fix", "--only", "tcp.sack", "--yes").status == 0
    damaged = tmp_path / "state" / "doctor" / "000007.journal"
    damaged.write_text("{]\n")
    answer = doctor(made, "undo")
    assert (answer.status, made.run(_SACK.read_text)) == (1, "0\n")
    assert f"{damaged} is damaged" in answer.errors
    assert damaged.exists()


_INTERRUPTING = "$doctor fix --interrupting --only link.mtu -i n0 --yes"


def test_an_interrupted_link_is_confirmed_by_a_peer_that_answers(made: World) -> None:
    FAULTS["link.mtu"].plant(made)
    answer = alone(made, f"{_INTERRUPTING} --peer {PEER}")
    assert answer.status == 0, answer.errors
    assert "the changes stay" in answer.errors
    assert mtu(made) == 9000


def test_a_peer_that_answers_to_short_packets_alone_confirms_no_mtu(
    made: World, tmp_path: Path
) -> None:
    """Somebody who knows better does."""
    FAULTS["link.mtu"].plant(made)
    FAULTS["path.mtu"].plant(made)
    said = tmp_path / "said"
    script = (
        f"{_INTERRUPTING} --peer {PEER} 2>{said} & fix=$!; "
        f"until grep -q 'doctor confirm' {said}; do kill -0 $fix || exit 3; sleep 0.05; done; "
        "$doctor confirm && wait $fix"
    )
    answer = alone(made, script)
    assert answer.status == 0, said.read_text()
    told = " ".join(said.read_text().split())
    assert f"{PEER} answers, but not to packets of the MTU 9000: of 1500 bytes they pass" in told
    assert mtu(made) == 9000


@pytest.mark.parametrize("of", ["rx", ""], ids=["one", "all"])
def test_refusals_of_what_interrupts_end_with_status_1(
    of: str, made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing was changed nobody is asked, and nothing is taken back."""
    FAULTS["rings.receive"].plant(made)
    FAULTS["rings.send"].plant(made)

    def refuse(what: str) -> None:
        if what.endswith(of):
            raise OSError(95, "Operation not supported", what)

    def fix() -> int:
        done = examine(made.node(), [ALL["rings.receive"], ALL["rings.send"]], ["nic0"])
        outcomes = done.findings()
        assert len(outcomes) == 2
        try:
            fix_cli._apply_guarded(done.node, outcomes, 60.0, yes=True)
        except typer.Exit as end:
            return end.exit_code
        return 0

    asked: list[bool] = []

    def reached(*_: object) -> bool:
        asked.append(True)
        return True

    monkeypatch.setattr(fix_cli, "_reached", reached)
    monkeypatch.setattr(guard, "start", lambda *_: None)
    made.source.before_write = refuse
    assert made.run(fix) == 1
    assert asked == ([True] if of else [])
    (past,) = journal.pending()
    assert journal.is_confirmed(past.path)


@pytest.mark.long
def test_an_interrupted_link_is_taken_back_when_nobody_confirms(made: World) -> None:
    FAULTS["link.mtu"].plant(made)
    back = "until ip link show n0 | grep -q 'mtu 1500'; do sleep 0.1; done"
    answer = alone(made, f"{_INTERRUPTING} --peer 10.9.9.77 --within 3; s=$?; {back}; exit $s")
    assert answer.status == 1
    assert "taken back" in answer.errors
    assert "done: link.mtu n0" in answer.output
    assert mtu(made) == 1500


def test_the_guard_outlives_a_fix_that_is_killed(made: World) -> None:
    FAULTS["link.mtu"].plant(made)
    script = (
        f"{_INTERRUPTING} --within 10 & fix=$!; "
        "until ip link show n0 | grep -q 'mtu 9000'; do sleep 0.05; done; kill -9 $fix; "
        "until ip link show n0 | grep -q 'mtu 1500'; do sleep 0.1; done"
    )
    assert alone(made, script).status == 0
    assert mtu(made) == 1500


@pytest.mark.long
def test_another_terminal_can_confirm(made: World) -> None:
    FAULTS["link.mtu"].plant(made)
    script = (
        f"{_INTERRUPTING} --within 60 & fix=$!; "
        "until ip link show n0 | grep -q 'mtu 9000'; do sleep 0.05; done; "
        "$doctor confirm && wait $fix"
    )
    answer = alone(made, script)
    assert answer.status == 0, answer.errors
    assert mtu(made) == 9000


def test_a_link_is_not_interrupted_while_a_job_runs(made: World) -> None:
    FAULTS["link.mtu"].plant(made)
    begun = "until grep -q COMM_WORLD_RANK /proc/$!/environ; do sleep 0.05; done"
    job = f"OMPI_COMM_WORLD_RANK=3 sleep 1000 & {begun}"
    script = f"{job}; {_INTERRUPTING}; s=$?; kill $!; exit $s"
    answer = alone(made, script)
    assert answer.status == 2
    assert "Jobs run here: sleep (" in answer.errors
    assert mtu(made) == 1500


def test_without_root_all_is_judged_but_what_needs_it(made: World) -> None:
    def as_nobody() -> dict[str, str]:
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setgid(_NOBODY)
                os.setuid(_NOBODY)
                done = examine(Node(Source(), Goal.LATENCY), ALL.values(), ["n0"])
                told = {each.subject: each.state for each in done.outcomes}
                os.write(write_end, json.dumps(told).encode())
            finally:
                os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end) as answer:
            told = json.loads(answer.read() or "{}")
        os.waitpid(child, 0)
        return told

    told = made.run(as_nobody)
    assert len(told) > 100
    assert State.FAILED not in told.values()
    assert told["netfilter.rules"] == State.DENIED
    assert told["offloads.tso n0"] == State.GOOD
    assert sum(state == State.DENIED for state in told.values()) < 10


def test_every_check_is_listed_and_explained() -> None:
    from beowire.doctor import report

    listed = beowire_cli.beowire("doctor", "--list").output.splitlines()
    assert [line.split()[0] for line in listed] == list(ALL)
    for check in ALL.values():
        text = report.explained(check)
        assert check.title in text
        assert check.sources[0] in " ".join(text.split())
    answer = beowire_cli.beowire("doctor", "--why", "link.eee")
    assert answer.output.strip() == report.explained(ALL["link.eee"])


def test_watching_tells_what_comes_goes_and_is_lost(made: World) -> None:
    """Three looks at a node that changes in between."""
    looks = []
    for missed, sack in ((2, "0"), (2, "1"), (6, "1")):
        made.sysctl("ipv4/tcp_sack", sack)
        made.good.links = copy.deepcopy(made.good.links)
        made.good.link("nic0")["counters"]["rx_missed_errors"] = missed
        looks.append(made.examine("tcp.sack", "rings.lost"))
    assert [(each.kind, each.subject) for each in watch.first(looks[0])] == [("found", "tcp.sack")]
    assert [(each.kind, each.subject) for each in watch.between(looks[0], looks[1])] == [
        ("gone", "tcp.sack")
    ]
    assert watch.between(looks[1], looks[2]) == [
        watch.Event("lost", "rings.lost nic0", "4 rx_missed_errors")
    ]
    vanished = copy.copy(looks[0])
    vanished.outcomes = []
    assert [(each.kind, each.subject) for each in watch.between(looks[0], vanished)] == [
        ("unseen", "tcp.sack")
    ]
    (back,) = watch.between(looks[1], looks[0])
    assert (back.kind, back.subject) == ("new", "tcp.sack")


def test_the_command_watches(made: World) -> None:
    made.sysctl("ipv4/tcp_sack", "0")
    answer = doctor(made, "watch", "--only", "tcp.sack", "--looks", "2", "--every", "0.1", "--json")
    (event,) = map(json.loads, answer.output.splitlines())
    assert (answer.status, event["kind"], event["subject"]) == (0, "found", "tcp.sack")
