# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The cluster's key, which the service has from root and gives to those who may have endpoints."""

import contextlib
import errno
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from beowire import places
from served import (
    OTHER,
    POLICY,
    STRANGER,
    USER,
    Service,
    as_user,
    attack,
    client,
    open_directory,
    served,
)
from test_policy import GOOD, UNFIT, beowired
from test_reload import reader, reload
from test_served import (
    PEER,
    await_complaint,
    by_raw_frames,
    exchange,
    is_refused_for_the_dead,
    opened,
)
from user_actor import SYNC, Actor, actor

KEY, ANOTHER = "c0ffee" + "5a" * 29, "0b" * 32
NONE_OF_KEYS = "told([e.answer.kind, e.answer.flags, e.answer.rest[:32].hex()])"
ASK = f"e = Endpoint()\n{NONE_OF_KEYS}"
GIVEN, DENIED = 3, 4
REJECTED = -errno.EKEYREJECTED
KEYED, ENCRYPTS = 1, 2


def key_file(path: Path, digits: str = KEY, mode: int = 0o600) -> Path:
    path.touch(0o600)
    path.write_text(digits + "\n")
    path.chmod(mode)
    return path


@contextlib.contextmanager
def keyed(node: str, more: str = "") -> Iterator[Service]:
    """A service with a key; the file is root's alone, in a directory that all may enter."""
    with open_directory() as directory:
        file = key_file(directory / "key")
        with served(node, f"{POLICY}key = {file}\n{more}") as service:
            yield service


def file_of(service: Service) -> Path:
    (line,) = (x for x in service.policy.read_text().splitlines() if x.startswith("key = "))
    return Path(line.removeprefix("key = "))


def state(one: Actor) -> tuple[bool, bool]:
    """Has it a key, and does it encrypt?"""
    stats = one.stats()
    return bool(stats["keyed"]), bool(stats["encrypted"])


def test_users_have_the_key_of_root(nodes: tuple[str, str]) -> None:
    """Two ordinary users on two nodes, who can read no key: who has none is refused by both."""
    with (
        keyed(nodes[0]) as service,
        keyed(nodes[1]) as other,
        client(service) as one,
        client(other, OTHER) as two,
        actor(nodes[1], "keyless", **PEER) as bare,
    ):
        for each in (one, two, bare):
            opened(each)
        exchange(one, two)
        exchange(one, two, length=500_000, tag=11)
        assert by_raw_frames(one)
        assert by_raw_frames(two)
        assert [state(each) for each in (one, two, bare)] == [(True, False)] * 2 + [(False, False)]
        to_bare = one.find(bare.addr)  # type: ignore[attr-defined]
        one.send(to_bare, tag=21, length=10, flags=SYNC, op=21)
        assert one.expect("sent", op=21)["status"] == REJECTED
        said = f"keyless and user{USER} do not have the same cluster key"
        await_complaint(one, said)
        assert not bare.has_said("message")
        # Its socket is another one afterwards, and its key the same.
        assert service.stop() == 0
        service.start()
        service.await_living(1)
        exchange(one, two, tag=31)


def test_the_key_is_for_who_may_have_endpoints(nodes: tuple[str, str]) -> None:
    with keyed(nodes[0]) as service:
        assert attack(service, ASK) == [GIVEN, KEYED, KEY]
        assert attack(service, ASK, user=STRANGER)[0] == DENIED
        stranger = "e = Endpoint()\ntold(e.answer.rest.hex())"
        assert KEY not in attack(service, stranger, user=STRANGER)
        taken = "e = Endpoint(interface=b'eth7')\ntold([e.answer.kind, e.answer.rest.hex()])"
        kind, rest = attack(service, taken)
        assert kind == DENIED
        assert KEY not in rest
    with served(nodes[0]) as service:
        assert attack(service, ASK) == [GIVEN, 0, "00" * 32]


def test_the_dead_are_refused_with_the_key(nodes: tuple[str, str]) -> None:
    """A peer counts refusals that it believes; others end what is silent for 2 s."""
    with (
        keyed(nodes[0]) as service,
        client(service) as one,
        actor(nodes[1], "peer", BEOWIRE_KEY=str(file_of(service)), **PEER) as peer,
    ):
        is_refused_for_the_dead(service, one, peer)
        assert peer.stats()["refusals_rx"] == 1
        assert service.counts()["told"] >= 1


