# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What section 14 of docs/wire-protocol.md computes with a key, from the document alone."""

import hashlib
import hmac
import struct

_MASK = 2**64 - 1


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _sip_round(v: list[int]) -> None:
    v[0] = (v[0] + v[1]) & _MASK
    v[2] = (v[2] + v[3]) & _MASK
    v[1] = _rotate(v[1], 13) ^ v[0]
    v[3] = _rotate(v[3], 16) ^ v[2]
    v[0] = _rotate(v[0], 32)
    v[2] = (v[2] + v[1]) & _MASK
    v[0] = (v[0] + v[3]) & _MASK
    v[1] = _rotate(v[1], 17) ^ v[2]
    v[3] = _rotate(v[3], 21) ^ v[0]
    v[2] = _rotate(v[2], 32)


def siphash(key: bytes, data: bytes) -> int:
    """SipHash-2-4 (Aumasson and Bernstein 2012)."""
    k: tuple[int, ...] = struct.unpack("<QQ", key)
    names = (
        0x736F6D6570736575,
        0x646F72616E646F6D,
        0x6C7967656E657261,
        0x7465646279746573,
    )
    v = [names[i] ^ k[i % 2] for i in range(4)]
    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        _sip_round(v)
        _sip_round(v)
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(4):
        _sip_round(v)
    return int(v[0] ^ v[1] ^ v[2] ^ v[3])


def mac(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, hashlib.sha256).digest()


def expand(prk: bytes, info: bytes, size: int) -> bytes:
    """HKDF-Expand (RFC 5869)."""
    out, block = b"", b""
    while len(out) < size:
        block = mac(prk, block + info + bytes([len(out) // 32 + 1]))
        out += block
    return out[:size]


def side(hello: dict[str, int]) -> bytes:
    """One side of a conversation, from what its HELLO says."""
    names = ("node", "random", "inc", "conn", "token", "engine")
    return struct.pack("<QQIIII", *(hello[name] for name in names))


class Keys:
    """What a cluster's key gives."""

    def __init__(self, key: bytes) -> None:
        self.prk = mac(b"beowire 2", key)
        self.hello = expand(self.prk, b"hello", 32)
        self.refuse = expand(self.prk, b"refuse", 16)
        self.challenge = expand(self.prk, b"challenge", 16)

    def tag_key(self, sender: bytes, receiver: bytes) -> bytes:
        return expand(self.prk, b"frames\0\0" + sender + receiver, 48)[:16]
