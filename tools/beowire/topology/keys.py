# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The settings of a link by the names that people write: KEY=VALUE, and the same keys in files.

One table serves the topology's file, `lab link set` and the command line of beowire-link.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from beowire.errors import BeowireError
from beowire.topology.topology import MTU_MAX_BYTES, MTU_MIN_BYTES, Model

RATE_MIN_BITS = 8000
RATE_MAX_BITS = 30 * 10**9
DELAY_MAX_NS = 100 * 10**9

_RATE_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_SIZE_UNITS = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "Ki": 1 << 10, "Mi": 1 << 20}
_TIME_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}


def parse_share(text: str) -> float:
    """`1%` or `0.01` as a number between 0 and 1."""
    number = text.removesuffix("%")
    try:
        share = float(number) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise BeowireError(f"{text!r} is no share.", "Write 1% or 0.01; at most 100%.")
    return share


def parse_rate(text: str) -> int:
    """`1G`, `1gbit`, `100M`, ... in bits per second; `0` is no limit."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]?)(?:bit)?", text.lower())
    bits = round(float(match[1]) * _RATE_UNITS[match[2]]) if match else -1
    if bits != 0 and not RATE_MIN_BITS <= bits <= RATE_MAX_BITS:
        raise BeowireError(f"{text!r} is no rate.", "Write 8kbit to 30gbit, or 0 for no limit.")
    return bits


def parse_time(text: str) -> int:
    """`10us`, `5ms`, `1s` in nanoseconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ns|us|ms|s)", text)
    time_ns = round(float(match[1]) * _TIME_UNITS[match[2]]) if match else -1
    if text == "0":
        time_ns = 0
    if not 0 <= time_ns <= DELAY_MAX_NS:
        raise BeowireError(f"{text!r} is no time.", "Write 10us, 5ms or 1s; at most 100s.")
    return time_ns


def parse_bytes(text: str) -> int:
    match = re.fullmatch(r"(\d{1,10})(k|K|M|Ki|Mi)?", text)
    if not match:
        raise BeowireError(
            f"{text!r} is no number of bytes.", "Write a number such as 125000, 100K or 64Ki."
        )
    return int(match[1]) * _SIZE_UNITS[match[2] or ""]


def parse_mtu(text: str) -> int:
    size = int(text) if re.fullmatch(r"\d{1,10}", text) else -1
    if size != 0 and not MTU_MIN_BYTES <= size <= MTU_MAX_BYTES:
        raise BeowireError(
            f"{text!r} is no MTU.", f"Write {MTU_MIN_BYTES} to {MTU_MAX_BYTES} bytes; 0: no limit."
        )
    return size


def parse_burst(text: str) -> float:
    match = re.fullmatch(r"\d{1,6}(?:\.\d+)?", text)
    if not match or 0 < float(text) < 1:
        raise BeowireError(
            f"{text!r} is no length of a burst.", "Write a mean number of frames, 1 or more."
        )
    return float(text)


def parse_switch(text: str) -> bool:
    if text not in ("on", "off", "true", "false"):
        raise BeowireError(f"{text!r} is neither on nor off.", "Write on or off.")
    return text in ("on", "true")


def format_rate(bits: int) -> str:
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if bits and bits % size == 0:
            return f"{bits // size}{unit}"
    return str(bits)


def format_time(time_ns: int) -> str:
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if time_ns and time_ns % size == 0:
            return f"{time_ns // size}{unit}"
    return f"{time_ns}ns" if time_ns else "0"


def _format_share(share: float) -> str:
    return f"{share:.9f}".rstrip("0").rstrip(".")


def _format_switch(on: bool) -> str:
    return "on" if on else "off"


@dataclass(frozen=True)
class Key:
    """A setting: the field of `Model` it stands for, and how its values are read and written."""

    field: str
    parse: Callable[[str], Any]
    format: Callable[[Any], str]


KEYS = {
    "rate": Key("rate_bits", parse_rate, format_rate),
    "delay": Key("delay_ns", parse_time, format_time),
    "jitter": Key("jitter_ns", parse_time, format_time),
    "loss": Key("loss", parse_share, _format_share),
    "burst": Key("burst_frames", parse_burst, _format_share),
    "duplicate": Key("duplicate", parse_share, _format_share),
    "reorder": Key("reorder", parse_share, _format_share),
    "corrupt": Key("corrupt", parse_share, _format_share),
    "queue": Key("queue_bytes", parse_bytes, str),
    "mark": Key("mark_bytes", parse_bytes, str),
    "mtu": Key("mtu_bytes", parse_mtu, str),
    "coalesce": Key("coalesce_ns", parse_time, format_time),
    "drop-raw": Key("drop_raw", parse_switch, _format_switch),
}


def settings(model: Model) -> dict[str, str]:
    """What the model sets, by key; what it leaves alone is left out."""
    clear = Model()
    values = {name: (getattr(model, key.field), key) for name, key in KEYS.items()}
    return {
        name: key.format(value)
        for name, (value, key) in values.items()
        if value != getattr(clear, key.field)
    }


def describe(model: Model) -> str:
    """The model in a few words, such as `rate 1G, delay 10us`; empty when it does nothing."""
    return ", ".join(
        f"{name} {float(value) * 100:g}%"
        if name in ("loss", "duplicate", "reorder", "corrupt")
        else f"{name} {value}"
        for name, value in settings(model).items()
    )
