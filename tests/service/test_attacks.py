# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What an unprivileged user tries with the packet socket that beowired gave him, and with the
service itself: each attempt is refused or has no effect, and frames that do not pass are counted.
"""

import contextlib
import ctypes
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import user_net
from served import (
    OTHER,
    POLICY,
    STRANGER,
    USER,
    Service,
    attack,
    attacking,
    client,
    hooked,
    served,
)
from test_spares import await_ready
from user_actor import ACKED, actor

MARK = b"beowire attack"
QUIET_LOOKS = 5
"""In a row, at what a service holds, between which nothing changes."""


@contextlib.contextmanager
def listening(node: str) -> Iterator[socket.socket]:
    """A tap on a node's interface: all frames that come there."""
    before = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{node}", os.O_RDONLY)
    libc = ctypes.CDLL(None)
    assert libc.setns(there, 0) == 0
    try:
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        tap.bind(("eth0", 3))
    finally:
        assert libc.setns(before, 0) == 0
        os.close(there)
        os.close(before)
    with tap:
        yield tap


def marked(tap: socket.socket) -> list[bytes]:
    """Frames with the mark in them that have come, up to the last one, which ends with "end"."""
    found = []
    tap.settimeout(60)
    while True:
        frame = tap.recv(65536)
        if MARK in frame:
            found.append(frame)
            if frame.endswith(b"end"):
                return found


FORGE = """
import time
e = Endpoint()
to = b"\\2\\0\\0\\0\\0\\x99"
bad = [
    dict(mac=b"\\2\\0\\0\\0\\0\\1"), dict(ethertype=0x0800), dict(ethertype=0x8100),
    dict(src=e.engine ^ 1), dict(cluster=CLUSTER ^ 1), dict(magic=0x0ABE),
]
for bypass in (1, 0):
    e.socket.setsockopt(SOL_PACKET, 20, bypass)
    for each in bad:
        frame = e.frame(to, rest=b"beowire attack", **each)
        e.socket.send(frame)
        e.socket.sendto(frame, ("eth0", each.get("ethertype", 3)))
    for group in (b"\\xff" * 6, b"\\1\\0\\0\\0\\0\\1"):
        e.socket.send(e.frame(group, rest=b"beowire attack"))
    e.socket.send(e.frame(to, rest=b"beowire attack")[:45])
e.socket.setsockopt(SOL_PACKET, 20, 1)
e.socket.send(e.frame(to, rest=b"beowire attack end"))
time.sleep(0.2)
told(dict(lo=errno_of(e.socket.sendto, e.frame(to), ("lo", 3)), engine=e.engine))
"""


def test_no_frame_is_forged(service: Service, nodes: tuple[str, str]) -> None:
    """Whether it passes the queueing discipline by or not, and whatever address it is given."""
    with listening(nodes[1]) as tap, listening(nodes[0]) as own:
        said = attack(service, FORGE)
        assert len(marked(tap)) == 1
        own.settimeout(0.1)
        with contextlib.suppress(TimeoutError):
            while True:
                frame = own.recv(65536)
                assert MARK not in frame or frame.endswith(b"end")
    assert said["lo"] == "ENETDOWN"
    wanted = {
        "mac": 4,
        "ethertype": 8,
        "engine": 4,
        "cluster": 4,
        "magic": 4,
        "group": 4,
        "short": 2,
        "offload": 0,
        "socket": 0,
    }
    until = time.monotonic() + 60
    while (drops := service.drops()) != wanted:  # another processor may count later
        assert time.monotonic() < until, drops


