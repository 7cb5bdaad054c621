# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line: one subcommand per noun, one way to report what went wrong."""

import errno
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from beowire import __version__, places, suggested, transcript
from beowire.errors import BeowireError
from beowire.lab import rootless
from beowire.terminal import note

# Each command is `app`, or this function, of this module; what it is for, as its own help begins. A
# test compares the two: an overview of all commands takes half a second to load from them.
_COMMANDS = {
    "lab": ("lab.cli", "app", "Make and use virtual clusters on this machine."),
    "bench": ("bench.cli", "app", "Compare transports."),
    "doctor": ("doctor.cli", "app", "Find what slows this node down, say why, and fix it."),
    "model": ("model.cli", "app", "Speedup: fit it, measure it, bound it."),
    "wan": ("wan.cli", "app", "Are distant nodes worth it for a program?"),
    "evidence": (
        "evidence.cli",
        "evidence",
        "Run the tables, figures and numbers of the papers again: do our measurements agree?",
    ),
    "report": (
        "report.cli",
        "report",
        "One page of any results: tables that sort, charts with values, files compared.",
    ),
    "demo": (
        "demo.cli",
        "demo_",
        "Show unmodified MPI programs over TCP and over Beowire, on a lab of four nodes.",
    ),
    "test": (
        "selftest.cli",
        "run_tests",
        "Run all tests; the last line says how many passed, failed and were skipped.",
    ),
    "info": ("info.cli", "info", "Show the links usable here, and why the others are not."),
    "env": ("env.cli", "env", "Print the settings by which a plain mpirun goes over Beowire."),
    "docs": (
        "documents.cli",
        "docs",
        "Build the documents as one site, with search; broken links are an error.",
    ),
    "status": (
        "status.cli",
        "status",
        "Show the endpoints that run here, or on a cluster, and who is slow, silent or lossy.",
    ),
    "report-bug": (
        "bug.cli",
        "report_bug",
        "Collect what a maintainer needs into one archive, with keys and names taken out.",
    ),
    "key": ("run.key_cli", "app", "The key that the nodes of a cluster share (BEOWIRE_KEY)."),
    "vm": (
        "vm.cli",
        "run",
        "Run a command under a stock kernel: vm -- CMD ARGS. Files are the host's, read-only.",
    ),
    "run": (
        "run.cli",
        "run",
        "Run an MPI program: run --lab NAME -n 4 --transport beowire -- PROGRAM ARGS.",
    ),
    "sockets": (
        "sockets.cli",
        "run",
        "Run a program whose TCP connections use Beowire where both ends have it.",
    ),
    "place": (
        "placement.cli",
        "place",
        "Show on which NUMA nodes a process runs and has its memory; bring both together.",
    ),
    "replicate": (
        "replicate.cli",
        "run",
        "Run a program from copies of its text and constants on the NUMA node where it runs.",
    ),
    "package": ("package.cli", "app", "Make packages for Debian, Ubuntu and distributions of rpm."),
    "completion": (
        "completion.cli",
        "completion",
        "Print a script that makes a shell complete this command's options and arguments.",
    ),
}
# Their options stop at the first argument, as what follows is another program's.
_RUNS_ANOTHER = ("vm", "run", "sockets", "replicate")


def _add(app: typer.Typer, name: str) -> None:
    module, what, _ = _COMMANDS[name]
    found = getattr(import_module(f"beowire.{module}"), what)
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=name)
    else:
        settings = {"allow_interspersed_args": False} if name in _RUNS_ANOTHER else {}
        app.command(name, context_settings=settings)(found)


def _outline(app: typer.Typer, name: str) -> None:
    """What an overview tells of a command, without loading it."""
    if _COMMANDS[name][1] == "app":
        app.add_typer(typer.Typer(help=about(name)), name=name)
    else:
        app.command(name, help=about(name))(lambda: None)


def command_line(words: Sequence[str] | None = None) -> typer.Typer:
    """What these words of a command line ask for: a command, or an overview of all. None: all
    commands, which take half a second to load."""
    app = typer.Typer(
        name="beowire",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        add_completion=False,
    )
    app.callback()(beowire)
    app.command()(version)
    named = None if words is None else next(iter(transcript.without(list(words))), "")
    for name in [named] if named in _COMMANDS else _COMMANDS:
        (_add if named is None or named == name else _outline)(app, name)
    return app


def about(name: str) -> str:
    """What an overview tells of a command."""
    return _COMMANDS[name][2]


def names() -> list[str]:
    """Of all commands."""
    return [*_COMMANDS, version.__name__]


def _tell(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


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
