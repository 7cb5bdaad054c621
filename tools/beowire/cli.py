# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line: one subcommand per noun, one way to report what went wrong."""

import errno
import sys

import typer

from beowire import (
    __version__,
    advise_cli,
    bench_cli,
    demo_cli,
    doctor_cli,
    info_cli,
    lab_cli,
    lab_rootless,
    model_cli,
    places,
    run_cli,
    selftest_cli,
    vm_cli,
)
from beowire.errors import BeowireError
from beowire.terminal import note

app = typer.Typer(
    name="beowire",
    help="Faster messages on ordinary Ethernet clusters.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
)
app.add_typer(lab_cli.app, name="lab")
app.add_typer(bench_cli.app, name="bench")
app.add_typer(doctor_cli.app, name="doctor")
app.add_typer(model_cli.app, name="model")
app.add_typer(advise_cli.app, name="wan")
app.command("demo")(demo_cli.demo_)
app.command("test")(selftest_cli.run_tests)
app.command("info")(info_cli.info)
app.command("vm", context_settings={"allow_interspersed_args": False})(vm_cli.run)
app.command("run", context_settings={"allow_interspersed_args": False})(run_cli.run)


@app.command()
def version() -> None:
    """Print the version."""
    print(f"beowire {__version__}")


def main() -> None:
    try:
        lab_rootless.enter(sys.argv[1:])
        app(prog_name="beowire")
    except BeowireError as error:
        note(str(error))
        sys.exit(error.code)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        where = error.filename or places.state_dir()
        note(f"No space is left for {where}.\n  Free some there; TMPDIR and BEOWIRE_STATE move it.")
        sys.exit(1)
    except KeyboardInterrupt:
        note("interrupted")
        sys.exit(130)
    finally:
        lab_rootless.end_if_unused()
