# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What an attacker needs: the service's protocol spoken by hand, and frames made by hand. Tests
execute it in front of their own code, as an unprivileged user."""

import array
import contextlib
import errno
import json
import random
import socket
import struct
import sys

PATH = sys.argv[1]
SOL_PACKET = 263
MAGIC, VERSION, OPEN, WAIT, READY, REFUSED = 0x64657762, 1, 1, 2, 3, 4
ETHERTYPE, CLUSTER = 0x88B5, 0x6D8D60E8
RING = 1 << 20
REQUEST = struct.Struct("<IHHHHII16sI")
ANSWER = struct.Struct("<IHHiI6sHIIII16s160s")


def told(what):
    """The attacker's result."""
    print(json.dumps(what))


def claim(engine=0):
    """A socket that claims an engine number, and the number."""
    while True:
        number = engine or random.randrange(0x8000, 0x10000)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            made.bind(f"\0beowire.{number}")
            return made, number
        except OSError:
            made.close()
            if engine:
                raise


def call():
    """A connection to the service."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made.settimeout(20)
    made.connect(PATH)
    return made


def request(engine, **other):
    """The bytes of a request."""
    values = {
        "magic": MAGIC,
        "version": VERSION,
        "kind": OPEN,
        "engine": engine,
        "ethertype": ETHERTYPE,
        "cluster": CLUSTER,
        "ring": RING,
        "interface": b"eth0",
        "zero": 0,
    }
    return REQUEST.pack(*{**values, **other}.values())


def say(connection, data, *descriptors):
    """Sends a message, with descriptors."""
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
    with contextlib.suppress(BrokenPipeError):  # refused already: the answer says why
        connection.sendmsg([data], rights if descriptors else [])


class Answer:
    """What the service answered last, and the socket that came with it."""

    def __init__(self, connection):
        self.socket = None
        self.kind = self.error = 0
        self.text = ""
        while True:
            try:
                data, rights, _, _ = connection.recvmsg(ANSWER.size, 256)
            except ConnectionResetError:
                continue  # the answer lies behind it
            if not data:
                return
            fields = ANSWER.unpack(data)
            self.kind, self.error, self.mtu, self.mac = fields[2:6]
            self.block_bytes, self.blocks = fields[9:11]
            self.flags, self.rest = fields[6], fields[12]
            self.text = "" if self.kind == READY else self.rest.rstrip(b"\0").decode()
            for _, _, got in rights:
                self.socket = socket.socket(fileno=array.array("i", got)[0])
            if self.kind != WAIT:
                return


class Endpoint:
    """An endpoint of the attacker's own, as the service gives it."""

    def __init__(self, engine=0, **other):
        self.claim, self.engine = claim(engine)
        self.connection = call()
        say(self.connection, request(self.engine, **other), self.claim.fileno())
        self.answer = Answer(self.connection)
        self.socket = self.answer.socket

    def frame(self, to, **other):
        """A frame to this address, good unless something else is said."""
        values = {
            "mac": self.answer.mac,
            "ethertype": ETHERTYPE,
            "magic": 0xBE0A,
            "cluster": CLUSTER,
            "dst": 40000,
            "src": self.engine,
            "rest": b"",
        }
        values.update(other)
        head = to + values["mac"] + struct.pack(">H", values["ethertype"])
        head += struct.pack("<HBBI", values["magic"], 2, 1, values["cluster"])
        return head + struct.pack("<HH", values["dst"], values["src"]) + bytes(64) + values["rest"]


def errno_of(act, *arguments):
    """The name of the error that a call ends with; empty: none."""
    try:
        act(*arguments)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
    return ""
