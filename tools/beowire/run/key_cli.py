# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire key`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from beowire import installed, places, settings
from beowire.errors import BeowireError
from beowire.run import key
from beowire.run.key import Told
from beowire.run.options import HostFile, Hosts, Lab, Ssh, choose_cluster
from beowire.terminal import note, out

app = typer.Typer(
    no_args_is_help=True, help="The key that the nodes of a cluster share (BEOWIRE_KEY)."
)

AsJson = Annotated[bool, typer.Option("--json", help="For machines.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="The file with the key.")]


@app.command()
def new(
    file: File,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make a key, for this user alone to read."""
    key.make(file, replace=force)
    told = _usable(file)
    _show(file, told, as_json=as_json)
    if not as_json:
        name = shlex.quote(str(key.full(file)))
        note(f"copy it to each host: scp -p {name} HOST:{name}")


@app.command()
def show(file: File, as_json: AsJson = False) -> None:
    """Print the fingerprint of a key, and nothing else of it."""
    _show(file, _usable(file), as_json=as_json)


@app.command()
def check(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="The file with the key; else BEOWIRE_KEY's."),
    ] = None,
    lab: Lab = None,
    hosts: Hosts = None,
    hostfile: HostFile = None,
    ssh: Ssh = "ssh",
    as_json: AsJson = False,
) -> None:
    """Fail unless all hosts have the same key in this file, and can use it."""
    named = file or Path(settings.get("BEOWIRE_KEY"))
    if named == Path():
        raise BeowireError("Which key?", "Name its file, or set BEOWIRE_KEY.")
    where = choose_cluster(lab, hosts, hostfile, ssh, "")
    named = key.full(named)
    told = key.look_everywhere(where, named)
    if as_json:
        same = len({each.fingerprint for each in told.values()}) == 1
        hosts_told = {host: each.as_json() for host, each in told.items()}
        usable = same and all(each.fingerprint for each in told.values())
        whole = {"file": str(named), "same": usable, "hosts": hosts_told}
        print(places.json_text(whole), end="")
    else:
        from rich.table import Table

        table = Table("host", "fingerprint", title=f"Key {named}", title_justify="left")
        for host, each in told.items():
            table.add_row(host, str(each))
        out().print(table)
    key.agreed(named, told)


def _usable(file: Path) -> Told:
    told = key.look(file)
    if told.fingerprint is None:
        raise BeowireError(
            f"{file} is no key: {told.why}.", f"{installed.COMMAND} key new {file}   makes one."
        )
    return told


def _show(file: Path, told: Told, *, as_json: bool) -> None:
    if as_json:
        print(places.json_text({"file": str(file), "fingerprint": told.fingerprint}), end="")
    else:
        out().print(f"{told.fingerprint}  {file}")