CHANGE = """
import fcntl
import mmap
e = Endpoint()
s = e.socket
def option(level, number, value):
    return errno_of(s.setsockopt, level, number, value)
nothing = struct.pack("HxxxxxxP", 1, 0)
ring = struct.pack("IIII", 65536, 1, 2048, 32)
mine = mmap.mmap(s.fileno(), e.answer.block_bytes * e.answer.blocks)
mine.close()
told(dict(
    bind=errno_of(s.bind, ("eth0", 3)), bind_lo=errno_of(s.bind, ("lo", 0x88B5)),
    attach=option(1, 26, nothing), detach=option(1, 27, 0), unlock=option(1, 44, 0),
    attach_bpf=option(1, 50, 0),
    fanout=option(SOL_PACKET, 18, 1), fanout_own=option(SOL_PACKET, 18, 0x10000000),
    fanout_data=option(SOL_PACKET, 22, nothing),
    rx_ring=option(SOL_PACKET, 5, ring), tx_ring=option(SOL_PACKET, 13, ring),
    no_ring=option(SOL_PACKET, 5, bytes(16)),
    version=option(SOL_PACKET, 10, 2), reserve=option(SOL_PACKET, 12, 1 << 20),
    vnet=option(SOL_PACKET, 15, 1), loss=option(SOL_PACKET, 14, 1),
    namespace=errno_of(fcntl.ioctl, s.fileno(), 0x894C, 0),
    mark=option(1, 36, 1), force=option(1, 32, 1 << 30),
    down=errno_of(fcntl.ioctl, s.fileno(), 0x8914, struct.pack("16sh22x", b"eth0", 0)),
    raw=errno_of(socket.socket, socket.AF_PACKET, socket.SOCK_RAW, 0),
))
"""


def test_the_socket_cannot_be_changed(service: Service) -> None:
    """Its binding, its filter, its group and its rings, even when nobody else has them mapped."""
    assert attack(service, CHANGE) == {
        "bind": "EINVAL",
        "bind_lo": "EINVAL",
        "attach": "EPERM",
        "detach": "EPERM",
        "unlock": "EPERM",
        "attach_bpf": "EPERM",
        "fanout": "EALREADY",
        "fanout_own": "EALREADY",
        "fanout_data": "EINVAL",
        "rx_ring": "EBUSY",
        "tx_ring": "EBUSY",
        "no_ring": "EBUSY",
        "version": "EBUSY",
        "reserve": "EBUSY",
        "vnet": "EBUSY",
        "loss": "EBUSY",
        "namespace": "EPERM",
        "mark": "EPERM",
        "force": "EPERM",
        "down": "EPERM",
        "raw": "EPERM",
    }


SNIFF = """
import mmap, select, time
e = Endpoint()
refused = []
for index in range(1, 8):
    for kind in (1, 2):  # promiscuous, all multicast
        errno_of(e.socket.setsockopt, SOL_PACKET, 1, struct.pack("iHH8x", index, kind, 0))
ring = mmap.mmap(e.socket.fileno(), e.answer.block_bytes * e.answer.blocks)
print(json.dumps(e.engine), flush=True)
sys.stdin.readline()
e.socket.settimeout(0.3)
print(json.dumps(dict(
    ring=bytes(ring).count(b"beowire attack"), slots=struct.unpack_from("I", ring)[0],
    ready=bool(select.select([e.socket], [], [], 0)[0]),
    queue=errno_of(e.socket.recv, 100),
)), flush=True)
"""


def test_nothing_of_others_is_seen(service: Service, nodes: tuple[str, str]) -> None:
    """Neither what comes for another user's endpoint, nor what it sends, nor other protocols."""
    with (
        attacking(service, SNIFF) as sniffer,
        client(service, OTHER) as victim,
        actor(nodes[1], "peer", BEOWIRE_LINKS="packet") as peer,
    ):
        assert sniffer.hear() > 0
        victim.addr, peer.addr = victim.open(), peer.open()  # type: ignore[attr-defined]
        to_victim, to_peer = peer.find(victim.addr), victim.find(peer.addr)  # type: ignore[attr-defined]
        for tag in range(20):
            peer.send(to_victim, tag=tag, length=400, flags=ACKED, op=tag)
            victim.send(to_peer, tag=tag, length=400, flags=ACKED, op=tag)
            assert victim.expect("message", tag=tag)["ok"]
            assert peer.expect("message", tag=tag)["ok"]
        with listening(nodes[1]) as tap:
            for protocol in (0x88B5, 0x0800, 0x86DD):
                tap.send(b"\xff" * 6 + b"\2" * 6 + protocol.to_bytes(2, "big") + MARK + b"\0" * 50)
        sniffer.go_on()
        seen = sniffer.hear()
        assert seen == {"ring": 0, "slots": 0, "ready": False, "queue": "timed out"}
        assert "promiscuity 0" in user_net.ip(f"-n {nodes[0]} -d link show eth0")


