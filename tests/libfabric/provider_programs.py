# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs the provider's C tests in a network namespace of their own."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from beowire import namespaces, places
from beowire.selftest import reports

LIMIT_S = 900
"""Only what hangs takes that long, beside any number of busy processes."""
ENTER = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
"""What was started beside the program ends with it, and the program with its time."""


def run_in_namespace(
    name: str, prepare: str, environment: Mapping[str, str], stats: Path
) -> list[dict[str, Any]]:
    """Runs the program behind the shell commands `prepare`; all its tests must pass. What its
    endpoints counted, in the directory `stats`."""
    refusal = namespaces.refusal()
    if refusal:
        pytest.skip(refusal)
    program = str(places.product(f"tests/libfabric/{name}"))
    done = subprocess.run(
        [*ENTER, "sh", "-c", f'set -e\n{prepare}\nexec "$@"', "sh", program],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={
            **os.environ,
            "FI_PROVIDER_PATH": str(places.provider_dir()),
            "FI_PROVIDER": "beowire",
            "BEOWIRE_STATS": str(stats),
            **environment,
        },
    )
    cases = reports.cmocka_cases(name, done.stdout, done.stderr)
    assert len(cases) >= 5, done.stdout + done.stderr
    assert [each for each in cases if each.verdict != "passed"] == []
    return [json.loads(each.read_text()) for each in stats.glob("*.json")]