def test_a_users_own_key_goes_first(nodes: tuple[str, str]) -> None:
    with keyed(nodes[0]) as service:
        own = {}
        for name, digits in (("another", ANOTHER), ("same", KEY)):
            own[name] = key_file(service.directory / name, digits)
            os.chown(own[name], USER, USER)
        with (
            client(service, BEOWIRE_KEY=str(own["another"])) as one,
            actor(nodes[1], "peer", BEOWIRE_KEY=str(own["another"])) as peer,
        ):
            opened(one)
            peer.open_failure()  # the file is another user's
            await_complaint(one, "the key of BEOWIRE_KEY (")
            await_complaint(one, ") is used, not that of beowired (")
        os.chown(own["another"], 0, 0)
        with (
            client(service, BEOWIRE_KEY=str(own["same"])) as one,
            actor(nodes[1], "peer", BEOWIRE_KEY=str(file_of(service)), **PEER) as peer,
        ):
            opened(one)
            opened(peer)
            exchange(one, peer)
            assert "is used, not that of" not in one.complaints


def test_who_encrypts(nodes: tuple[str, str]) -> None:
    with keyed(nodes[0], "encrypt = yes\n") as service:
        assert attack(service, ASK)[1] == KEYED | ENCRYPTS
        wanted = {"BEOWIRE_KEY": str(file_of(service)), "BEOWIRE_ENCRYPT": "1"}
        with client(service) as one, actor(nodes[1], "peer", **wanted, **PEER) as peer:
            opened(one)
            opened(peer)
            assert state(one) == (True, True)
            exchange(one, peer)
        with client(service, BEOWIRE_ENCRYPT="off") as one:
            opened(one)
            assert state(one) == (True, False)
    with keyed(nodes[0]) as service, client(service, BEOWIRE_ENCRYPT="1") as one:
        opened(one)
        assert state(one) == (True, True)
    with served(nodes[0]) as service, client(service, BEOWIRE_ENCRYPT="1") as one:
        assert "BEOWIRE_ENCRYPT is on, and there is no key" in one.open_failure()["why"]


def test_whose_the_key_is_is_told(nodes: tuple[str, str]) -> None:
    with keyed(nodes[0]) as service:
        program = service.directory / "info"
        shutil.copy(places.product("programs/beowire-info"), program)
        program.chmod(0o755)
        own = key_file(service.directory / "own")
        os.chown(own, USER, USER)
        for variables, source in (({}, "beowired"), ({"BEOWIRE_KEY": str(own)}, "BEOWIRE_KEY")):
            named = {"PATH": os.environ["PATH"], "BEOWIRE_SERVICE": str(service.socket)}
            words = ["ip", "netns", "exec", service.node, *as_user(USER), str(program)]
            for more in ([], ["--json"]):
                done = subprocess.run(
                    [*words, *more], capture_output=True, text=True, env={**named, **variables}
                )
                assert done.returncode == 0, done.stderr
                if more:
                    assert json.loads(done.stdout)["key_source"] == source
                else:
                    assert f"Cluster key: by {source}\n" in done.stdout
                assert KEY[:16] not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("digits", "mode", "owner", "says"),
    [
        (KEY, 0o644, 0, "has mode 0644: not only its owner may use it; fix: chmod 600"),
        (KEY, 0o640, 0, "has mode 0640"),
        (KEY, 0o600, USER, f"belongs to user {USER}"),
        (KEY[:-1], 0o600, 0, "holds no key: line 1 has 63 characters"),
        ("zz" + KEY[2:], 0o600, 0, "holds no key: line 1 has a character that is no"),
        ("#", 0o600, 0, "holds no key: there is no line of 64"),
        (None, 0o600, 0, "there is no file "),
    ],
    ids=["read-by-all", "read-by-a-group", "of-a-user", "short", "no-digit", "empty", "missing"],
)
def test_a_bad_key_file_is_told(
    nodes: tuple[str, str], digits: str | None, mode: int, owner: int, says: str
) -> None:
    """The service does not start; one that runs keeps the key that it has."""
    with open_directory() as directory:
        bad = directory / "bad"
        if digits is not None:
            key_file(bad, digits, mode)
            os.chown(bad, owner, owner)
        policy = directory / "conf"
        policy.write_text(f"{GOOD}key = {bad}\n")
        for words in (["--check"], []):
            done = beowired("--policy", str(policy), "--socket", str(directory / "s"), *words)
            assert done.returncode == UNFIT
            assert f"{policy}: key: " in done.stderr
            assert str(bad) in done.stderr
            assert says in done.stderr
            assert "it is to be a file of root's with mode 0600" in done.stderr
            assert KEY[:16] not in done.stderr
        assert not (directory / "s").exists()
        with keyed(nodes[0]) as service:
            good = service.policy.read_text()
            service.policy.write_text(f"{POLICY}key = {bad}\n")
            reload(service, "the policy stays as it is: ")
            # Who reads it then has no right to open the files of others.
            again = "cannot be opened: Permission denied" if owner else says
            assert str(bad) in service.log.read_text()
            assert again in service.log.read_text()
            assert attack(service, ASK) == [GIVEN, KEYED, KEY]
            service.policy.write_text(good)
            key_file(file_of(service), ANOTHER)
            reload(service, "endpoints get the key ")
            assert attack(service, ASK) == [GIVEN, KEYED, ANOTHER]


