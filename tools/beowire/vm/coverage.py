# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which lines of the kernel modules ran in a guest, by gcov.

The kernel counts for modules that were built so (CONFIG_GCOV_KERNEL) and hands out the counts in
debugfs, under the paths of their objects; the guest copies them to a directory of the host's.
"""

import json
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from beowire import places
from beowire.errors import BeowireError

_COUNTS = "/sys/kernel/debug/gcov"


@dataclass(frozen=True)
class Lines:
    """The lines of one source that have code, and those of them that ran."""

    all: frozenset[int]
    ran: frozenset[int]


def script(directory: Path) -> list[str]:
    """Lines of shell that copy a guest's counts to this directory."""
    # Such files tell no size, so that cp would make them empty.
    each = f'mkdir -p "{directory}/${{0%/*}}" && cat "$0" >"{directory}/$0"'
    return [
        f"cd {_COUNTS} || exit 1",
        f"find . -name '*.gcda' -exec sh -c {shlex.quote(each)} {{}} \\;",
    ]


def read(directory: Path) -> dict[Path, Lines]:
    """The counts in this directory, by source in the checkout, sorted by name."""
    gcov = places.program("gcov", "gcc")
    all_lines: dict[Path, set[int]] = {}
    ran_lines: dict[Path, set[int]] = {}
    for counts in sorted(directory.rglob("*.gcda")):
        notes = Path("/", counts.relative_to(directory)).with_suffix(".gcno")
        shutil.copy(notes, counts.with_suffix(".gcno"))
        done = subprocess.run(
            [gcov, "--json-format", "--stdout", counts.name],
            cwd=counts.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BeowireError(f"gcov does not understand {notes}: {done.stderr.strip()}")
        for told in json.loads(done.stdout)["files"]:
            source = Path(told["file"]).resolve()
            if not source.is_relative_to(places.root()):
                continue
            name = source.relative_to(places.root())
            for line in told["lines"]:
                all_lines.setdefault(name, set()).add(line["line_number"])
                if line["count"]:
                    ran_lines.setdefault(name, set()).add(line["line_number"])
    if not all_lines:
        raise BeowireError("The guest's kernel counted no lines.", "Use --kernel debug --modules.")
    return {
        name: Lines(frozenset(all_lines[name]), frozenset(ran_lines.get(name, ())))
        for name in sorted(all_lines)
    }


def merged(one: dict[Path, Lines], other: dict[Path, Lines]) -> dict[Path, Lines]:
    """What ran in either of two guests."""
    nothing = Lines(frozenset(), frozenset())
    pairs = {name: (one.get(name, nothing), other.get(name, nothing)) for name in {**one, **other}}
    return {name: Lines(a.all | b.all, a.ran | b.ran) for name, (a, b) in sorted(pairs.items())}


def table(lines: dict[Path, Lines]) -> list[str]:
    """A line of text for each source, and one for each folder of them."""
    told = []
    folders: dict[Path, list[Lines]] = {}
    for name, each in lines.items():
        folders.setdefault(name.parent, []).append(each)
        told.append(_row(str(name), len(each.ran), len(each.all)))
    for folder, inside in folders.items():
        ran, total = sum(len(each.ran) for each in inside), sum(len(each.all) for each in inside)
        told.append(_row(f"{folder}/", ran, total))
    return told


def _row(name: str, ran: int, total: int) -> str:
    return f"{name}: {ran} of {total} lines ran, {100 * ran / total:.1f} %"
