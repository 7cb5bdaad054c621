# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the dissector computes with a key: the numbers that the algorithms' documents print, and
those of Python's library and of an own SipHash and Poly1305 for bytes at random."""

import hashlib
import hmac
import random
import shutil
import subprocess
from pathlib import Path

import keyed
import pytest
from tshark import ROOM

pytestmark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is not installed: apt-get install tshark"
)

MODULE = ROOM / "beowire_crypto.lua"
DIGITS = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F"


@pytest.fixture
def lua(tmp_path: Path) -> "Lua":
    return Lua(tmp_path)


class Lua:
    """Expressions that tshark's Lua computes; `m` is the module, and u() makes bytes of digits."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def compute(self, *expressions: str) -> list[str]:
        script, out = self._place / "script.lua", self._place / "out"
        lines = [f"local m = dofile({str(MODULE)!r})", "local u = m.unhex"]
        lines.append(f"local out = io.open({str(out)!r}, 'w')")
        lines += [f"out:write(tostring({each}), '\\n')" for each in expressions]
        script.write_text("\n".join([*lines, "out:close()"]))
        capture = self._place / "empty.pcap"
        capture.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
        done = subprocess.run(
            ["tshark", "-X", f"lua_script:{script}", "-r", str(capture)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "Error" not in done.stderr, done.stderr
        return out.read_text().splitlines()


def u(value: bytes) -> str:
    return f'u("{value.hex()}")'


def test_sha256_and_hmac(lua: Lua) -> None:
    rng = random.Random(1)
    wanted, asked = [], []
    for n in [*range(70), 119, 120, 128, 1000]:
        text, key = rng.randbytes(n), rng.randbytes(n)
        asked += [f"m.hex(m.sha256({u(text)}))", f"m.hex(m.hmac_sha256({u(key)}, {u(text)}))"]
        wanted.append(hashlib.sha256(text).hexdigest())
        wanted.append(hmac.new(key, text, "sha256").hexdigest())
    assert lua.compute(*asked) == wanted


def test_hkdf(lua: Lua) -> None:
    """RFC 5869, A.1."""
    salt, info = bytes(range(13)), bytes(range(0xF0, 0xFA))
    prk = f"m.hkdf_extract({u(salt)}, {u(bytes([11] * 22))})"
    (found,) = lua.compute(f"m.hex(m.hkdf_expand({prk}, {u(info)}, 42))")
    assert found == (
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
    )


def siphash(key: bytes, text: bytes) -> bytes:
    return keyed.siphash(key, text).to_bytes(8, "little")


def test_siphash(lua: Lua) -> None:
    """The paper's appendix A, and lengths around a word."""
    key = bytes(range(16))
    assert siphash(key, bytes(range(15))).hex() == "e545be4961ca29a1"
    rng = random.Random(2)
    texts = [bytes(range(n)) for n in range(20)] + [rng.randbytes(300) for _ in range(5)]
    found = lua.compute(*[f"m.hex(m.siphash({u(key)}, {u(text)}))" for text in texts])
    assert found == [siphash(key, text).hex() for text in texts]


def poly1305(key: bytes, text: bytes) -> bytes:
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    h = 0
    for at in range(0, len(text), 16):
        h = (h + int.from_bytes(text[at : at + 16] + b"\1", "little")) * r % (2**130 - 5)
    return ((h + int.from_bytes(key[16:], "little")) % 2**128).to_bytes(16, "little")


def test_poly1305(lua: Lua) -> None:
    """RFC 8439, A.3 has such sums as carry far: blocks of ones, and keys of ones."""
    rng = random.Random(3)
    ones, zeroes = bytes([255] * 16), bytes(16)
    pairs = [(rng.randbytes(32), rng.randbytes(n)) for n in range(35)]
    for r in (1, 2, 4):
        low = bytes([r]) + bytes(15)
        for text in (ones, ones * 2, ones * 3, bytes([251]) + bytes([254] * 15) + bytes([1] * 16)):
            pairs += [(low + zeroes, text), (low + ones, text), (ones * 2, text)]
    pairs.append((bytes([2]) + bytes(31), bytes([253]) + bytes([255] * 15)))
    found = lua.compute(*[f"m.hex(m.poly1305({u(key)}, {u(text)}))" for key, text in pairs])
    assert found == [poly1305(key, text).hex() for key, text in pairs]


TEXT = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
TEXT += b"future, sunscreen would be it."
SEALED = (
    "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92"
    "728b1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b"
    "4831d7bc3ff4def08e4b7a9de576d26586cec64b6116"
)


def test_seal(lua: Lua) -> None:
    """RFC 8439, 2.8.2."""
    key, nonce = bytes(range(0x80, 0xA0)), bytes.fromhex("070000004041424344454647")
    head = bytes.fromhex("50515253c0c1c2c3c4c5c6c7")
    tag = "1ae10b594f09e26a7e902ecbd0600691"
    given = f"{u(key)}, {u(nonce)}, {u(head)}"
    wrong = f"{int(SEALED[0], 16) ^ 1:x}{SEALED[1:]}"
    found = lua.compute(
        f"m.hex((m.seal({given}, {u(TEXT)})))",
        f"m.hex((select(2, m.seal({given}, {u(TEXT)}))))",
        f'm.hex(m.open({given}, u("{SEALED}"), u("{tag}")))',
        f'm.open({given}, u("{wrong}"), u("{tag}"))',
        f'm.open({u(key)}, {u(nonce)}, "", u("{SEALED}"), u("{tag}"))',
        f"m.hex(m.nonce(0x04030201, {u(bytes(range(5, 13)))}))",
    )
    assert found == [SEALED, tag, TEXT.hex(), "nil", "nil", "0102030405060708090a0b0c"]


KEY_FILES = {
    f"{DIGITS}\n": True,
    DIGITS: True,
    f"# one\n{DIGITS}\n# two\n": True,
    "": False,
    "# none\n": False,
    f"{DIGITS}\n\n": False,
    f"\n{DIGITS}\n": False,
    f"{DIGITS}\r\n": False,
    f"{DIGITS}\n{DIGITS}\n": False,
    f"{DIGITS[1:]}g\n": False,
    "0" * 64: False,
}


def test_key_files(lua: Lua) -> None:
    found = lua.compute(*[f"m.hex(m.key_of({u(text.encode())}) or '')" for text in KEY_FILES])
    assert found == [DIGITS.lower() if good else "" for good in KEY_FILES.values()]


def test_a_fingerprint_is_that_of_the_tools(lua: Lua) -> None:
    lines = f"beowire key fingerprint\n{DIGITS.lower()}\n"
    (found,) = lua.compute(f'm.fingerprint(u("{DIGITS}"))')
    assert found == hashlib.sha256(lines.encode()).hexdigest()[:8]
