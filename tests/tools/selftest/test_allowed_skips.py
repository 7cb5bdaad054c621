# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The skips that are right on other machines are allowed there, and those beside them are not."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from beowire import places
from beowire.selftest import skips
from beowire.selftest.reports import Case, read_junit

SPEED = "tests.speed.test_speed: test_a_message_costs_no_more_than_its_budget[local-1500-8]"
PROVIDER = "tests.speed.test_speed: test_a_message_of_the_provider_costs_no_more_than_its_budget"
KEYED = "tests.speed.test_speed: test_a_short_message_with_a_key_costs_no_more_than_its_budget"
KERNEL = "tests.speed.test_kernel_speed: test_a_message_costs_no_more_than_its_budget[9000-8]"
STYLE = "tests.tools.test_style: test_c_sources_are_formatted"
NOTICED = "tests.tools.test_style: test_c_that_is_not_formatted_is_noticed"
OTHERS = {"cc": "cc (Debian 13.2.0-1) 13.2.0", "clang-format": "clang-format version 18.1.3"}
"""What programs of another machine say that they are."""
WITH_NAMESPACES = "from beowire import namespaces\nnamespaces.refusal = lambda: None\n"
"""Those tests ask for them before they look for budgets, and need them after."""


def no_budgets(owner: str) -> str:
    return f"no budgets for {owner}: write them by BEOWIRE_TEST_NEW_BUDGETS=why"


def layout(version: str) -> str:
    return f"the layout is that of clang-format 14, not {version}"


def environment(place: Path) -> dict[str, str]:
    """Programs and modules are looked for in `place` first; what a run of tests around this one
    has chosen is not for it."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("BEOWIRE_TEST_", "PYTEST_"))
    }
    for name in ("PATH", "PYTHONPATH"):
        kept[name] = f"{place}{os.pathsep}{kept.get(name, '')}"
    return {**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def skipped_elsewhere(place: Path) -> list[Case]:
    """What tests with budgets and of the layout skip where the programs are others."""
    for name, said in OTHERS.items():
        (place / name).write_text(f"#!/bin/sh\necho '{said}'\n")
        (place / name).chmod(0o755)
    (place / "with_namespaces.py").write_text(WITH_NAMESPACES)
    root = places.root()
    command = [sys.executable, "-P", "-m", "pytest", "-c", str(root / "tools" / "pyproject.toml")]
    command += ["--rootdir", str(root), "-p", "no:cacheprovider", "-p", "with_namespaces"]
    command += [f"--junitxml={place}/junit.xml", "-k", "its_budget or format and not ruff"]
    command += [
        str(root / each) for each in ("tests/speed/test_speed.py", "tests/tools/test_style.py")
    ]
    done = subprocess.run(
        command, cwd=root, env=environment(place), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return read_junit(place / "junit.xml")


def test_what_other_programs_do_not_suit_may_be_skipped(tmp_path: Path) -> None:
    """As those tests themselves say it."""
    cases = skipped_elsewhere(tmp_path)
    assert {case.verdict for case in cases} == {"skipped"}
    names = {re.sub(r"\[.*", "", case.name) for case in cases}
    assert names == {SPEED.partition("[")[0], KEYED, PROVIDER, STYLE, NOTICED}
    without_headers = [each for each in cases if "libfabric" in each.reason]
    cases = [each for each in cases if each not in without_headers]
    assert skips.refused(cases, skips.load()) == cases


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        (SPEED, no_budgets("clang-14 x86_64")),
        (SPEED, no_budgets("gcc-12 aarch64")),
        (f"{PROVIDER}[packet-4096]", no_budgets("gcc-13 x86_64")),
        (f"{KEYED}[udp with a key]", no_budgets("gcc-13 x86_64")),
        (KERNEL, no_budgets("gcc-12 x86_64, Linux 6.12")),
        (KERNEL, no_budgets("gcc-13 x86_64, Linux 6.1")),
        (STYLE, layout("Ubuntu clang-format version 18.1.3 (1ubuntu1)")),
        (NOTICED, layout("clang-format version 17.0.6 (Fedora 17.0.6-2.fc39)")),
    ],
)
def test_so_may_these(test: str, reason: str) -> None:
    (case,) = skips.refused([Case(test, "skipped", reason)], skips.load())
    assert case.verdict == "skipped"


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        (SPEED, no_budgets("gcc-12 x86_64")),  # those are there
        (SPEED, no_budgets("gcc-13 x86_64, Linux 6.1")),
        (SPEED, no_budgets("gcc-13 x86_64").partition(":")[0]),
        (SPEED.replace("test_a_message", "test_another"), no_budgets("gcc-13 x86_64")),
        (SPEED, "namespaces are not allowed here"),
        (f"{PROVIDER}[local-8]", "libfabric's headers are not here"),
        (KERNEL, no_budgets("gcc-12 x86_64, Linux 6.1")),
        (KERNEL, no_budgets("gcc-13 x86_64")),
        (KERNEL, "there are no guests here: no kernel"),
        (STYLE, layout("Debian clang-format version 14.0.6")),
        (STYLE, layout("no version at all")),
        (STYLE, "clang-format is missing: apt-get install clang-format"),
        (
            "tests.tools.test_style: test_sources[ruff format]",
            layout("clang-format version 18.1.3"),
        ),
        (
            "tests.tools.vm.test_vm: test_a_guest_is_told_the_rate_of_its_clock",
            "a guest that the hardware runs asks the hypervisor",
        ),
    ],
)
def test_a_slightly_different_one_may_not(test: str, reason: str) -> None:
    (case,) = skips.refused([Case(test, "skipped", reason)], skips.load())
    assert case.verdict == "failed"


def test_no_budget_that_is_there_may_be_skipped() -> None:
    budgets = tomllib.loads((places.root() / "tests" / "speed" / "budgets.toml").read_text())
    cases = [
        Case(test, "skipped", no_budgets(owner)) for owner in budgets for test in (SPEED, KERNEL)
    ]
    assert {case.verdict for case in skips.refused(cases, skips.load())} == {"failed"}
