# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The variables, and how each kind of shell and of module file is told them."""

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from beowire.errors import BeowireError

_SETTINGS = {
    "FI_PROVIDER": "beowire",
    "MPIR_CVAR_CH4_NETMOD": "ofi",
    "OMPI_MCA_mtl": "ofi",
    "OMPI_MCA_mtl_ofi_provider_include": "beowire",
    "OMPI_MCA_osc": "^ucx",
}
"""libfabric's, MPICH's and Open MPI's; the last are those of packaging/debian/openmpi.conf."""
ABOUT = "MPI over Beowire: reliable messages over Ethernet frames"


def variables(provider_dir: Path) -> dict[str, str]:
    """All of them, with the provider in this directory, which each node must have."""
    directory = str(provider_dir)
    if re.search(r"[\x00-\x1f\x7f:]", directory):
        raise BeowireError(
            f"The path {directory!r} has a colon or a control character: libfabric would read "
            "several paths, or a shell another one.",
            "Name it by a symbolic link.",
        )
    return {"FI_PROVIDER_PATH": directory, **_SETTINGS}


def _sh(name: str, value: str) -> str:
    return f"export {name}={shlex.quote(value)}"


def _csh(name: str, value: str) -> str:
    """csh replaces ! even between quotes."""
    quoted = value.replace("'", "'\\''").replace("!", "\\!")
    return f"setenv {name} '{quoted}'"


def _lua(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _lmod(name: str, value: str) -> str:
    return f"setenv({_lua(name)}, {_lua(value)})"


def _tcl(name: str, value: str) -> str:
    return f"setenv {name} " + '"' + re.sub(r'([\\"$\[\]])', r"\\\1", value) + '"'


_FIRST = {
    "lmod": f"whatis({_lua(ABOUT)})\n",
    "tcl": f"#%Module1.0\nmodule-whatis {{{ABOUT}}}\n",
}
_SAYS: Mapping[str, Callable[[str, str], str]] = {
    "sh": _sh,
    "csh": _csh,
    "lmod": _lmod,
    "tcl": _tcl,
}
KINDS = tuple(_SAYS)


def text(kind: str, those: Mapping[str, str]) -> str:
    """What a shell of this kind executes, or a module file for Lmod or Environment Modules."""
    if kind not in _SAYS:
        raise BeowireError(f"--shell {kind}: not known.", f"Give one of {', '.join(KINDS)}.")
    lines = [_SAYS[kind](name, value) for name, value in those.items()]
    return _FIRST.get(kind, "") + "".join(f"{line}\n" for line in lines)
