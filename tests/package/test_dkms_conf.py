# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""For which kernels DKMS builds the module, as DKMS decides it: by a regular expression of bash."""

import subprocess

import pytest
from beowire import places


@pytest.mark.parametrize(
    ("release", "built"),
    [
        ("6.1.0-57-amd64", True),
        ("6.12.117+deb12-amd64", True),
        ("7.0.1", True),
        ("10.2.0", True),
        ("6.0.19", False),
        ("5.14.0-427.el9.x86_64", False),
        ("4.18.0-553.el8", False),
    ],
)
def test_kernels_older_than_6_1_are_left_out(release: str, built: bool) -> None:
    conf = places.root() / "hosts" / "kernel" / "dkms.conf"
    script = '. "$1"; [[ $2 =~ $BUILD_EXCLUSIVE_KERNEL ]]'
    done = subprocess.run(["bash", "-c", script, "bash", str(conf), release], check=False)
    assert (done.returncode == 0) == built
