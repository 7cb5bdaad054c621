# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The settings that `beowire env` prints, as shells and module files execute them, and that an MPI
goes over Beowire by them alone."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from beowire import places
from beowire.env import settings
from beowire.errors import BeowireError
from beowire_cli import beowire

AWKWARD = Path("/opt/a b'c\"d$e`f\\g!h[i]{j}#k;l")
PAIR = r'"((?:[^"\\]|\\.)*)"'


def of_sh(text: str) -> dict[str, str]:
    words = ["sh", "-c", f"{text}\nexec env -0"]
    told = subprocess.run(words, capture_output=True, text=True, check=True, env={}).stdout
    pairs = (each.partition("=") for each in told.split("\0") if each)
    return {name: value for name, _, value in pairs if name not in ("PWD", "_", "SHLVL", "OLDPWD")}


def of_csh(text: str) -> dict[str, str]:
    """As csh(1) has it: what is between apostrophes stands for itself but for \\!."""
    found = {}
    for line in text.splitlines():
        word = re.fullmatch(r"setenv (\w+) ((?:'[^']*'|\\')+)", line)
        assert word is not None, line
        parts = re.findall(r"'([^']*)'|\\(')", word[2])
        found[word[1]] = "".join(a or b for a, b in parts).replace("\\!", "!")
        assert not re.search(r"(?<!\\)!", word[2])
    return found


def of_lua(text: str) -> dict[str, str]:
    first, *lines = text.splitlines()
    assert re.fullmatch(rf"whatis\({PAIR}\)", first)
    found = {}
    for line in lines:
        words = re.fullmatch(rf"setenv\({PAIR}, {PAIR}\)", line)
        assert words is not None, line
        found[words[1]] = re.sub(r"\\(.)", r"\1", words[2])
    return found


def of_tcl(text: str) -> dict[str, str]:
    """By a Tcl that knows both commands of module files."""
    assert text.startswith("#%Module1.0\n")
    known = "proc module-whatis {text} {}\nproc setenv {n v} { puts -nonewline $n=$v\\0 }\n"
    done = subprocess.run(["tclsh"], input=known + text, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return {
        name: value for name, _, value in (e.partition("=") for e in done.stdout.split("\0")[:-1])
    }


@pytest.mark.parametrize(
    ("kind", "read"), [("sh", of_sh), ("csh", of_csh), ("lmod", of_lua), ("tcl", of_tcl)]
)
@pytest.mark.parametrize("directory", [Path("/usr/lib/libfabric"), AWKWARD])
def test_each_kind_means_the_same(kind: str, read: object, directory: Path) -> None:
    those = settings.variables(directory)
    assert callable(read)
    assert read(settings.text(kind, those)) == those
    assert those["FI_PROVIDER_PATH"] == str(directory)


@pytest.mark.parametrize("path", ["/a\nb", "/a:b", "/a\x1bb", "/a\rb"])
def test_a_path_that_could_be_another_command_is_refused(path: str) -> None:
    with pytest.raises(BeowireError, match="colon or a control character"):
        settings.variables(Path(path))


def test_they_are_those_of_the_launcher_that_is_installed() -> None:
    text = places.source("packaging/debian/openmpi.conf").read_text()
    lines = [line.partition("=") for line in text.splitlines() if not line.startswith("#")]
    file = {f"OMPI_MCA_{name.strip()}": value.strip() for name, _, value in lines}
    told = settings.variables(Path("/x"))
    assert {name: value for name, value in told.items() if name.startswith("OMPI_")} == file


def test_open_mpi_goes_over_beowire_by_them_alone(tmp_path: Path) -> None:
    """Between two ranks here: each tells what its endpoint counted."""
    done = beowire("env")
    assert done.status == 0, done.errors
    tmp_path.chmod(0o700)
    run = "mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none -n 2"
    script = f"{done.output}\n{run} {places.example('pi')} --precision 1e-3"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OMPI_")}
    words = ["sh", "-c", script]
    environment = kept | {"BEOWIRE_STATS": str(tmp_path)}
    ran = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert "on 2 ranks" in ran.stdout
    counted = [json.loads(each.read_text()) for each in tmp_path.glob("*.json")]
    assert len(counted) == 2
    assert all(each["links"]["local"]["tx_payload"] > 0 for each in counted)


def test_another_shell_is_refused() -> None:
    done = beowire("env", "--shell", "fish")
    assert done.status == 1
    assert "sh, csh, lmod, tcl" in done.errors