def test_what_a_policy_may_say_of_it(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    for line, says in (
        ("key = key", "conf:3: key: 'key' is not taken; give the path of a file"),
        ("key = /" + "k" * 127, "is not taken; give the path of a file"),
        ("encrypt = on", "conf:3: encrypt: 'on' is not taken; give yes or no"),
        ("encrypt = yes", "conf: encrypt needs a key; add 'key = FILE'"),
    ):
        file.write_text(f"{GOOD}{line}\n")
        assert says in beowired("--check", "--policy", str(file)).stderr


def times_in_memory(pid: int, digits: str) -> int:
    """How often a process has the key in its memory, as bytes or as digits."""
    times = 0
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            span, rights, *_, name = f"{line} -".split(maxsplit=5)
            if "w" not in rights or "[vv" in name:
                continue
            begin, end = (int(each, 16) for each in span.split("-"))
            memory.seek(begin)
            with contextlib.suppress(OSError):  # a ring of a device
                held = memory.read(end - begin)
                times += held.count(bytes.fromhex(digits)) + held.count(digits.encode())
    return times


def test_the_key_is_in_no_other_place(nodes: tuple[str, str]) -> None:
    """In the service's memory once, not in that of the process that reads policies, not in the log;
    a client has it no more once its endpoint is open, by the service or by a file."""
    with keyed(nodes[0]) as service:
        own = key_file(service.directory / "own", ANOTHER)
        os.chown(own, USER, USER)
        with client(service) as one, client(service, BEOWIRE_KEY=str(own)) as two:
            opened(one)
            opened(two)
            assert state(one) == state(two) == (True, False)
            assert times_in_memory(one.pid, KEY) == 0
            assert times_in_memory(two.pid, KEY) == times_in_memory(two.pid, ANOTHER) == 0
        assert times_in_memory(reader(service), KEY) == 0  # it inherits none
        reload(service, "endpoints get the key ")
        assert times_in_memory(service.process.pid, KEY) == 1
        assert times_in_memory(reader(service), KEY) == 0
        assert KEY[:16] not in service.log.read_text()


@pytest.mark.parametrize("who", ["beowired", "sleep"])
def test_no_core_dump_has_it(nodes: tuple[str, str], who: str) -> None:
    """A process that may dump its core does, and the service does not."""
    with open_directory() as directory:
        allowed = ["sh", "-c", f'cd {directory}; ulimit -c unlimited; exec "$@"', "sh"]
        if who == "sleep":
            process = subprocess.Popen([*allowed, "sleep", "1000"])
            while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n":
                pass
            assert end_of(process) == os.CLD_DUMPED
            return
        file = key_file(directory / "key")
        with served(nodes[0], f"{POLICY}key = {file}\n", allowed) as service:
            assert end_of(service.process) == os.CLD_KILLED


def end_of(process: "subprocess.Popen[bytes]") -> int:
    """How it ends by SIGABRT."""
    process.send_signal(signal.SIGABRT)
    told = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    process.wait()
    assert told is not None
    return told.si_code