LEAK = """
import os, time
e = Endpoint()
keep = os.fork()
if keep == 0:  # holds the packet socket alone, in a process of its own
    e.connection.close()
    e.claim.close()
    sys.stdin.readline()
    to = b"\\2\\0\\0\\0\\0\\x99"
    for _ in range(3):
        e.socket.send(e.frame(to, rest=b"beowire attack"))
    print(json.dumps("sent"), flush=True)
    sys.stdin.readline()
    e.socket.settimeout(0.2)
    print(json.dumps(errno_of(e.socket.recv, 100)), flush=True)
    os._exit(0)
print(json.dumps(e.engine), flush=True)
e.connection.close()
e.claim.close()
e.socket.close()
os.waitpid(keep, 0)
"""


def test_a_leaked_socket_is_of_no_use(service: Service, nodes: tuple[str, str]) -> None:
    """Its number stays taken and its memory charged until nobody has it; it sends nothing, and
    gets nothing that comes for its number."""
    with attacking(service, LEAK) as leak, listening(nodes[1]) as tap:
        engine = leak.hear()
        service.await_line(f"engine={engine}")
        service.await_line("closed uid=")
        leak.go_on()
        assert leak.hear() == "sent"
        service.await_drops("socket", 3)
        assert service.counts()["living"] == 1  # lingers
        again = attack(
            service,
            "e = Endpoint(int(sys.argv[2]))\ntold([e.answer.error, e.answer.text])",
            str(engine),
            user=OTHER,
        )
        assert again == [-98, f"engine number {engine} is taken on this node"]
        own = bytes.fromhex(
            user_net.ip(f"-n {nodes[0]} -o link show eth0")
            .split("link/ether ")[1][:17]
            .replace(":", "")
        )
        frame = own + b"\2" * 6 + b"\x88\xb5" + b"\x0a\xbe\2\1" + b"\0" * 4
        tap.send(frame + int(engine).to_bytes(2, "little") + MARK + b"\0" * 50)
        leak.go_on()
        assert leak.hear() == "timed out"
    service.await_living(0)


def test_a_socket_passed_to_another_user_keeps_its_rights_only(
    service: Service, nodes: tuple[str, str]
) -> None:
    """He can speak for the endpoint that he was given, and for no other."""
    code = """
import os, time
e = Endpoint()
os.set_inheritable(e.socket.fileno(), True)
to = b"\\2\\0\\0\\0\\0\\x99"
other = e.frame(to, rest=b"beowire attack", src=e.engine ^ 1)
good = e.frame(to, rest=b"beowire attack end")
child = f"import socket; s = socket.socket(fileno={e.socket.fileno()})"
child += f"; s.send({other!r}); s.send({good!r})"
import subprocess
done = subprocess.run([sys.executable, "-c", child], pass_fds=[e.socket.fileno()])
time.sleep(0.2)
told(done.returncode)
"""
    with listening(nodes[1]) as tap:
        assert attack(service, code) == 0
        assert len(marked(tap)) == 1
    service.await_drops("engine", 1)


def test_numbers_of_others_are_not_given(service: Service, nodes: tuple[str, str]) -> None:
    """Neither by a claim that is not there, nor one in another namespace, nor another's."""
    theft = """
import os
result = []
number = int(sys.argv[2])
mine, own = claim()
pipe = os.pipe()
for descriptor in (mine.fileno(), pipe[0], 0):
    c = call()
    say(c, request(number), descriptor)
    result.append(Answer(c).text)
told(result)
"""
    elsewhere = """
mine, number = claim(int(sys.argv[2]))
c = call()
say(c, request(number), mine.fileno())
told(Answer(c).text)
"""
    with actor(nodes[0], "root", BEOWIRE_LINKS="packet,local") as root:
        root.open()
        number = str(root.stats()["engine"])
        not_held = f"engine number {number} is not held by this process"
        assert attack(service, theft, number) == [not_held] * 3
        taken = f"engine number {number} is taken on this node"
        unshare = ["unshare", "--user", "--net"]
        assert attack(service, elsewhere, number, within=unshare) == taken


