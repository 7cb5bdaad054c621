# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What can stand in the place of an unfinished word of a command line."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import typer

from beowire import cli, transcript
from beowire.completion.scripts import SCRIPTS
from beowire.lab import lab

_FIRST = ("--help", "--report", "--version")


@dataclass(frozen=True)
class Answer:
    """A word that fits, and what it is; or that a file or directory does."""

    word: str = ""
    about: str = ""
    kind: Literal["plain", "file", "dir"] = "plain"

    def line(self) -> str:
        """As the scripts read it."""
        about = self.about.split("\n")[0].replace("\t", " ")
        return f"{self.kind}\t{self.word}\t{about}\n"


@dataclass
class _Place:
    """Where finished words lead: the command that they name, and what is to come next."""

    command: Any
    option: Any = None
    """Whose value is next."""
    arguments: int = 0
    """Of the command, that are there already."""
    no_options: bool = False

    def take(self, word: str) -> None:
        if self.option is not None:
            self.option = None
        elif word == "--" and not self.no_options:
            self.no_options = True
        elif word.startswith("-") and not self.no_options:
            found = _option(self.command, word)
            self.option = found if found is not None and not _is_switch(found) else None
        elif inner := getattr(self.command, "commands", {}).get(word):
            self.command, self.arguments = inner, 0
        else:
            self.arguments += 1
            settings = self.command.context_settings
            self.no_options |= not settings.get("allow_interspersed_args", True)

    def argument(self) -> Any:
        """The one that is next."""
        known = [each for each in self.command.params if not _is_option(each)]
        if self.arguments < len(known):
            return known[self.arguments]
        return known[-1] if known and known[-1].nargs == -1 else None


def answers(words: Sequence[str]) -> list[Answer]:
    """For the last of these words; those before it are finished, without the command's name."""
    *before, unfinished = _joined(words) or [""]
    if not transcript.without(before):  # it takes no command to be loaded
        if before[-1:] == ["--report"]:
            return [Answer(kind="file")]
        named = _FIRST if unfinished.startswith("-") else cli.names()
        return _beginning(named, unfinished)
    if before == ["completion"] and not unfinished.startswith("-"):
        return _beginning(SCRIPTS, unfinished)
    place = _Place(typer.main.get_command(cli.command_line(before)))
    for word in before:
        place.take(word)
    return _fitting(place, unfinished)


def _fitting(place: _Place, unfinished: str) -> list[Answer]:
    if place.option is not None:
        return _values(place.option, unfinished)
    if unfinished.startswith("-") and not place.no_options:
        name, equals, value = unfinished.partition("=")
        if equals:
            found = _option(place.command, name)
            told = [] if found is None else _values(found, value)
            return [replace(each, word=f"{name}={each.word}") for each in told]
        told = [
            Answer(name, each.help or "")
            for each in place.command.params
            if _is_option(each)
            for name in (*each.opts, *each.secondary_opts)
        ]
        told.append(Answer("--help", "Show this message and exit."))
        return [each for each in told if each.word.startswith(unfinished)]
    if inner := getattr(place.command, "commands", None):
        told = [Answer(name, each.get_short_help_str()) for name, each in inner.items()]
        return [each for each in told if each.word.startswith(unfinished)]
    argument = place.argument()
    return [] if argument is None else _values(argument, unfinished)


def _values(parameter: Any, unfinished: str) -> list[Answer]:
    choices = getattr(parameter.type, "choices", None)
    if choices is not None:
        return _beginning(map(str, choices), unfinished)
    if "--lab" in parameter.opts:
        return _beginning(lab.names(), unfinished)
    if hasattr(parameter.type, "file_okay"):
        return [Answer(kind="file" if parameter.type.file_okay else "dir")]
    return []


def _beginning(words: Iterable[str], unfinished: str) -> list[Answer]:
    return [Answer(each) for each in words if each.startswith(unfinished)]


def _is_option(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "option")


def _is_switch(option: Any) -> bool:
    return bool(option.is_flag or option.count)


def _option(command: Any, word: str) -> Any:
    """The one that this word names, without a value of its own."""
    if "=" in word:
        return None
    for each in command.params:
        if _is_option(each) and word in (*each.opts, *each.secondary_opts):
            return each
    return None


def _joined(words: Sequence[str]) -> list[str]:
    """Without the equals signs of which bash makes words of their own: --lab=a is --lab a."""
    parts = list(words)
    for place in range(len(parts) - 1, 0, -1):
        if parts[place] == "=" and parts[place - 1].startswith("--"):
            parts[place : place + 1] = [] if place + 1 < len(parts) else [""]
    return parts
