# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What may stand for a host. Names go into command lines, of shells and of ssh, on two machines:
only what can mean nothing else there passes."""

import ipaddress
import re

from beowire.errors import BeowireError

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NAME_MAX = 253
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_ZONE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")


def check(text: str) -> str:
    """The same text, if it is a host's name (RFC 1123), an IPv4 or IPv6 address, or one of these
    behind USER@. Else an error."""
    user, at, host = text.rpartition("@")
    if (at and not _USER.fullmatch(user)) or not (_is_name(host) or is_ipv6(host)):
        raise BeowireError(
            f"{text!r} is no name of a host.",
            "Write a name of letters, digits, hyphens and dots, an address, or USER@ and one of "
            "these; ~/.ssh/config can give a host such a name.",
        )
    return text


def _is_name(text: str) -> bool:
    return len(text) <= _NAME_MAX and _NAME.fullmatch(text) is not None


def is_ipv6(text: str) -> bool:
    """Whether this is an IPv6 address, which may name an interface: fe80::1%eth0."""
    address, percent, zone = text.partition("%")
    if percent and not _ZONE.fullmatch(zone):
        return False
    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return False
    return True
