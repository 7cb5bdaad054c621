# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a setting's value should be, as values: most checks are one setting and one rule."""

from collections.abc import Callable
from dataclasses import dataclass

from beowire.doctor.check import ALL_GOALS, Bad, Change, Check, Fix, Good, Sure, Verdict, Weight
from beowire.doctor.node import Goal, Malformed, Node
from beowire.doctor.setting import FileSetting, Setting


@dataclass(frozen=True)
class Rule:
    """`good` in words, whether a text read holds it, and the text that would."""

    good: str
    holds: Callable[[str], bool]
    value: Callable[[str], str]


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Malformed(f"{text.strip()[:60]!r} is no number") from None


def exactly(value: int) -> Rule:
    return Rule(str(value), lambda text: _number(text) == value, lambda _: str(value))


def at_least(least: int) -> Rule:
    return Rule(f"at least {least}", lambda text: _number(text) >= least, lambda _: str(least))


def at_most(most: int) -> Rule:
    return Rule(f"at most {most}", lambda text: _number(text) <= most, lambda _: str(most))


def none_of(bad: set[str], better: str) -> Rule:
    listed = " or ".join(sorted(bad))
    return Rule(f"not {listed}", lambda text: text.strip() not in bad, lambda _: better)


def field_at_least(position: int, least: int, what: str) -> Rule:
    """Of several numbers in a file, the one at `position`, counted from 0. Those after it are
    raised along, since the kernel wants them in order."""

    def raised(text: str) -> str:
        fields = [_number(word) for word in text.split()]
        return " ".join(
            str(max(each, least) if index >= position else each)
            for index, each in enumerate(fields)
        )

    def holds(text: str) -> bool:
        fields = text.split()
        if len(fields) <= position:
            raise Malformed(f"{text.strip()[:60]!r} has no field {position + 1}")
        return _number(fields[position]) >= least

    return Rule(f"{what} at least {least}", holds, raised)


def judged(node: Node, setting: Setting, rule: Rule) -> Verdict:
    """The verdict on one setting; OSError where it cannot be read."""
    old = setting.read(node)
    read = f"{setting} = {' '.join(old.split())}"
    if rule.holds(old):
        return Good(read)
    return Bad(read, rule.good, (Change(setting, old, rule.value(old)),))


def sysctl(
    name: str,
    setting: str,
    rule: Rule | Callable[[Node], Rule],
    *,
    title: str,
    why: str,
    sources: tuple[str, ...],
    sure: Sure,
    weight: Weight,
    fix: Fix = Fix.LIVE,
    goals: frozenset[Goal] = ALL_GOALS,
) -> Check:
    """The check that one sysctl, by its dotted name, holds a rule."""
    path = "/proc/sys/" + setting.replace(".", "/")

    def look(node: Node) -> Verdict:
        found = judged(node, FileSetting(path), rule(node) if callable(rule) else rule)
        if isinstance(found, Bad) and fix is Fix.REPORT:
            (change,) = found.changes
            advice = f"If nobody needs it: {change.setting.command(change.new)}"
            return Bad(found.read, found.good, advice=advice)
        return found

    return Check(
        name=name,
        title=title,
        why=why,
        sources=sources,
        reads=(path,),
        sure=sure,
        weight=weight,
        fix=fix,
        goals=goals,
        look=look,
    )
