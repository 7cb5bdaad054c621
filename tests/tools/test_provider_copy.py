# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The provider copied to a host finds the library that was copied with it, which the host lacks."""

import re
import shutil
import subprocess
from pathlib import Path

from beowire import places


def loaded_by(library: Path) -> dict[str, str]:
    """The files that a shared library would load, by the names that it needs."""
    said = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r"^\s*(\S+) => (\S+)", said, re.MULTILINE))


def test_what_is_copied_is_found(tmp_path: Path) -> None:
    files = places.provider_files()
    assert [each.name for each in files] == ["libbeowire-fi.so", "libsodium.so.23"]
    for each in files:
        shutil.copyfile(each, tmp_path / each.name)
    found = loaded_by(tmp_path / "libbeowire-fi.so")
    assert found["libsodium.so.23"] == str(tmp_path / "libsodium.so.23")
    for name, path in found.items():
        if name != "libsodium.so.23":
            assert not Path(path).is_relative_to(tmp_path), name
