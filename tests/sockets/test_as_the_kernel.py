# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Single calls on connections that go by Beowire do what the kernel does: of each a case that a
random comparison (differ.c) does not come to."""

import pytest
from sockets_net import THERE, Nodes

PORT = 7950
SERVER = f"""
import os, signal, socket, sys, time
listener = socket.create_server(("", {PORT}))
one, orders = listener.accept()[0], listener.accept()[0]
orders.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
while one.recv(1) == b"0":
    one.sendall(b"0")
while order := orders.recv(1):
    if order == b"s":
        one.sendall(bytes(50000))
    elif order == b"4":
        one.sendall(b"half")
        time.sleep(1)
        one.sendall(b"more")
    elif order in b"lm":
        time.sleep(2 if order == b"m" else 1)
        one.sendall(b"late")
    elif order == b"k":
        os.kill(os.getpid(), signal.SIGKILL)
    elif order == b"r":
        orders.sendall(one.recv(100))
"""
CLIENT = f"""
import ctypes, errno, os, select, signal, socket, struct, threading, time
libc = ctypes.CDLL(None, use_errno=True)
way, why = libc.beowire_sockets_way, libc.beowire_sockets_why
why.restype = ctypes.c_char_p
def connect(one):
    one.connect(("{THERE}", {PORT}))
    orders = socket.create_connection(("{THERE}", {PORT}))
    orders.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1) # stays on TCP
    until = time.monotonic() + 60
    while way(one.fileno()) != 3:
        assert time.monotonic() < until
        one.sendall(b"0")
        assert one.recv(1) == b"0"
    one.sendall(b"1")
    return orders
def available(one):
    import fcntl, termios
    room = bytearray(4)
    fcntl.ioctl(one, termios.FIONREAD, room)
    return struct.unpack("i", room)[0]
def soon(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)
def taken(one):
    got = 0
    try:
        while some := one.recv(65536):
            got += len(some)
    except OSError as error:
        return got, error.errno
    return got, 0
def share():
    child = os.fork() # connections are on TCP while it lives
    if not child:
        time.sleep(120)
        os._exit(0)
    return child
"""
CONNECTED = f"""{CLIENT}
one = socket.socket()
orders = connect(one)
"""

RETURNED = f"""{CLIENT}
one = socket.socket()
one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 5000)
orders = connect(one)
one.setblocking(False)
try:
    while one.send(bytes(10000)):
        pass
except BlockingIOError:
    pass
child = share() # on TCP, but for what TCP has no room for
assert not way(one.fileno()) & 2
orders.sendall(b"k")
poller = select.poll()
poller.register(one, 0)
assert poller.poll(60000)
time.sleep(0.5)
one.setblocking(True)
"""

SIGNALS = f"""{CONNECTED}
signal.signal(signal.SIGALRM, lambda *_: None)
def call(name, *words):
    return getattr(libc, name)(*words), ctypes.get_errno()
def alarm(again=0):
    signal.setitimer(signal.ITIMER_REAL, 0.3, again)
nothing, alarms = bytes(128), bytes([0, 1 << 5]) + bytes(126) # sets of signals
"""

CASES = {
    "epoll before connect": f"""{CLIENT}
one, watch = socket.socket(), select.epoll()
watch.register(one, select.EPOLLIN | select.EPOLLET)
orders = connect(one)
while watch.poll(0):
    pass
assert way(one.fileno()) == 3
orders.sendall(b"l")
assert watch.poll(30) == [(one.fileno(), select.EPOLLIN)]
assert one.recv(10) == b"late"
""",
    "threads that wait": f"""{CONNECTED}
def wait():
    poller = select.poll()
    poller.register(one, select.POLLIN)
    poller.poll(10)
def open_now():
    return len(os.listdir("/proc/self/fd"))
before = open_now()
for _ in range(50):
    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()
assert open_now() <= before + 5, (before, open_now())
""",
    "dprintf": f"""{CONNECTED}
assert libc.dprintf(one.fileno(), b"%s %d", b"printed", 7) == 9
orders.sendall(b"r")
assert orders.recv(100) == b"printed 7"
assert way(one.fileno()) & 2
""",
    "a number that is another's": f"""{CONNECTED}
got = []
old = one.fileno()
thread = threading.Thread(target=lambda: got.append(libc.recv(old, bytes(10), 10, 0)))
thread.start()
asleep = f"/proc/self/task/{{thread.native_id}}/syscall"
soon(lambda: open(asleep).read().split()[0] in ("271", "73")) # ppoll() of x86-64 and arm64
a, b = socket.socketpair()
os.dup2(a.fileno(), old) # the connection is closed, and its number is another socket's
b.sendall(b"not for it")
thread.join(30)
assert not thread.is_alive()
assert got == [-1], got
assert os.read(old, 100) == b"not for it"
one.detach()
""",
    "shutdown of reading": f"""{CONNECTED}
