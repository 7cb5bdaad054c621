# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What runners report is counted case by case, and nothing that failed is lost."""

from pathlib import Path

import pytest
from beowire import selftest
from beowire.selftest import Case, cmocka_cases, read_junit, summary

CMOCKA_OUTPUT = """\
[==========] Running 4 test(s).
[ RUN      ] spans__merge
[       OK ] spans__merge
[ RUN      ] link__vlan
no VLAN support in this kernel
[  SKIPPED ] link__vlan
[ RUN      ] spans__split
[ RUN      ] spans__crash
"""
CMOCKA_ERRORS = """\
[  ERROR   ] --- 3 != 4
[   LINE   ] --- test_spans.c:12: error: Failure!
[  FAILED  ] spans__split
"""


def junit(tmp_path: Path, cases: str) -> list[Case]:
    file = tmp_path / "junit.xml"
    file.write_text(f"<testsuites><testsuite name='s'>{cases}</testsuite></testsuites>")
    return read_junit(file)


def test_cases_inside_a_program_are_counted() -> None:
    assert cmocka_cases("spans", CMOCKA_OUTPUT, CMOCKA_ERRORS) == [
        Case("spans: spans__merge", "passed"),
        Case("spans: link__vlan", "skipped", "no VLAN support in this kernel"),
        Case("spans: spans__split", "failed", "3 != 4"),
        Case("spans: spans__crash", "failed", "did not end"),
    ]


def test_a_program_without_cases_is_one(tmp_path: Path) -> None:
    cases = "<testcase name='plain' classname=''/>"
    assert junit(tmp_path, cases) == [Case("plain", "passed")]


def test_a_leak_after_the_last_case_is_a_failure(tmp_path: Path) -> None:
    output = "[ RUN      ] a__b\n[       OK ] a__b\n"
    cases = f"<testcase name='p'><failure/><system-out>{output}</system-out></testcase>"
    assert [case.verdict for case in junit(tmp_path, cases)] == ["passed", "failed"]


def test_reasons_are_kept(tmp_path: Path) -> None:
    cases = (
        "<testcase classname='t' name='a'><skipped message='because'/></testcase>"
        "<testcase classname='t' name='b'><error message='broken'>long\nstory</error></testcase>"
        "<testcase name='c'><skipped/><system-out>one\nneeds more cores\n</system-out></testcase>"
    )
    assert junit(tmp_path, cases) == [
        Case("t: a", "skipped", "because"),
        Case("t: b", "failed", "broken"),
        Case("c", "skipped", "needs more cores"),
    ]


def test_a_skip_without_a_reason_is_a_failure(tmp_path: Path) -> None:
    silent = "[ RUN      ] a__b\n[  SKIPPED ] a__b\n"
    cases = (
        "<testcase classname='t' name='a'><skipped/></testcase>"
        f"<testcase name='p'><system-out>{silent}</system-out></testcase>"
    )
    failed = "it was skipped without a reason"
    assert junit(tmp_path, cases) == [
        Case("t: a", "failed", failed),
        Case("p: a__b", "failed", failed),
    ]


def test_the_summary_counts() -> None:
    cases = [Case("a", "passed"), Case("b", "passed"), Case("c", "skipped", "why")]
    assert summary(cases) == "2 passed, 0 failed, 1 skipped"


@pytest.mark.parametrize(
    ("reason", "counts"),
    [
        ("raw frames: the kernel refuses namespaces (Operation not permitted)", True),
        ("needs root", True),
        ("mandoc is not installed", False),
        ("no VLAN support in this kernel", False),
    ],
)
def test_skips_for_want_of_raw_frames_are_told_apart(reason: str, counts: bool) -> None:
    assert bool(selftest.skipped_for_raw_frames([Case("x", "skipped", reason)])) is counts
