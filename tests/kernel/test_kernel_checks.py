# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What Linux asks of what is merged into it, of the kernel host and the engine that it compiles:
checkpatch.pl --strict, sparse, and the kernel's own rules for Coccinelle. Nothing is found but what
checks.toml allows, each with its reason, and that list has nothing that is not found."""

import concurrent.futures
import os
import re
import resource
import shutil
import subprocess
import tempfile
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.vm import machine, module, scripts

HERE = Path(__file__).resolve().parent
LIMIT_S = 300  # of one rule of Coccinelle's, on a busy machine
NOT_RUN = ("badzero", "check_bq27xxx_data")  # written in OCaml, whose compiler they want


@dataclass(frozen=True)
class Finding:
    """What a tool says of a line, and that line."""

    file: str
    line: int
    says: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.says}\n    {self.text.strip()}"


@dataclass(frozen=True)
class Allowed:
    """Findings of `tool` that say `says`, in files whose names fit `files`, of lines with
    `text`."""

    tool: str
    says: str
    why: str
    files: str = "*"
    text: str = ""

    def covers(self, found: Finding) -> bool:
        fits = self.says in found.says and self.text in found.text
        return fits and fnmatch(found.file, self.files)


def listed(tool: str) -> list[Allowed]:
    rows = tomllib.loads((HERE / "checks.toml").read_text())["allowed"]
    return [Allowed(**row) for row in rows if row["tool"] == tool]


def sources(endings: str) -> list[str]:
    """What becomes a part of the kernel, or of what programs include."""
    root = places.root()
    found = [*(root / "hosts" / "kernel").glob(f"*.{endings}")]
    found += (root / "engine").rglob(f"*.{endings}")
    found += [root / "common" / name for name in shared() if fnmatch(name, f"*.{endings}")]
    return sorted(str(each.relative_to(root)) for each in found)


def shared() -> list[str]:
    """The files of common/ that the module's Makefile lays beside it."""
    makefile = (places.root() / "hosts" / "kernel" / "Makefile").read_text()
    patterns = re.findall(r"\$\(ROOT\)/common/([^ )]+)", makefile)
    there = sorted(each.name for each in (places.root() / "common").iterdir())
    return [name for name in there if any(fnmatch(name, pattern) for pattern in patterns)]


def test_every_file_of_the_module_is_looked_at() -> None:
    """All that its own files include between quotes lies in one of them, or in the engine."""
    looked_at = sources("[ch]")
    names = {Path(each).name for each in looked_at}
    assert {"sealing.c", "sealing.h", "beowire_socket.h"} <= set(shared())
    for file in looked_at:
        text = (places.root() / file).read_text()
        for named in re.findall(r'^#include "(.+)"$', text, re.MULTILINE):
            assert Path(named).name in names, f"{file} includes {named}"


def finding(file: str, line: int, says: str) -> Finding:
    lines = (places.root() / file).read_text().splitlines()
    return Finding(file, line, says, lines[line - 1] if 0 < line <= len(lines) else "")


def judge(tool: str, found: list[Finding]) -> None:
    """Everything is allowed, and everything allowed is found."""
    allowed = listed(tool)
    bad = [each for each in found if not any(row.covers(each) for row in allowed)]
    assert not bad, "\n".join(str(each) for each in bad)
    idle = [row for row in allowed if not any(row.covers(each) for each in found)]
    assert not idle, f"not found any more: {idle}"


def the_scripts() -> Path:
    try:
        return scripts.find()
    except BeowireError as error:
        pytest.skip(f"the kernel's scripts cannot be had: {error}")


def test_checkpatch_is_content() -> None:
    checks = the_scripts()
    command = [places.program("perl", "perl"), str(checks / "checkpatch.pl")]
    command += ["--strict", "--no-tree", "--no-summary", "--terse", "--show-types"]
    command += ["--max-line-length=100", "-f", *(f"{places.root()}/{s}" for s in sources("[ch]"))]
    with tempfile.TemporaryDirectory() as elsewhere:  # it leaves a list of names where it runs
        done = subprocess.run(
            command, cwd=elsewhere, capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
    assert done.returncode in (0, 1), done.stderr
    output = done.stdout.replace(f"{places.root()}/", "")
    said = re.findall(r"^(\S+?):(\d+): ((?:ERROR|WARNING|CHECK):.*)$", output, re.MULTILINE)
    judge("checkpatch", [finding(file, int(line), says) for file, line, says in said])


def test_sparse_is_content() -> None:
    try:
        kernel = machine.find_kernel("")
    except BeowireError as error:
        pytest.skip(f"there are no headers of a kernel here: {error}")
    places.program("sparse", "sparse")
    built = module.build(kernel).files[0].parent
    with tempfile.TemporaryDirectory(dir=places.build_dir()) as stage:
        # Kbuild compiles nothing that was compiled by the same command: sparse alone runs.
        shutil.copytree(built, stage, symlinks=True, dirs_exist_ok=True)
        for command_file in Path(stage).rglob(".*.cmd"):
            command_file.write_text(command_file.read_text().replace(str(built), stage))
        command = [places.program("make", "make"), "-C", module.headers(kernel), f"M={stage}"]
        command += ["-s", "C=2", "KCFLAGS=-Werror", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"]
        done = subprocess.run(
            command, cwd=places.root(), capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
        said = re.findall(
            rf"^{stage}/(\S+?):(\d+):\d+: ((?:warning|error): .*)$", done.stderr, re.MULTILINE
        )
    assert done.returncode == 0, done.stderr
    found = []
    for name, line, says in said:
        file = name if name.startswith("engine/") else f"hosts/kernel/{name}"
        file = f"common/{name}" if name in shared() else file
        found.append(finding(file, int(line), says))
    judge("sparse", found)


def _by_rule(rule: Path, files: list[str]) -> tuple[str, str]:
    """What Coccinelle reports, and what went wrong."""
    options = re.search(r"^// Options: *(.*)$", rule.read_text(), re.MULTILINE)
    command = [places.program("spatch", "coccinelle"), "-D", "report", "--very-quiet"]
    command += ["--cocci-file", str(rule), *(options[1].split() if options else [])]
    command += ["-I", "engine", "-I", "hosts/kernel", "-I", "common", *files]
    done = subprocess.run(
        command, cwd=places.root(), capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    return done.stdout, done.stderr if done.returncode else ""


@pytest.mark.long
def test_coccinelle_is_content() -> None:
    rules = [
        rule
        for rule in sorted((the_scripts() / "coccinelle").rglob("*.cocci"))
        if rule.stem not in NOT_RUN
    ]
    files = sources("c")
    # One of the rules goes deep.
    _, most = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (most, most))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        told = list(pool.map(lambda rule: _by_rule(rule, files), rules))
    wrong = [f"{rule.stem}: {errors}" for rule, (_, errors) in zip(rules, told, strict=True)]
    assert not [each for each in wrong if not each.endswith(": ")], wrong
    found = []
    for text, _ in told:
        for file, line, says in re.findall(r"^(\S+?):(\d+):[\d-]+: (.*)$", text, re.MULTILINE):
            found.append(finding(file, int(line), says))
    judge("coccinelle", found)