NAMESAKES = """
number = int(sys.argv[2])
texts = []
def ask(descriptor, number):
    c = call()
    say(c, request(number), descriptor)
    texts.append(Answer(c).text)
for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
    made = socket.socket(socket.AF_UNIX, kind)
    made.bind(f"\\0beowire.{number}")
    ask(made.fileno(), number)
listener, own = claim()
listener.listen()
caller = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
caller.connect(f"\\0beowire.{own}")
accepted = listener.accept()[0]
ask(accepted.fileno(), own)
listener.close()
ask(accepted.fileno(), own)
caller.close()
ask(accepted.fileno(), own)
again, _ = claim(own)
ask(accepted.fileno(), own)
ask(again.fileno(), own)
told([own, texts])
"""


def test_a_name_alone_claims_no_number(service: Service, nodes: tuple[str, str]) -> None:
    """Neither a socket of another type under the name, nor a connection that was accepted by who
    had it once: the number may be another's by now."""
    with actor(nodes[0], "root", BEOWIRE_LINKS="packet,local") as root:
        root.open()
        number = root.stats()["engine"]
        own, texts = attack(service, NAMESAKES, str(number))
    not_held = "engine number {} is not held by this process"
    assert texts[:2] == [not_held.format(number)] * 2
    assert texts[2:6] == [not_held.format(own)] * 4
    assert texts[6] == ""  # the socket that is bound


def test_no_user_takes_more_than_his_share(nodes: tuple[str, str]) -> None:
    """Endpoints, memory, and attempts; others get theirs all the same."""
    policy = POLICY + "endpoints = 3\nring-memory = 4M\n"
    code = """
made = [Endpoint(ring=int(sys.argv[2])) for _ in range(int(sys.argv[3]))]
told([[e.answer.kind, e.answer.text] for e in made])
"""
    often = """
calls = [call() for _ in range(60)]
told([Answer(c).text for c in calls])
"""
    with served(nodes[0], policy) as service:
        said = attack(service, code, str(1 << 20), "4")
        assert [kind for kind, _ in said] == [3, 3, 3, 4]
        assert said[3][1].startswith(f"user {USER} has 3 endpoints, and may have no more; fix:")
        service.await_living(0)
        said = attack(service, code, str(2 << 20), "3")
        assert [kind for kind, _ in said] == [3, 3, 4]
        assert said[2][1].startswith(f"rings of user {USER} take 4 MiB, and a further one of 2")
        service.await_living(0)
    with served(nodes[0], POLICY + "attempts = 1\n") as service:
        said = attack(service, often)
        assert any(text.startswith(f"user {USER} asks more than 1 times") for text in said)
        assert attack(service, "told(Endpoint().answer.kind)", user=OTHER) == 3
        service.await_living(0)


HOLD = """
made = [Endpoint() for _ in range(int(sys.argv[2]))]
told([[e.answer.kind, e.answer.text] for e in made])
sys.stdout.flush()
sys.stdin.readline()
"""
SUBUIDS = f"""
# comments, {OTHER}:{STRANGER}:1
{USER}:100000:65536
{USER}:0:1
{OTHER}:300000
{OTHER}:300000:0
{OTHER}:300000:4294967295
{OTHER}:300000:-1
{OTHER}:3e5:1
{OTHER}:300000:1{"0" * 300}
:300000:1
root:{STRANGER}:1
0:{STRANGER}:1
nobody-at-all:200000:10
{OTHER}:400000:1"""
"""What the service believes of /etc/subuid: three ranges."""
ASK = "e = Endpoint()\ntold([e.answer.kind, e.answer.text])"


def test_no_user_takes_more_by_further_numbers(nodes: tuple[str, str], tmp_path: Path) -> None:
    """His range of subordinate numbers is his; that of somebody unknown is one user's."""
    file = tmp_path / "subuid"
    file.write_text(SUBUIDS)
    within = hooked(tmp_path, BEOWIRE_HOOK_SUBUIDS=str(file))
    policy = "users = *\ninterfaces = eth0\nendpoints = 2\n"
    with served(nodes[0], policy, within) as service:
        for first, others, owner in (
            (100005, (100000, 165535, USER), USER),
            (200000, (200009,), 200000),
            (OTHER, (400000,), OTHER),
        ):
            with attacking(service, HOLD, user=first, words=["2"]) as holder:
                assert [kind for kind, _ in holder.hear()] == [3, 3]
                for user in others:
                    kind, text = attack(service, ASK, user=user)
                    assert kind == 4, user
                    assert text.startswith(f"user {owner} has 2 endpoints, and may have no more")
                for user in (99999, 165536, 199999, 200010, 300000, STRANGER):
                    assert attack(service, ASK, user=user)[0] == 3, user
            service.await_living(0)