orders.sendall(b"s")
soon(lambda: available(one) == 50000)
one.shutdown(socket.SHUT_RD)
got = 0
while some := one.recv(65536):
    got += len(some)
assert got == 50000, got
""",
    "the end of a killed peer, without waiting": f"""{CONNECTED}
orders.sendall(b"k")
until = time.monotonic() + 30
while True:
    assert time.monotonic() < until
    try:
        assert one.recv(1, socket.MSG_DONTWAIT) == b""
        break
    except BlockingIOError:
        pass
    except ConnectionResetError:
        break
""",
    "what came before a peer was killed": f"""{CONNECTED}
orders.sendall(b"s")
soon(lambda: available(one) == 50000)
orders.sendall(b"k")
soon(lambda: one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)[0] == 8) # CLOSE_WAIT
one.send(bytes(1000)) # who sends hears of Beowire's end
soon(lambda: why(one.fileno()) == b"the peer's endpoint is gone")
assert taken(one) == (50000, errno.ECONNRESET)
""",
    "SO_ERROR, of a peer that was killed": f"""{CONNECTED}
orders.sendall(b"s")
soon(lambda: available(one) == 50000)
assert one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
orders.sendall(b"k")
soon(lambda: one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)[0] == 8) # CLOSE_WAIT
one.send(bytes(1000))
soon(lambda: why(one.fileno()) == b"the peer's endpoint is gone")
assert one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNRESET
assert one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0 # once, as in the kernel
assert taken(one) == (50000, errno.ECONNRESET)
""",
    "an error that was met on the way back to TCP": f"""{RETURNED}
assert taken(one) == (0, errno.ECONNRESET)
assert taken(one) == (0, 0) # once, as in the kernel
os.kill(child, 9)
""",
    "SO_ERROR, of an error that was met on the way back to TCP": f"""{RETURNED}
assert one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNRESET
assert one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
assert taken(one) == (0, 0)
os.kill(child, 9)
""",
    "a child that closes what an instance watches": f"""{CONNECTED}
watch = select.epoll()
watch.register(one, select.EPOLLIN)
orders.sendall(b"s")
soon(lambda: available(one) == 50000)
child = os.fork()
if not child:
    os.close(one.fileno())
    os._exit(0)
os.waitpid(child, 0)
assert watch.poll(60) == [(one.fileno(), select.EPOLLIN)]
assert len(one.recv(50000, socket.MSG_WAITALL)) == 50000
orders.sendall(b"l")
assert watch.poll(60) == [(one.fileno(), select.EPOLLIN)]
watch.modify(one, select.EPOLLIN)
""",
    "an end of what is watched once": f"""{CONNECTED}
watch = select.epoll()
watch.register(one, select.EPOLLIN | select.EPOLLONESHOT)
orders.sendall(b"s")
assert watch.poll(60) == [(one.fileno(), select.EPOLLIN)]
assert len(one.recv(50000, socket.MSG_WAITALL)) == 50000
child = share()
assert way(one.fileno()) == 0
one.sendall(bytes(1000)) # nobody reads it, so that the end is a reset
orders.sendall(b"k")
poller = select.poll()
poller.register(one, 0)
assert poller.poll(60000) == [(one.fileno(), select.POLLERR | select.POLLHUP)]
assert watch.poll(0.5) == []
watch.modify(one, select.EPOLLIN | select.EPOLLONESHOT)
((fd, events),) = watch.poll(60)
assert events & select.EPOLLHUP
os.kill(child, 9)
""",
    "an end that lingers": f"""{CLIENT}
one = socket.socket()
one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
orders = connect(one)
one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 40))
one.setblocking(False)
assert one.send(bytes(300000)) == 300000 # which the peer does not read
one.close()
time.sleep(2)
began = time.monotonic()
child = os.fork()
if not child:
    os._exit(0)
os.waitpid(child, 0)
assert time.monotonic() - began < 20
""",
    "others beside what is always ready": f"""{CONNECTED}
r, w = os.pipe()
os.write(w, b"x")
watch = select.epoll()
watch.register(one, select.EPOLLOUT)
watch.register(r, select.EPOLLIN)
for most in (1, 2):
    seen = [tuple(each) for _ in range(200) for each in watch.poll(60, most)]
    assert set(seen) == {{(one.fileno(), select.EPOLLOUT), (r, select.EPOLLIN)}}, set(seen)
