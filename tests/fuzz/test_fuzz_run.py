# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What tests/fuzz/run.py makes of a target: one that tries next to nothing has not passed, and
what it found of interest is there again in the next run."""

import subprocess
import sys
from pathlib import Path

import pytest
from beowire import places

RUN = places.root() / "tests" / "fuzz" / "run.py"
TARGET = "key"
SEEDS = len((RUN.parent / f"seeds_{TARGET}.hex").read_text().split())

# In the place of a target: it says of its runs what `told` has in a line for each, logs its words,
# keeps an input as libFuzzer does, and for -merge=1 takes each second of those there are.
FAKE = """#!/bin/sh
here=$(dirname "$0")
echo "$*" >>"$here/calls"
for word; do
	case $word in
	-merge=1) merge=y ;;
	-*) ;;
	*) [ "${first:-}" ] && last=$word || first=$word ;;
	esac
done
if [ "${merge:-}" ]; then
	[ ! -e "$here/breaks" ] || exit 77
	ls "$last" | awk 'NR % 2' | while read -r each; do cp "$last/$each" "$first/"; done
	exit 0
fi
ls "$first" >>"$here/read"
echo $$ >"$first/input-$$"
runs=$(head -n 1 "$here/told")
sed -i 1d "$here/told"
if [ "$runs" = crash ]; then
	[ ! -e "$here/says" ] || cat "$here/says" >&2
	exit 77
fi
[ ! "$runs" ] || echo "Done $runs runs in 1 second(s)" >&2
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """The directory of targets in a build."""
    made = tmp_path / "build" / "tests" / "fuzz"
    made.mkdir(parents=True)
    (made / f"fuzz-{TARGET}").write_text(FAKE)
    (made / f"fuzz-{TARGET}").chmod(0o755)
    return made


def tried(programs: Path, *told: str, seconds: int = 1) -> tuple[int, str, int]:
    """Exit status, what was said, and how often the target ran."""
    (programs / "told").write_text("\n".join(told) + "\n")
    (programs / "calls").write_text("")
    words = ["--target", TARGET, "--seconds", str(seconds)]
    words += ["--programs", str(programs), "--keep", str(programs)]
    done = subprocess.run(
        [sys.executable, str(RUN), *words],
        capture_output=True,
        text=True,
        check=False,
    )
    calls = (programs / "calls").read_text().splitlines()
    return done.returncode, done.stdout + done.stderr, len(calls)


def test_a_target_that_tries_enough_passes(programs: Path) -> None:
    status, said, runs = tried(programs, str(SEEDS + 1000))
    assert (status, runs) == (0, 1), said


@pytest.mark.parametrize(("told", "status"), [(SEEDS, 0), (SEEDS - 1, 1), ("crash", 1)])
def test_without_time_all_that_is_kept_is_run_once(
    told: int | str, status: int, programs: Path
) -> None:
    ended, said, runs = tried(programs, str(told), seconds=0)
    assert (ended, runs) == (status, 1), said
    assert "-runs=0" in (programs / "calls").read_text()


@pytest.mark.parametrize("told", ["", "0", str(SEEDS), str(SEEDS + 90)])
def test_a_target_that_tries_next_to_nothing_fails(told: str, programs: Path) -> None:
    """Though it finds nothing, and has its time ten times."""
    status, said, runs = tried(programs, *[told] * 10, "1000000")
    assert (status, runs) == (1, 10), said
    assert said.splitlines()[-1].startswith(f"{TARGET}: only ")


def test_a_target_that_is_slow_has_its_time_again(programs: Path) -> None:
    """As often as it needs: of inputs that are kept, one a run, it had one more each time."""
    status, said, runs = tried(programs, *(str(SEEDS + 400 + kept) for kept in range(9)))
    assert (status, runs) == (0, 3), said
    assert "only 800 new inputs so far; 1 s again" in said


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ("fuzz: bytes of nobody", "fuzz: bytes of nobody"),
        ("==7==ERROR: AddressSanitizer: heap-use-after-free", "AddressSanitizer: heap-use"),
        ("a.c:1:2: runtime error: division by zero", "runtime error: division"),
        ("==7== ERROR: libFuzzer: timeout after 100 seconds", "libFuzzer: timeout after"),
    ],
)
def test_what_was_found_is_said_last(says: str, told: str, programs: Path) -> None:
    (programs / "says").write_text(f"{says}\n==7== ERROR: libFuzzer: deadly signal\n")
    status, said, _ = tried(programs, "crash")
    assert status == 1
    assert said.splitlines()[-1].startswith(f"{TARGET}: ")
    assert told in said.splitlines()[-1]


def test_what_is_found_is_not_tried_again(programs: Path) -> None:
    status, said, runs = tried(programs, "crash", "1000000")
    assert (status, runs) == (1, 1), said


def test_inputs_of_interest_are_there_in_the_next_run(programs: Path) -> None:
    corpus = programs.parents[1] / "fuzz-corpus" / TARGET
    assert tried(programs, "1000000")[0] == 0
    (kept,) = corpus.iterdir()
    assert (programs / "read").read_text() == ""
    assert tried(programs, "1000000")[0] == 0
    assert kept.name in (programs / "read").read_text()


@pytest.mark.parametrize("there", [500, 900])
def test_kept_inputs_are_bounded(there: int, programs: Path) -> None:
    corpus = programs.parents[1] / "fuzz-corpus" / TARGET
    corpus.mkdir(parents=True)
    for number in range(there):
        (corpus / f"{number}").write_text(f"{number}")
    status, said, calls = tried(programs, "1000000")
    assert (status, calls) == (0, 2), said
    assert len(list(corpus.iterdir())) == min(there // 2, 400) + 1


def test_an_input_that_breaks_something_stays(programs: Path) -> None:
    corpus = programs.parents[1] / "fuzz-corpus" / TARGET
    corpus.mkdir(parents=True)
    for number in range(500):
        (corpus / f"{number}").write_text(f"{number}")
    (programs / "breaks").touch()
    status, said, calls = tried(programs, "crash")
    assert (status, calls) == (1, 2), said
    assert len(list(corpus.iterdir())) == 501
