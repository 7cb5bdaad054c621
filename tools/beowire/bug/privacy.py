# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Takes secrets out of text, and who and where things are: names become numbers, the same one for
the same name, so that what belongs together still does."""

import ipaddress
import json
import re

_SECRET = re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]{32,}(?![0-9A-Za-z])")
"""Keys are 64 hexadecimal digits; nothing else that is needed has half as many."""
_NAMED_SECRET = re.compile(
    r"(?i)((?:password|passwd|token|secret|api[_-]?key|authorization)[\"']?\s*[=:]\s*[\"']?)"
    r"[^\s\"',;]+"
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*-----", re.DOTALL)
_MAC = re.compile(r"(?<![0-9A-Fa-f:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:])")
_IPV4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.]*\d)")
_IPV6 = re.compile(r"(?<![0-9A-Za-z:.])[0-9A-Fa-f:]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(?![0-9A-Za-z:])")
_SAME_EVERYWHERE = {"127.0.0.1", "0.0.0.0", "::", "::1", "255.255.255.255"}
_NO_MACS = {"00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"}
_BEFORE = r"(?:(?<![A-Za-z0-9-])|(?<=\\[bfnrt]))"
"""No name begins within a word; what JSON writes for the end of a line is none."""
_COMMON = {"localhost", "root", "node", "host", "user", "nobody", "beowire"}
"""Names that say nothing, or that stand for something else in most text."""


def _word(name: str) -> re.Pattern[str]:
    """A name by itself, also as JSON writes it."""
    forms = "|".join(sorted({re.escape(name), re.escape(json.dumps(name)[1:-1])}))
    return re.compile(rf"{_BEFORE}(?:{forms})(?![A-Za-z0-9-])", re.IGNORECASE)


class Cleaner:
    """Cleans all texts of one report alike."""

    def __init__(self, hosts: list[str], users: list[str], *, keep_names: bool) -> None:
        self._keep_names = keep_names
        self._known: dict[tuple[str, str], str] = {}
        self._words: list[tuple[re.Pattern[str], str]] = []
        if keep_names:
            return
        names = [(name, "host") for name in hosts] + [(name, "user") for name in users]
        longest_first = sorted(dict(names).items(), key=lambda each: (-len(each[0]), each[0]))
        for name, kind in longest_first:
            if len(name) > 1 and name.lower() not in _COMMON:
                stands_for = self._number(kind, name)
                self._words.append((_word(name), stands_for))

    def _number(self, kind: str, name: str) -> str:
        count = sum(1 for each, _ in self._known if each == kind)
        return self._known.setdefault((kind, name), f"{kind}{count + 1}")

    def _address(self, found: re.Match[str]) -> str:
        text = found[0]
        try:
            address = str(ipaddress.ip_address(text))
        except ValueError:
            return text
        return text if address in _SAME_EVERYWHERE else self._number("address", address)

    def _mac(self, found: re.Match[str]) -> str:
        mac = found[0].lower()
        return found[0] if mac in _NO_MACS else self._number("mac", mac)

    def clean(self, text: str) -> str:
        """The text without secrets, and without names unless these are kept."""
        text = _PRIVATE_KEY.sub("<private key>", text)
        text = _NAMED_SECRET.sub(r"\1<secret>", text)
        text = _SECRET.sub("<secret>", text)
        if self._keep_names:
            return text
        text = _MAC.sub(self._mac, text)
        text = _IPV6.sub(self._address, text)
        text = _IPV4.sub(self._address, text)
        for pattern, stands_for in self._words:
            text = pattern.sub(stands_for, text)
        return text