""",
    "data with the first segment": f"""{CLIENT}
class Opened(socket.socket):
    def connect(self, at):
        assert self.sendto(b"0", socket.MSG_FASTOPEN, at) == 1
one, watch = Opened(), select.epoll()
watch.register(one, select.EPOLLIN)
orders = connect(one)
assert one.recv(1) == b"0"
orders.sendall(b"l")
assert one.recv(10) == b"late"
one.sendall(b"more")
orders.sendall(b"r")
assert orders.recv(100) == b"more"
""",
    "a program that is spawned": f"""{CONNECTED}
os.set_inheritable(one.fileno(), True)
words = ["sh", "-c", f"printf spawned >&{{one.fileno()}}"]
os.waitpid(os.posix_spawn("/bin/sh", words, os.environ), 0)
orders.sendall(b"r")
assert orders.recv(100) == b"spawned"
one.sendall(b"and on")
orders.sendall(b"r")
assert orders.recv(100) == b"and on"
""",
    "a shell": f"""{CONNECTED}
os.set_inheritable(one.fileno(), True)
assert libc.system(b"printf spawned >&%d" % one.fileno()) == 0
orders.sendall(b"r")
assert orders.recv(100) == b"spawned"
libc.popen.restype = ctypes.c_void_p
pipe = libc.popen(b"printf again >&%d" % one.fileno(), b"r")
libc.pclose(ctypes.c_void_p(pipe))
orders.sendall(b"r")
assert orders.recv(100) == b"again"
""",
    "what came while it stood still, beyond its time": f"""{CONNECTED}
one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 3, 0))
me, into = os.getpid(), ctypes.create_string_buffer(10)
words = ["sh", "-c", f"sleep 0.3; kill -STOP {{me}}; sleep 4; kill -CONT {{me}}"]
began = time.monotonic()
orders.sendall(b"m")
os.posix_spawn("/bin/sh", words, os.environ)
while (rc := libc.recv(one.fileno(), into, 10, 0)) < 0:
    assert ctypes.get_errno() == errno.EINTR # as signal(7) says of calls with a time
assert rc == 4
assert time.monotonic() - began > 3
""",
    "a look at all of it": f"""{CONNECTED}
orders.sendall(b"4")
assert one.recv(8, socket.MSG_PEEK | socket.MSG_WAITALL) == b"halfmore"
assert one.recv(8) == b"halfmore"
one.settimeout(0.3)
""",
    "nothing at all": f"""{CONNECTED}
def failed(rc):
    return (rc, ctypes.get_errno())
assert failed(libc.recv(one.fileno(), None, 0, socket.MSG_DONTWAIT)) == (-1, errno.EAGAIN)
assert libc.recvmmsg(one.fileno(), None, 0, socket.MSG_DONTWAIT, None) == 0
orders.sendall(b"s")
soon(lambda: available(one) == 50000)
assert libc.recv(one.fileno(), None, 0, socket.MSG_DONTWAIT) == 0
one.shutdown(socket.SHUT_WR)
assert failed(libc.send(one.fileno(), None, 0, socket.MSG_NOSIGNAL)) == (-1, errno.EPIPE)
""",
    "splice": f"""{CONNECTED}
r, w = os.pipe()
os.write(w, b"spliced")
libc.splice.argtypes = [ctypes.c_int, ctypes.c_void_p] * 2 + [ctypes.c_size_t, ctypes.c_uint]
one.sendall(b"first, ")
assert libc.splice(r, None, one.fileno(), None, 7, 0) == 7
time.sleep(0.5)
orders.sendall(b"r")
assert orders.recv(100) == b"first, spliced"
""",
    "ports of offers": f"""{CONNECTED}
ports = set()
for name in ("udp", "udp6"):
    for line in open(f"/proc/self/net/{{name}}").read().splitlines()[1:]:
        ports.add(int(line.split()[1].rsplit(":", 1)[1], 16))
assert len(ports - {{47098}}) >= 2, ports # for offers, and for the endpoint
assert all(47100 <= port <= 47999 for port in ports - {{47098}}), ports
""",
    "splice out, and a good end": f"""{CONNECTED}
orders.sendall(b"s")
soon(lambda: available(one) == 50000)
r, w = os.pipe()
libc.splice.argtypes = [ctypes.c_int, ctypes.c_void_p] * 2 + [ctypes.c_size_t, ctypes.c_uint]
libc.splice.restype = ctypes.c_ssize_t
left = 50000
while left:
    some = libc.splice(one.fileno(), None, w, None, 10000, 0)
    assert some > 0, (left, ctypes.get_errno())
    while some:
        got = len(os.read(r, some))
        some -= got
        left -= got
