# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What section 14 of docs/wire-protocol.md computes with a key, from the documents alone."""

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

    def seal_key(self, sender: bytes, receiver: bytes) -> bytes:
        return expand(self.prk, b"frames\0\0" + sender + receiver, 48)[16:]


_WORD = 2**32 - 1
_P1305 = 2**130 - 5


def _quarter(x: list[int], a: int, b: int, c: int, d: int) -> None:
    for first, second, third, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[first] = (x[first] + x[second]) & _WORD
        turned = x[third] ^ x[first]
        x[third] = (turned << bits | turned >> (32 - bits)) & _WORD


def _block(key: bytes, nonce: bytes, number: int) -> bytes:
    state = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", key), number]
    state += struct.unpack("<3I", nonce)
    x = list(state)
    for _ in range(10):
        for i in range(4):
            _quarter(x, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            _quarter(x, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    sums = [(one + other) & _WORD for one, other in zip(x, state, strict=True)]
    return struct.pack("<16I", *sums)


def chacha20(key: bytes, nonce: bytes, number: int, data: bytes) -> bytes:
    """RFC 8439, 2.4: enciphered, or deciphered, from this block on."""
    blocks = (_block(key, nonce, number + i) for i in range(-(-len(data) // 64)))
    stream = b"".join(blocks)
    return bytes(one ^ other for one, other in zip(data, stream, strict=False))


def poly1305(key: bytes, data: bytes) -> bytes:
    """RFC 8439, 2.5."""
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for at in range(0, len(data), 16):
        total = (total + int.from_bytes(data[at : at + 16] + b"\1", "little")) * r % _P1305
    total += int.from_bytes(key[16:], "little")
    return (total & (2**128 - 1)).to_bytes(16, "little")


def _aead_tag(key: bytes, nonce: bytes, head: bytes, sealed: bytes) -> bytes:
    text = head + bytes(-len(head) % 16) + sealed + bytes(-len(sealed) % 16)
    lengths = struct.pack("<QQ", len(head), len(sealed))
    return poly1305(_block(key, nonce, 0)[:32], text + lengths)


def seal(key: bytes, nonce: bytes, head: bytes, plain: bytes) -> bytes:
    """AEAD_CHACHA20_POLY1305 (RFC 8439, 2.8): what was enciphered, and the tag behind it."""
    sealed = chacha20(key, nonce, 1, plain)
    return sealed + _aead_tag(key, nonce, head, sealed)


def unseal(key: bytes, nonce: bytes, head: bytes, sealed: bytes) -> bytes:
    """What was sealed; it must be genuine."""
    assert _aead_tag(key, nonce, head, sealed[:-16]) == sealed[-16:]
    return chacha20(key, nonce, 1, sealed[:-16])


def packet_nonce(path: int, pn: int) -> bytes:
    return struct.pack("<IQ", path, pn)
