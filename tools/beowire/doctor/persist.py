# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Makes what was fixed outlive a reboot: files of sysctl.d, systemd's .link files, which udev
applies whoever manages the link, and a TuneD profile or tmpfiles.d for the rest of sysfs."""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from beowire.doctor import journal
from beowire.doctor.check import Change
from beowire.doctor.fix import Result, Step
from beowire.doctor.journal import Journal, Past
from beowire.doctor.setting import (
    ConfigurationSetting,
    EthtoolSetting,
    FileSetting,
    LinkSetting,
    Setting,
    same,
)
from beowire.doctor.source import Source

_HEAD = "# Written by beowire doctor persist; beowire doctor undo takes it away.\n"
_SYSCTL = "/etc/sysctl.d/90-beowire.conf"
_LINKS = "/etc/systemd/network"
_LINK = "10-beowire-", ".link"
"""Before and after the interface in a file's name."""
_TMPFILES = "/etc/tmpfiles.d/beowire.conf"
_TUNED = "/etc/tuned"
_PROFILES = (f"{_TUNED}/profiles", _TUNED)
_PROFILE = "beowire/tuned.conf"
_WRITES = " - - - - "
_INCLUDE = "include="

_LINK_KEYS = {
    "mtu": "MTUBytes",
    "txqlen": "TransmitQueueLength",
    "gso_max_size": "GenericSegmentOffloadMaxBytes",
}
_RX_DELAY = "coalesce", "rx-usecs"
_NUMBERS = {
    ("rings", "rx"): "RxBufferSize",
    ("rings", "tx"): "TxBufferSize",
    ("channels", "rx"): "RxChannels",
    ("channels", "tx"): "TxChannels",
    ("channels", "combined"): "CombinedChannels",
    ("coalesce", "rx-frames"): "RxMaxCoalescedFrames",
}
_SWITCHES = {
    ("coalesce", "adaptive-rx"): "UseAdaptiveRxCoalesce",
    ("pause", "tx"): "TxFlowControl",
    ("features", "rx-checksum"): "ReceiveChecksumOffload",
    ("features", "tx-checksum-ip-generic"): "TransmitChecksumOffload",
    ("features", "tx-checksum-ipv4"): "TransmitChecksumOffload",
    ("features", "tx-checksum-ipv6"): "TransmitChecksumOffload",
    ("features", "tx-tcp-segmentation"): "TCPSegmentationOffload",
    ("features", "tx-tcp6-segmentation"): "TCP6SegmentationOffload",
    ("features", "tx-generic-segmentation"): "GenericSegmentationOffload",
    ("features", "rx-gro"): "GenericReceiveOffload",
    ("features", "rx-lro"): "LargeReceiveOffload",
}
_NAMING = (
    "# Only the first .link file that matches counts: the naming is that of systemd's own.\n"
    "NamePolicy=keep kernel database onboard slot path\n"
    "AlternativeNamesPolicy=database onboard slot path mac\n"
)


@dataclass
class Plan:
    """The files to write, by path, and what none of them can hold."""

    files: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    """Commands for whatever starts the node."""
    notes: list[str] = field(default_factory=list)


def in_force(source: Source, pasts: Iterable[Past]) -> dict[Setting, str]:
    """What fixes set and still holds, the latest value of each setting."""
    here = journal.network_of(source)
    boot = journal.boot_of(source)
    found: dict[Setting, str] = {}
    for past in reversed(list(pasts)):  # the earliest first
        if not past.what.startswith("fix") or past.network != here or past.boot != boot:
            continue
        for entry in past.entries:
            if entry.became is not None and not entry.refused:
                found[entry.setting] = entry.became
    return {setting: value for setting, value in found.items() if _holds(source, setting, value)}


def _holds(source: Source, setting: Setting, value: str) -> bool:
    try:
        return same(setting.read(source), value)
    except OSError:
        return False


def _written(source: Source, prefix: str) -> dict[Setting, str]:
    """What earlier plans wrote below `prefix` and still holds."""
    paths = {_SYSCTL: "", _TMPFILES: "", **{f"{each}/{_PROFILE}": "" for each in _PROFILES}}
    before, after = _LINK
    with contextlib.suppress(OSError):
        for name in source.names(f"{prefix}{_LINKS}"):
            if name.startswith(before) and name.endswith(after):
                paths[f"{_LINKS}/{name}"] = name[len(before) : -len(after)]
    return {
        setting: value
        for path, interface in paths.items()
        for line in _own_lines(source, f"{prefix}{path}")
        for setting, value in _said(line, interface)
        if setting.known and _holds(source, setting, value)
    }


def _own_lines(source: Source, path: str) -> list[str]:
    """The lines of a file that an earlier plan wrote; none of another one."""
    text = ConfigurationSetting(path).read(source)
    return text.splitlines() if text.startswith(_HEAD) else []


def _said(line: str, interface: str) -> Iterator[tuple[Setting, str]]:
    """The settings of a line, of a .link file if there is an interface."""
    name, equals, value = (each.strip() for each in line.partition("="))
    if interface:
        yield from _link_settings(interface, name, value)
    elif line.startswith("w /sys/"):
        path, _, value = line.removeprefix("w ").partition(_WRITES)
        yield FileSetting(path, of_choices=True), value
    elif equals and name.startswith("/sys/"):
        yield FileSetting(name, of_choices=True), value
    elif equals:
        yield FileSetting.of_sysctl(name), value


