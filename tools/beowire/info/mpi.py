# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which transport each MPI that is installed would choose between nodes, and what changes it.

Open MPI tells itself which of its settings hold and who set them. For this to hold on other nodes
they must be installed alike; nothing is started here.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from beowire.run import mpi
from beowire.run.mpi import Installation

_PROVIDER = "libbeowire-fi.so"
_OFI = "mtl_ofi_provider_include"
_PRESET = Path("/etc/beowire/openmpi.conf")
"""Settings that the launcher of the package openmpi-beowire makes, as variables."""
_BLANKS = " \t\r\f\v"
"""Around names and values of settings."""
_PLACES = ("lib/*/libfabric", "lib64/libfabric", "lib/libfabric")
"""Below /usr and /usr/local: where libfabric of distributions looks for providers."""


@dataclass(frozen=True)
class Choice:
    """What an MPI would do between nodes, if a job were started with what is set here."""

    mpi: str
    launcher: str
    transport: str
    """`beowire`, `tcp`, or `other`: what that is, is not known."""
    why: str
    change: str
    """What makes it choose otherwise."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Setting:
    """A setting of Open MPI and who made it."""

    value: str = ""
    source: str = "default"

    def allows(self, component: str) -> bool:
        """Whether this list of components, which ^ turns into one of those left out, has it."""
        names = self.value.removeprefix("^").split(",")
        if self.value.startswith("^"):
            return component not in names
        return not self.value or component in names

    @property
    def by(self) -> str:
        return {"environment": "a variable OMPI_MCA_... that is set"}.get(self.source, self.source)


def choices() -> list[Choice]:
    """Of all MPIs on the search path."""
    provider = provider_path(os.environ)
    return [_choice(each, provider) for each in mpi.on_search_path()]


def provider_path(variables: Mapping[str, str], usr: Path = Path("/usr")) -> Path | None:
    """The provider that libfabric would load; None: it would find none."""
    if given := variables.get("FI_PROVIDER_PATH"):
        places = [Path(each.lstrip("@")) for each in given.split(":") if each]
    else:
        roots = (usr, usr / "local")
        places = [found for root in roots for each in _PLACES for found in sorted(root.glob(each))]
    return next((each / _PROVIDER for each in places if (each / _PROVIDER).is_file()), None)


def _choice(one: Installation, provider: Path | None) -> Choice:
    preset = {}
    if one.launcher.resolve().name.endswith(".beowire"):
        preset = presets(_PRESET, Path.home() / ".openmpi" / "mca-params.conf", os.environ)
    told = one.told_about({f"OMPI_MCA_{name}": value for name, value in preset.items()})
    if one.family == "mpich":
        found = of_mpich(told, provider, os.environ)
    else:
        made = settings(told)
        made |= {name: Setting(value, str(_PRESET)) for name, value in preset.items()}
        found = of_openmpi(made, "mca:mtl:ofi:" in told, provider, os.environ)
    return Choice(one.name, str(one.launcher), *found)


def presets(file: Path, own: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """Which settings of the file that launcher makes: none that the user has made, in a variable or
    in a file of his own."""
    theirs = _pairs(own)
    return {
        name: value
        for name, value in _pairs(file).items()
        if name not in theirs and f"OMPI_MCA_{name}" not in variables
    }


def _pairs(file: Path) -> dict[str, str]:
    """As the launcher (packaging/debian/mpirun.beowire) reads them: of lines with one name the last
    counts, bytes 0 are left out, and a file that cannot be read has none."""
    try:
        text = file.read_bytes().decode(errors="replace") if file.is_file() else ""
    except OSError:
        return {}
    lines = (line.partition("=") for line in text.replace("\0", "").split("\n"))
    pairs = ((name.strip(_BLANKS), value.strip(_BLANKS)) for name, equals, value in lines if equals)
    return {name: value for name, value in pairs if re.fullmatch("[A-Za-z0-9_]+", name)}


def settings(told: str) -> dict[str, Setting]:
    """Those that choose a transport, from what `ompi_info --all --parsable` prints."""
    parts: dict[str, dict[str, str]] = {}
    pattern = rf"^mca:\w+:\w+:param:(pml|mtl|{_OFI}):(value|source):(.*)$"
    for name, part, text in re.findall(pattern, told, re.MULTILINE):
        parts.setdefault(name, {})[part] = text
    return {name: Setting(**each) for name, each in parts.items()}


def of_openmpi(
    made: Mapping[str, Setting],
    has_libfabric: bool,
    provider: Path | None,
    variables: Mapping[str, str],
) -> tuple[str, str, str]:
    """Transport, reason and what changes it, of an Open MPI with these settings."""
    pml, mtl, include = (made.get(each, Setting()) for each in ("pml", "mtl", _OFI))
    by_hand = f"OMPI_MCA_mtl=ofi OMPI_MCA_{_OFI}=beowire, or beowire run"
    if not has_libfabric:
        return "tcp", "it was built without libfabric (component mtl ofi)", "another Open MPI"
    if not pml.allows("cm"):
        return "tcp", f"pml = {pml.value}, set by {pml.by}", "without that setting it looks further"
    if provider is None:
        where = variables.get("FI_PROVIDER_PATH")
        why = f"{_PROVIDER} is not in FI_PROVIDER_PATH" if where else "libfabric has no provider"
        return "tcp", f"{why} of Beowire", "apt-get install libfabric-beowire"
    if not mtl.allows("ofi"):
        return "tcp", f"mtl = {mtl.value}, set by {mtl.by}: libfabric is left out", by_hand
    chosen = include.value or variables.get("FI_PROVIDER", "")
    if chosen.split(",") != ["beowire"]:
        told = f"the provider {chosen!r} is asked for" if chosen else "no provider is named"
        return "other", f"{told}: libfabric's first that works is taken", by_hand
    who = include.by if include.value else "the variable FI_PROVIDER"
    off = "pml = ob1 in ~/.openmpi/mca-params.conf, or mpirun --mca pml ob1: TCP"
    return "beowire", f"mtl = {mtl.value or 'any'}, provider beowire, set by {who}; {provider}", off


def of_mpich(
    told: str, provider: Path | None, variables: Mapping[str, str]
) -> tuple[str, str, str]:
    """The same of an MPICH, from what mpichversion prints."""
    device = re.search(r"^MPICH Device:\s+(\S+)", told, re.MULTILINE)
    name = device[1] if device else "unknown"
    netmods = name.partition(":")[2].split(",")
    if "ofi" not in netmods:
        other = "tcp" if name.startswith("ch3") else "other"
        return other, f"it was built without libfabric (device {name})", "an MPICH of ch4:ofi"
    wanted = "MPIR_CVAR_CH4_NETMOD=ofi FI_PROVIDER=beowire FI_PROVIDER_PATH=DIR, or beowire run"
    netmod = variables.get("MPIR_CVAR_CH4_NETMOD") or netmods[0]
    if netmod != "ofi":
        return "other", f"of its device {name} it takes {netmod}", wanted
    if variables.get("FI_PROVIDER") != "beowire":
        return "other", "FI_PROVIDER is not beowire: libfabric's first is taken", wanted
    if not variables.get("FI_PROVIDER_PATH") or provider is None:
        return "other", "its libfabric may have another directory of providers", wanted
    return "beowire", f"the variables FI_PROVIDER and FI_PROVIDER_PATH; {provider}", "without them"