def test_who_is_allowed_is_so_under_all_his_numbers(nodes: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "subuid"
    file.write_text(SUBUIDS)
    within = hooked(tmp_path, BEOWIRE_HOOK_SUBUIDS=str(file))
    with served(nodes[0], f"users = {USER}, 200003\ninterfaces = eth0\n", within) as service:
        allowed = {
            user: attack(service, ASK, user=user)[0] == 3
            for user in (USER, 100000, 165535, 165536, 200003, 200004, 400000)
        }
        assert [user for user, is_so in allowed.items() if is_so] == [USER, 100000, 165535, 200003]


def test_a_file_of_ranges_without_end_is_bounded(nodes: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "subuid"
    file.write_text("".join(f"{USER}:{100000 + i}:1\n" for i in range(10000)))
    within = hooked(tmp_path, BEOWIRE_HOOK_SUBUIDS=str(file))
    with served(nodes[0], POLICY, within) as service:
        service.await_line("/etc/subuid is too long")
        assert attack(service, ASK, user=100000)[0] == 3
        assert attack(service, ASK, user=109999)[0] == 4
        file.write_text(f"{USER}:{109999}:1\n")
        service.process.send_signal(signal.SIGHUP)
        service.await_line("the policy was read anew")
        assert attack(service, ASK, user=109999)[0] == 3


def test_all_users_take_no_more_than_the_total(nodes: tuple[str, str]) -> None:
    code = "e = Endpoint(ring=2 << 20)\ntold([e.answer.kind, e.answer.text])"
    with served(nodes[0], POLICY + "ring-memory-total = 3M\n") as service:
        with attacking(service, HOLD, words=["2"]) as holder:
            assert [kind for kind, _ in holder.hear()] == [3, 3]
            kind, text = attack(service, code, user=OTHER)
            assert kind == 4
            assert text.startswith("rings of all users take 2 MiB, and a further one of 2 MiB")
            assert attack(service, ASK, user=OTHER)[0] == 3
        service.await_living(0)
        assert attack(service, code, user=OTHER)[0] == 3


def test_the_last_places_are_for_who_has_few(nodes: tuple[str, str]) -> None:
    with served(nodes[0], POLICY, ["prlimit", "--nofile=192"]) as service:
        service.await_line("for up to 32 endpoints")
        with attacking(service, HOLD, words=["31"]) as holder:
            assert [kind for kind, _ in holder.hear()] == [3] * 30 + [4]
            assert attack(service, ASK, user=OTHER)[0] == 3
        service.await_living(0)


def test_a_user_of_many_groups_is_in_all_of_them(nodes: tuple[str, str]) -> None:
    """More than the service asks for at first; as root, since others cannot join groups."""
    code = """
import os
os.setgroups([*range(4000, 4000 + int(sys.argv[2])), 60000])
os.setgid(3000)
os.setuid(2000)
told(Endpoint().answer.kind)
"""
    with served(nodes[0], "groups = 60000\ninterfaces = eth0\n") as service:
        for groups in ("3", "255", "256", "5000"):
            assert attack(service, code, groups, user=0) == 3, groups


def test_nobody_writes_lines_of_the_log(service: Service) -> None:
    """Neither by a name of an interface nor by what the policy says."""
    code = r"""
texts = []
for name in (b"\n<0>go home!!", b"a\x1b[31m", b"a b", b"\x7f"):
    held, number = claim()
    c = call()
    say(c, request(number, interface=name), held.fileno())
    texts.append(Answer(c).text)
told(texts)
"""
    assert attack(service, code) == ["that is no request"] * 4
    service.policy.write_text("a\x1b[31m\a = 1\n")
    service.process.send_signal(signal.SIGHUP)
    assert "'a?[31m?'" in service.await_line("there is no key")
    assert all(line.startswith("beowired: ") for line in service.lines())


def descriptors(service: Service) -> int:
    """How many sockets the service has open: those that it listens and speaks by, and those that
    it has made or keeps ready; and how many pipes, which come with requests."""
    count = 0
    for each in Path(f"/proc/{service.process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            count += str(each.readlink()).startswith(("socket:", "pipe:"))
    return count


def at_rest(service: Service) -> int:
    """The same, once the sockets that are kept ready have been made, and nothing changes."""
    await_ready(service)
    seen: list[int] = []
    while len(seen) < QUIET_LOOKS or len(set(seen[-QUIET_LOOKS:])) > 1:
        seen.append(descriptors(service))
        time.sleep(0.02)
    return seen[-1]


def await_rest(service: Service, before: int) -> None:
    """Until it has as many as before: what has ended is closed soon."""
    until = time.monotonic() + 60
    while (now := at_rest(service)) != before:
        assert time.monotonic() < until, (now, before)
        time.sleep(0.05)


def test_silence_and_nonsense_cost_nothing(service: Service) -> None:
    """Who says nothing is hung up on; what is no request is refused; no descriptor is kept."""
    code = """
import os
held, number = claim()
pipes = [os.pipe() for _ in range(20)]
flat = [fd for pair in pipes for fd in pair]
f = held.fileno()
good = request(number)
bad = [
    (b"x", ()), (good, ()), (good[:-1], (f,)), (good + b"x", (f,)), (b"\\0" * 40, (f,)),
    (good * 100, (f,)), (good, (f, f)), (good, flat), (b"", flat[:3]),
    (request(number, magic=1), (f,)), (request(number, kind=2), (f,)),
    (request(number, zero=1), (f,)), (request(number, interface=b"e" * 16), (f,)),
    (request(number, interface=b"e\\0e"), (f,)), (request(number, interface=b"eth7"), (f,)),
    (request(7), (f,)), (request(number, ring=0), (f,)), (request(number, ring=1 << 31), (f,)),
    (request(number, ring=0xFFFFFFFF), (f,)), (request(number, ethertype=0x0800), (f,)),
    (request(number, version=0), (f,)), (request(number, version=2), (f,)),
]
kinds = []
for data, rights in bad:
    c = call()
    say(c, data, *rights)
    kinds.append(Answer(c).kind)
    c.close()
silent = [call() for _ in range(30)]
kinds += [Answer(c).kind for c in silent]
told(kinds)
"""
    before = at_rest(service)
    said = attack(service, code)
    assert set(said) == {4}
    service.await_living(0)
    await_rest(service, before)
    assert "no request came within a second" in service.log.read_text()


def test_races_leave_nothing_behind(service: Service) -> None:
    """Clients that end at any moment, while their sockets are made."""
    code = """
import time
for i in range(150):
    held, number = claim()
    c = call()
    say(c, request(number), held.fileno())
    time.sleep(random.random() * 0.03)
    c.close()
    held.close()
told(True)
"""
    before = at_rest(service)
    assert attack(service, code)
    service.await_living(0)
    await_rest(service, before)
    assert attack(service, "told(Endpoint().answer.kind)") == 3


def test_strangers_are_refused_before_they_speak(service: Service) -> None:
    said = attack(service, "c = call()\ntold(Answer(c).text)", user=STRANGER)
    assert said.startswith(f"user {STRANGER} may have no endpoints")
    attack(service, "for _ in range(300):\n    call().close()\ntold(1)", user=STRANGER)
    assert attack(service, "told(Endpoint().answer.kind)") == 3
    # So many lines of the log are enough.
    assert service.log.read_text().count(f"refused uid={STRANGER}") < 300


def test_the_service_itself_has_few_rights(service: Service) -> None:
    """In each of its threads: CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF, and a filter of calls."""
    tasks = list(Path(f"/proc/{service.process.pid}/task").iterdir())
    assert len(tasks) > 1
    for task in tasks:
        status = dict(
            line.split(":\t", 1)
            for line in (task / "status").read_text().splitlines()
            if "\t" in line
        )
        assert int(status["CapPrm"], 16) == int(status["CapBnd"], 16) == 1 << 12 | 1 << 13 | 1 << 39
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
