# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An examination, a check and a change, for people and for machines."""

import contextlib
import textwrap
from typing import Any

from beowire import __version__
from beowire.doctor.check import Change, Check, Fix, Weight
from beowire.doctor.examine import Examination, Outcome, State
from beowire.doctor.facts import facts
from beowire.doctor.node import Interface, Node
from beowire.doctor.setting import FileSetting
from beowire.doctor.words import counted

_WIDTH = 100
_FEW = 3
_OWN_SETTINGS = {"net.ipv4.tcp_mem", "net.netfilter.nf_conntrack_count"}
"""Sysctls that follow the node's memory or its load."""


def _rate(bits: int | None) -> str:
    if bits is None:
        return "speed not known"
    return f"{bits / 1e9:g} Gbit/s" if bits >= 10**9 else f"{bits / 1e6:g} Mbit/s"


def _interface(interface: Interface) -> str:
    kind = interface.driver or interface.kind or "virtual"
    return f"{interface.name} ({kind}, {_rate(interface.speed_bits)})"


def _wrapped(text: str, indent: int) -> str:
    margin = " " * indent
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=margin,
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
    )


def fix_lines(outcome: Outcome) -> list[str]:
    """How a finding is fixed, in lines."""
    assert outcome.bad is not None
    lines = []
    for change in outcome.bad.changes[:_FEW]:
        lines.append(change.setting.command(change.new))
    more = len(outcome.bad.changes) - _FEW
    if more > 0:
        lines.append(f"and {more} more of this kind")
    if outcome.bad.advice:
        lines.append(outcome.bad.advice)
    return lines


def _name(node: Node) -> str:
    """As the kernel has it; a recorded tree may lack it, or the kernel's release."""
    try:
        return node.host
    except OSError:
        return "unknown node"


def _release(node: Node) -> str:
    try:
        return node.release
    except OSError:
        return "unknown"


def verdict(done: Examination, *, verbose: bool = False) -> str:
    """The readable verdict, worst first."""
    node = done.node
    names = ", ".join(_interface(each) for each in node.interfaces) or "none with an address"
    lines = [
        f"{_name(node)}, kernel {_release(node)}, goal {node.goal}, round trip "
        f"{node.round_trip_s * 1000:g} ms",
        f"interfaces: {names}",
    ]
    lines += [f"trouble: {each}" for each in done.troubles]
    weight = None
    for each in done.findings():
        assert each.bad is not None
        if each.weight != weight:
            weight = each.weight
            lines += ["", weight.name.capitalize()]
        lines.append(f"  {each.subject}: {each.said}; good is {each.bad.good}")
        lines.append(_wrapped(each.check.why, 6))
        fix = each.check.fix
        for number, text in enumerate(fix_lines(each)):
            mark = f"{fix}: " if number == 0 else ""
            lines.append(_wrapped(f"{mark}{text}", 6))
    lines.append("")
    if verbose:
        lines += _listed(done, State.GOOD) + _listed(done, State.ABSENT)
    lines += _listed(done, State.DENIED) + _listed(done, State.FAILED)
    lines.append(_summary(done))
    return "\n".join(lines)


def _listed(done: Examination, state: State) -> list[str]:
    found = done.of(state)
    if not found:
        return []
    return [
        f"{str(state).capitalize()}:",
        *(f"  {each.subject}: {each.said}" for each in found),
        "",
    ]


def _summary(done: Examination) -> str:
    counts = {state: len(done.of(state)) for state in State}
    text = (
        f"{len(done.outcomes)} looked at: {counted(counts[State.BAD], 'finding')}, "
        f"{counts[State.GOOD]} good, {counts[State.ABSENT]} not here"
    )
    if denied := counts[State.DENIED]:
        text += f", {denied} {'needs' if denied == 1 else 'need'} root"
    if counts[State.FAILED]:
        text += f", {counts[State.FAILED]} cannot be judged"
    if counts[State.BAD]:
        text += (
            ".\nWhy: beowire doctor --why CHECK. What can be fixed: beowire doctor fix --dry-run"
        )
    return text + "."


def explained(check: Check) -> str:
    """All about a check."""
    kinds = {
        Fix.LIVE: "live: takes effect at once, nothing is disturbed",
        Fix.INTERRUPTS: "the link may be down for seconds",
        Fix.REBOOT: "by hand; takes effect after a reboot",
        Fix.REPORT: "by hand; the doctor reports and leaves it alone",
    }
    rows = (
        ("matters", check.why),
        ("goals", ", ".join(sorted(check.goals))),
        ("reads", "; ".join(check.reads)),
        ("source", "; ".join(check.sources)),
        ("sure", str(check.sure)),
        ("costs", Weight(check.weight).name.lower()),
        ("fix", kinds[check.fix]),
    )
    lines = [f"{check.name}: {check.title}"]
    for name, text in rows:
        body = _wrapped(text, 11).lstrip()
        lines.append(f"  {name:<9}{body}")
    return "\n".join(lines)


def change_lines(change: Change) -> list[str]:
    """A change, and how it is undone."""
    return [change.setting.command(change.new), f"  undo: {change.setting.command(change.old)}"]


def as_json(done: Examination) -> dict[str, Any]:
    """The examination for machines."""
    node = done.node
    return {
        "version": __version__,
        "host": _name(node),
        "kernel": _release(node),
        "goal": str(node.goal),
        "round_trip_s": node.round_trip_s,
        "interfaces": [
            {
                "name": each.name,
                "driver": each.driver,
                "kind": each.kind,
                "speed_bits": each.speed_bits,
                "mtu": each.link["mtu"],
                "hardware": each.link.get("address") or "",
                "addresses": each.link["addresses"],
            }
            for each in node.interfaces
        ],
        "settings": _settings(done),
        "facts": facts(node),
        "troubles": done.troubles,
        "outcomes": [_outcome(each) for each in done.outcomes],
    }


def rows(done: Examination) -> list[dict[str, Any]]:
    """A row for each check: the findings first, the worst on top."""
    found = done.findings()
    rest = [each for each in done.outcomes if each.state is not State.BAD]
    return [
        {
            "check": each.check.name,
            "interface": each.interface or None,
            "state": str(each.state),
            "weight": each.weight.name.lower() if each.bad else None,
            "read": each.said,
            "good": each.bad.good if each.bad else None,
            "fix": str(each.check.fix) if each.bad else None,
        }
        for each in [*found, *rest]
    ]


def _settings(done: Examination) -> dict[str, str]:
    """The sysctls that were found good: each value may be good, and two of them not alike."""
    found: dict[str, str] = {}
    for each in done.of(State.GOOD):
        for path in each.check.reads:
            if path.startswith("/proc/sys/") and not set("*") & set(path):
                name = FileSetting(path).sysctl
                if name not in _OWN_SETTINGS:
                    with contextlib.suppress(OSError):
                        found[name] = " ".join(done.node.text(path).split())
    return found


def _outcome(each: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = {
        "check": each.check.name,
        "interface": each.interface,
        "state": str(each.state),
        "read": each.said,
    }
    if each.bad is not None:
        found |= {
            "good": each.bad.good,
            "weight": each.weight.name.lower(),
            "why": each.check.why,
            "sources": list(each.check.sources),
            "sure": str(each.check.sure),
            "fix": str(each.check.fix),
            "advice": each.bad.advice,
            "changes": [
                {
                    "setting": str(change.setting),
                    "old": change.old,
                    "new": change.new,
                    "command": change.setting.command(change.new),
                    "undo": change.setting.command(change.old),
                }
                for change in each.bad.changes
            ],
        }
    return found