orders.close()
assert one.recv(10) == b""
""",
    "SO_SNDTIMEO": f"""{CONNECTED}
one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 500000))
while libc.send(one.fileno(), bytes(100000), 100000, 0) > 0: # which nobody reads
    began = time.monotonic()
assert ctypes.get_errno() == errno.EAGAIN
assert 0.5 <= time.monotonic() - began
""",
    "dup3": f"""{CONNECTED}
for other in (900, 901):
    os.dup2(one.fileno(), other, inheritable=False)
    os.write(other, b"by another number")
    orders.sendall(b"r")
    assert orders.recv(100) == b"by another number"
one.close()
os.close(900)
assert way(901) & 2
os.write(901, b"the last")
orders.sendall(b"r")
assert orders.recv(100) == b"the last"
""",
    "the masks of ppoll() and pselect()": f"""{SIGNALS}
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
fd, span = one.fileno(), struct.pack("ll", 60, 0)
def ppoll(mask):
    return call("ppoll", struct.pack("ihh", fd, select.POLLIN, 0), 1, span, mask)
def pselect(mask):
    bits = ctypes.create_string_buffer((1 << fd).to_bytes(128, "little"), 128)
    return call("pselect", fd + 1, bits, None, None, span, mask)
for wait in (ppoll, pselect):
    alarm()
    assert wait(nothing) == (-1, errno.EINTR)
    alarm()
    orders.sendall(b"l") # after the alarm
    assert wait(alarms)[0] == 1
    assert signal.sigpending() == {{signal.SIGALRM}}
    assert one.recv(10) == b"late"
    signal.sigtimedwait([signal.SIGALRM], 0)
""",
    "a handler with SA_RESTART, and one without": f"""{SIGNALS}
into = ctypes.create_string_buffer(10)
def receive():
    return call("recv", one.fileno(), into, 10, 0)
alarm(0.3) # again and again: the first may come before the call
signal.siginterrupt(signal.SIGALRM, True)
assert receive() == (-1, errno.EINTR)
signal.siginterrupt(signal.SIGALRM, False)
signal.signal(signal.SIGINT, signal.SIG_DFL) # which handler ran is not known to the library
orders.sendall(b"l")
assert receive()[0] == 4
words = struct.pack("ihh", one.fileno(), select.POLLIN, 0)
assert call("poll", words, 1, 60000) == (-1, errno.EINTR) # as signal(7) says: never begun anew
""",
    "urgent data": f"""{CONNECTED}
one.sendall(b"ab")
assert one.send(b"!", socket.MSG_OOB) == 1
assert not way(one.fileno()) & 2
assert b"urgent" in why(one.fileno())
one.sendall(b"c")
for some in (b"ab", b"c"):
    orders.sendall(b"r")
    assert orders.recv(100) == some
""",
    "MSG_ZEROCOPY": f"""{CONNECTED}
SO_ZEROCOPY, MSG_ZEROCOPY = 60, 0x4000000
one.sendall(b"before, ")
one.setsockopt(socket.SOL_SOCKET, SO_ZEROCOPY, 1)
assert not way(one.fileno()) & 2
assert one.send(b"not copied", MSG_ZEROCOPY) == 10
poller = select.poll()
poller.register(one, 0)
assert poller.poll(60000) == [(one.fileno(), select.POLLERR)]
_, told, flags, _ = one.recvmsg(1, 1000, socket.MSG_ERRQUEUE)
assert told and flags & socket.MSG_ERRQUEUE
time.sleep(0.5)
orders.sendall(b"r")
assert orders.recv(100) == b"before, not copied"
""",
    "O_ASYNC": f"""{SIGNALS}
import fcntl
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
fcntl.fcntl(one, fcntl.F_SETOWN, os.getpid())
fcntl.fcntl(one, fcntl.F_SETFL, fcntl.fcntl(one, fcntl.F_GETFL) | os.O_ASYNC)
signal.sigtimedwait([signal.SIGIO], 0)
for _ in range(2):
    orders.sendall(b"l")
    assert signal.sigtimedwait([signal.SIGIO], 60)
    assert one.recv(10) == b"late"
""",
}


@pytest.mark.parametrize("case", CASES)
def test_a_call_does_what_the_kernel_does(nodes: Nodes, case: str) -> None:
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"
    with nodes.server(["python3", "-c", SERVER], PORT):
        nodes.run(["python3", "-c", CASES[case]])
