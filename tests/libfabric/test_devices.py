# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Domains of the provider where there are several interfaces, which the program makes itself."""

from pathlib import Path

from provider_programs import run_in_namespace


def test_device(tmp_path: Path) -> None:
    run_in_namespace("test_device", "", {}, tmp_path)
