# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""beowired once more, built with sanitizers, against those who say nonsense, nothing, or end at
any moment. Leaks count as well: it ends in good order."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import test_attacks
import test_served
from compiled import compile_service
from served import PROGRAM, Service

FLAGS = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]


@pytest.fixture(scope="module", autouse=True)
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests of this file start that one."""
    program = tmp_path_factory.mktemp("sanitized") / "beowired"
    assert compile_service(program, FLAGS, {}) == ""
    before = os.environ.get(PROGRAM)
    os.environ[PROGRAM] = str(program)
    yield
    if before is None:
        del os.environ[PROGRAM]
    else:
        os.environ[PROGRAM] = before


def test_it_is_sanitized(service: Service) -> None:
    assert "libasan" in Path(f"/proc/{service.process.pid}/maps").read_text()


def test_messages(service: Service, nodes: tuple[str, str]) -> None:
    test_served.test_a_user_speaks_by_raw_frames(service, nodes)


def test_silence_and_nonsense(service: Service) -> None:
    test_attacks.test_silence_and_nonsense_cost_nothing(service)


def test_races(service: Service) -> None:
    test_attacks.test_races_leave_nothing_behind(service)


def test_shares(nodes: tuple[str, str]) -> None:
    test_attacks.test_no_user_takes_more_than_his_share(nodes)