def plan(source: Source, held: dict[Setting, str], prefix: str = "") -> Plan:
    """What has to be written below `prefix` so that the settings hold after a reboot, and with them
    what was written there before."""
    made = Plan()
    held = {**_written(source, prefix), **held}
    sysctls = {
        each.sysctl: value
        for each, value in held.items()
        if isinstance(each, FileSetting) and each.sysctl
    }
    if sysctls:
        lines = (f"{name} = {' '.join(value.split())}\n" for name, value in sysctls.items())
        made.files[_SYSCTL] = _HEAD + "".join(lines)
    _plan_links(source, held, made)
    sysfs = {
        each.path: " ".join(value.split())
        for each, value in held.items()
        if isinstance(each, FileSetting) and each.path.startswith("/sys/")
    }
    if sysfs:
        _plan_sysfs(source, sysfs, prefix, made)
    made.left += [
        each.command(value)
        for each, value in held.items()
        if isinstance(each, FileSetting) and each.path.startswith("/proc/irq/")
    ]
    return made


def _plan_links(source: Source, held: dict[Setting, str], made: Plan) -> None:
    # A bond's ports and VLANs have another interface's address; theirs for good is their own.
    addresses = {
        each["name"]: each["permanent_address"]
        for each in source.answer("links")
        if each.get("permanent_address")
    }
    lines: dict[str, list[str]] = {}
    for setting, value in held.items():
        if not isinstance(setting, EthtoolSetting | LinkSetting):
            continue
        line = _link_line(setting, value)
        if line is None or setting.interface not in addresses:
            made.left.append(setting.command(value))
        elif line not in lines.setdefault(setting.interface, []):
            lines[setting.interface].append(line)
    for interface, own in lines.items():
        made.files[f"{_LINKS}/{interface.join(_LINK)}"] = (
            f"{_HEAD}[Match]\nPermanentMACAddress={addresses[interface]}\n\n[Link]\n{_NAMING}"
            + "".join(f"{line}\n" for line in own)
        )
        made.notes.append(
            f"{interface}: an MTU in NetworkManager's connection, a .network file or "
            "/etc/network/interfaces would win over the .link file; see that there is none."
        )


def _link_line(setting: EthtoolSetting | LinkSetting, value: str) -> str | None:
    """The line of a .link file; None where there is no such key."""
    if isinstance(setting, LinkSetting):
        key = _LINK_KEYS.get(setting.name)
        return f"{key}={value}" if key else None
    which = setting.kind, setting.name
    if which in _NUMBERS:
        return f"{_NUMBERS[which]}={value}"
    if which in _SWITCHES:
        return f"{_SWITCHES[which]}={'yes' if int(value) else 'no'}"
    if which == _RX_DELAY:
        return f"RxCoalesceSec={value}us"
    return None


def _link_settings(interface: str, key: str, value: str) -> Iterator[tuple[Setting, str]]:
    """The settings by which _link_line() may have come to a line."""
    yield from (
        (LinkSetting(interface, name), value) for name, of in _LINK_KEYS.items() if of == key
    )
    for table, shown in ((_NUMBERS, value), (_SWITCHES, str(int(value == "yes")))):
        for which, of in table.items():
            if of == key:
                yield EthtoolSetting(interface, *which), shown
    if key == "RxCoalesceSec":
        yield EthtoolSetting(interface, *_RX_DELAY), value.removesuffix("us")


def _plan_sysfs(source: Source, sysfs: dict[str, str], prefix: str, made: Plan) -> None:
    tuned = source.place(_TUNED)
    if not tuned.is_dir():
        lines = (f"w {path}{_WRITES}{value}\n" for path, value in sysfs.items())
        made.files[_TMPFILES] = _HEAD + "".join(lines)
        return
    base = next(each for each in _PROFILES if source.place(each).is_dir())
    path = f"{base}/{_PROFILE}"
    active = ""
    if (tuned / "active_profile").is_file():
        active = (tuned / "active_profile").read_text().strip()
    include = f"{_INCLUDE}{active}\n" if active and active != "beowire" else ""
    if active == "beowire":  # what was active before
        written = _own_lines(source, f"{prefix}{path}")
        include = "".join(f"{line}\n" for line in written if line.startswith(_INCLUDE))
    lines = (f"{path}={value}\n" for path, value in sysfs.items())
    made.files[path] = (
        f"{_HEAD}[main]\nsummary=Settings for the messages of a cluster\n{include}\n"
        f"[sysfs]\n{''.join(lines)}"
    )
    made.notes.append("Let TuneD use its profile: tuned-adm profile beowire")


def write(source: Source, made: Plan, log: Journal, prefix: str = "") -> Iterable[Step]:
    """Writes the files below `prefix`, each after the journal has what was there before."""
    for path, text in made.files.items():
        setting = ConfigurationSetting(str(Path(f"{prefix}{path}")))
        old = setting.read(source)
        if old == text:
            yield Step(setting.path, Result.DONE, "it stands there already")
            continue
        log.before(Change(setting, old, text))
        try:
            setting.write(source, text)
        except OSError as error:
            yield Step(setting.path, Result.REFUSED, (error.strerror or str(error)).lower())
            continue
        log.after(setting.read(source))
        yield Step(setting.path, Result.DONE, "written")
