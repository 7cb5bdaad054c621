# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line: one subcommand per noun, one way to report what went wrong."""

import errno
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from beowire import __version__, places, suggested, transcript
from beowire.errors import BeowireError
from beowire.lab import rootless
from beowire.terminal import note

app = typer.Typer(
    name="beowire",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
)

# Each command is `app`, or this function, of this module. Its options stop at the first argument
# where what follows is another program's.
_COMMANDS = {
    "lab": ("lab.cli", "app"),
    "bench": ("bench.cli", "app"),
    "doctor": ("doctor.cli", "app"),
    "model": ("model.cli", "app"),
    "wan": ("wan.cli", "app"),
    "evidence": ("evidence.cli", "evidence"),
    "report": ("report.cli", "report"),
    "demo": ("demo.cli", "demo_"),
    "test": ("selftest.cli", "run_tests"),
    "info": ("info.cli", "info"),
    "env": ("env.cli", "env"),
    "docs": ("documents.cli", "docs"),
    "status": ("status.cli", "status"),
    "report-bug": ("bug.cli", "report_bug"),
    "key": ("run.key_cli", "app"),
    "vm": ("vm.cli", "run"),
    "run": ("run.cli", "run"),
    "sockets": ("sockets.cli", "run"),
    "place": ("placement.cli", "place"),
    "replicate": ("replicate.cli", "run"),
    "package": ("package.cli", "app"),
    "completion": ("completion.cli", "completion"),
}
_RUNS_ANOTHER = ("vm", "run", "sockets", "replicate")


@cache
def _add(name: str) -> None:
    module, what = _COMMANDS[name]
    found = getattr(import_module(f"beowire.{module}"), what)
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=name)
    else:
        settings = {"allow_interspersed_args": False} if name in _RUNS_ANOTHER else {}
        app.command(name, context_settings=settings)(found)


def command_line(words: Sequence[str] = ()) -> typer.Typer:
    """The commands that these words ask for, which may be all: they take half a second to load."""
    named = next(iter(transcript.without(list(words))), "")
    for name in [named] if named in _COMMANDS else _COMMANDS:
        _add(name)
    return app


def names() -> list[str]:
    """Of all commands."""
    return [*_COMMANDS, version.__name__]


def _tell(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


@app.callback()
def beowire(
    report_file: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FILE", help="Add what the command finds to this HTML file."
        ),
    ] = None,
    _: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_tell, help="Print the version."),
    ] = False,
) -> None:
    """Faster messages on ordinary Ethernet clusters."""
    if report_file is not None:
        transcript.begin(report_file, sys.argv[1:])


@app.command()
def version() -> None:
    """Print the version."""
    print(f"beowire {__version__}")


def main() -> None:
    try:
        rootless.enter(sys.argv[1:])
        with transcript.kept(), suggested.named():
            command_line(sys.argv[1:])(prog_name="beowire")
    except BeowireError as error:
        note(str(error))
        sys.exit(error.code)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        where = error.filename or places.state_path()
        note(f"No space is left for {where}.\n  Free some there; TMPDIR and BEOWIRE_STATE move it.")
        sys.exit(1)
    except KeyboardInterrupt:
        note("interrupted")
        sys.exit(130)
    finally:
        rootless.end_if_unused()
