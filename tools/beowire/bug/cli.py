# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire report-bug`."""

import functools
import io
import os
import tarfile
import time
from pathlib import Path
from typing import Annotated

import typer

from beowire.bug.names import hosts, users
from beowire.bug.parts import PARTS, Part, tail
from beowire.bug.privacy import Cleaner
from beowire.errors import BeowireError
from beowire.terminal import note, out


def report_bug(
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="The archive, FILE.tar.gz.")
    ] = None,
    log: Annotated[
        list[Path] | None, typer.Option("--log", metavar="FILE", help="Add the end of this file.")
    ] = None,
    names: Annotated[
        bool, typer.Option("--names", help="Leave names of hosts and users, and addresses, in.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what goes in.")] = False,
) -> None:
    """Collect what a maintainer needs into one archive, with keys and names taken out."""
    parts = [*PARTS, *_logs(log or [])]
    if dry_run:
        for part in parts:
            out().print(f"{part.name:<20} {part.says}")
        return
    target = output or Path(time.strftime("beowire-bug-%Y%m%d-%H%M%S.tar.gz"))
    texts = {}
    for part in parts:
        note(f"reading {part.says}")
        texts[part.name] = part.read()
    cleaner = Cleaner(hosts(texts), users(texts), keep_names=names)
    _write(target, {name: cleaner.clean(text) for name, text in texts.items()})
    out().print(f"{target}: look at it before you send it (tar -xzf {target}).")


def _logs(files: list[Path]) -> list[Part]:
    return [
        Part(f"log-{number}.txt", f"the end of {file}", functools.partial(tail, file))
        for number, file in enumerate(files, 1)
    ]


def _write(target: Path, texts: dict[str, str]) -> None:
    """An archive for its owner alone, which takes nothing's place."""
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise BeowireError(
            f"{target} cannot be made: {error.strerror}.", "Name another place by --output."
        ) from error
    with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, text in texts.items():
            content = text.encode()
            entry = tarfile.TarInfo(f"{target.name.partition('.')[0]}/{name}")
            entry.size, entry.mode, entry.mtime = len(content), 0o600, int(time.time())
            archive.addfile(entry, io.BytesIO(content))
