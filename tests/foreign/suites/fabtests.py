# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""libfabric's fabtests: a server and a client, each on a node of its own."""

import re
import shlex
import subprocess
from pathlib import Path

from beowire.errors import BeowireError
from case import Case, by_status_and_skip

from suites.building import build, wanted

NOT_RUN = {61, 38}
"""ENODATA and ENOSYS: the provider does not offer what is tested."""
GROUPS = ("functional_tests", "short_tests")
GROUPS_LONG = (*GROUPS, "standard_tests")


def version(prefix: Path) -> str:
    """Of the libfabric that is installed there."""
    try:
        output = subprocess.run(
            [str(prefix / "bin" / "fi_info"), "--version"],
            capture_output=True,
            text=True,
            check=True,
            env=environment(prefix),
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise BeowireError(
            f"There is no libfabric in {prefix}: {error}.",
            "Install it with fi_info (apt-get install libfabric-bin libfabric-dev), or name "
            "another one by --libfabric.",
        ) from error
    return "libfabric " + output.partition("libfabric: ")[2].split()[0]


def environment(prefix: Path) -> dict[str, str]:
    """By which programs find it."""
    return {} if prefix == Path("/usr") else {"LD_LIBRARY_PATH": str(prefix.absolute() / "lib")}


def cases(source: Path, build_dir: Path, prefix: str, long: bool) -> list[Case]:
    """The tests that the suite's own script would start, of the groups with two programs."""
    wanted(source, "scripts/runfabtests.sh", "fabtests' source")
    log = build_dir / "build.log"
    if not (build_dir / "Makefile").exists():
        if not (source / "configure").exists():
            build(["./autogen.sh"], source, log)
        build([str(source / "configure"), f"--with-libfabric={prefix}"], build_dir, log)
    build(["make", "-j2"], build_dir, log)
    made = []
    for group in GROUPS_LONG if long else GROUPS:
        for line in listed((source / "scripts" / "runfabtests.sh").read_text(), group):
            program, *arguments = shlex.split(line)
            place = next((p for p in build_dir.glob(f"*/{program}") if p.is_file()), None)
            if place is None:
                place = build_dir / program
            made.append(
                Case(
                    "fabtests",
                    f"{group.removesuffix('_tests')}: {line}",
                    [str(place), *arguments],
                    by_status_and_skip(NOT_RUN),
                    limit_s=300.0 if group == "standard_tests" else 120.0,
                    environment=environment(Path(prefix)),
                )
            )
    return made


def listed(script: str, group: str) -> list[str]:
    """The lines of one of the script's lists."""
    match = re.search(rf"^{group}=\(\n(.*?)^\)", script, re.MULTILINE | re.DOTALL)
    return re.findall(r'^\s*"([^"]+)"', match.group(1), re.MULTILINE) if match else []
