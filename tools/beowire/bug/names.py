# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The names of hosts and people that stand in the texts of a report."""

import json
import os
import pwd
import re
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

_STATUS = "status.json"
_STRING = r'("(?:[^"\\]|\\.){1,512}")'
_HOST_IN_STATUS = re.compile(rf'"(?:host|node)": {_STRING}')
_USER_IN_STATUS = re.compile(rf'"user": {_STRING}')
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_HOME = re.compile(r"/home/([^/\s\"':;,()\\]+)")
_OF_DOMAIN = re.compile(r"[\\@]")
_PLAIN_HOSTS = {"localhost", "ip6-localhost", "ip6-loopback", "ip6-allnodes", "ip6-allrouters"}
_VARIABLES = ("USER", "LOGNAME", "SUDO_USER")


def _values(pattern: re.Pattern[str], text: str) -> set[str]:
    """What a report of the state has under a name."""
    found = set()
    for quoted in pattern.findall(text):
        try:
            found.add(str(json.loads(quoted)))
        except ValueError:
            found.add(quoted[1:-1])
    return found


def _names_something(name: str) -> bool:
    """Without a letter or digit it would be found in any text: /home/... is nobody's home."""
    return any(map(str.isalnum, name))


def hosts(texts: Mapping[str, str]) -> list[str]:
    """Names of hosts: ours, and those that endpoints speak with."""
    found = {socket.gethostname(), socket.gethostname().partition(".")[0]}
    found |= _values(_HOST_IN_STATUS, texts[_STATUS])
    try:
        lines = Path("/etc/hosts").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        found |= set(line.partition("#")[0].split()[1:])
    return sorted(
        name for name in found - _PLAIN_HOSTS if _HOST.fullmatch(name) and _names_something(name)
    )


def _accounts(names: set[str]) -> Iterator[pwd.struct_passwd]:
    """Ours, and those of these names. A directory service that answers for an account which it is
    asked for need not list any."""
    for uid in {os.getuid(), os.geteuid()}:
        try:
            yield pwd.getpwuid(uid)
        except KeyError:
            continue
    for name in sorted(names):
        try:
            yield pwd.getpwnam(name)
        except (KeyError, ValueError):  # there is none, or none can have this name
            continue


def users(texts: Mapping[str, str]) -> list[str]:
    """Names of people, as accounts and as homes have them: ours, those of endpoints, of homes that
    are named somewhere, and those that one can log in to here."""
    told = {os.environ[name] for name in _VARIABLES if name in os.environ}
    told |= _values(_USER_IN_STATUS, texts[_STATUS])
    found = {each.pw_name for each in pwd.getpwall() if each.pw_uid >= 1000}
    for account in _accounts(told):
        found |= {account.pw_name, Path(account.pw_dir).name}
    told.add(Path(os.environ.get("HOME", "/")).name)
    for text in texts.values():
        told |= set(_HOME.findall(text))
    told |= {part for name in told | found for part in _OF_DOMAIN.split(name)}
    found |= {name for name in told if not name.isdecimal()}  # else it has no account
    return sorted(filter(_names_something, found))
