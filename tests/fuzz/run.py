#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Run the fuzz targets for some seconds each, beginning with the seeds kept here.

Each run draws a seed of its own and prints it. An input that breaks something is printed in
hexadecimal digits and kept in a file; its target run with that file as its only argument shows
the failure again. A line in seeds_TARGET.hex makes it part of every run.

Inputs that reach something new are kept in the build's directory for the next run. A target that
did not get to enough new inputs in its time, on a busy machine, is given the same time again.
With no seconds at all the inputs that are kept are run, and nothing new.
"""

from __future__ import annotations

import argparse
import fcntl
import random
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGETS = tuple(sorted(each.stem.removeprefix("fuzz_") for each in HERE.glob("fuzz_*.c")))


def plant(target: str, corpus: Path) -> None:
    """Write the seeds, one input per line in hexadecimal digits, as files."""
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = HERE / f"seeds_{target}.hex"
    for number, line in enumerate(seeds.read_text().split()):
        (corpus / f"seed-{number}").write_bytes(bytes.fromhex(line))


NEW_INPUTS = 1000
"""So many are tried at least, beside those that are there already."""
TIMES = 10
"""A target is given its time so often to get there: a busy machine finds nothing wrong with it."""
CORPUS_MOST = 400
"""Inputs kept of a target: to read them takes time from what is new."""
SAYS = re.compile(r"^fuzz: |runtime error: |ERROR: (Address|Leak)Sanitizer|ERROR: libFuzzer: [^d]")
DONE = re.compile(r"^Done (\d+) runs in \d+ second\(s\)$", re.MULTILINE)


def fuzz(target: str, args: argparse.Namespace, corpus: Path, seeds: Path) -> str:
    """Run one target. What it finds, with a file kept, or why it gets nowhere; else nothing."""
    program = args.programs / f"fuzz-{target}"
    if not program.exists():
        sys.exit(f"{program} is missing: it is built with clang, by ninja -C {ROOT / 'build'}")
    plant(target, seeds)
    seed = args.seed or secrets.randbelow(2**31) + 1
    new = 0
    with bounded(target, program, corpus, seeds):
        for again in range(TIMES):
            if again:
                print(f"{target}: only {new} new inputs so far; {args.seconds} s again")
                seed += 1
            there = count(corpus) + count(seeds)
            lines, runs = run(target, program, args, seed, [corpus, seeds])
            if runs is None:
                return f"{found(lines)} (seed {seed})"
            if not args.seconds:
                print(f"{target}: {runs} kept inputs of {there}")
                return "" if runs >= there else f"only {runs} of {there} kept inputs were run"
            new += max(0, runs - there)
            print(f"{target}: seed {seed}: {new} new inputs: {lines[-1] if lines else 'done'}")
            if new >= NEW_INPUTS:
                return ""
    return f"only {new} new inputs were tried, not {NEW_INPUTS}"


def found(lines: list[str]) -> str:
    """What a target that found something says of it, in one line."""
    said = [line for line in lines if SAYS.search(line)]
    return said[0] if said else lines[-1] if lines else "it ended without a word"


def run(
    target: str, program: Path, args: argparse.Namespace, seed: int, corpora: list[Path]
) -> tuple[list[str], int | None]:
    """What the target said, and how many inputs it says to have run; None if it found something."""
    kept: Path = args.keep / f"fuzz-{target}-{seed}"
    command = [
        str(program),
        f"-seed={seed}",
        "-max_len=4096",
        "-len_control=0",
        f"-exact_artifact_path={kept}",
        f"-max_total_time={args.seconds}" if args.seconds else "-runs=0",
        "-timeout=100",
        *map(str, corpora),
    ]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    lines = done.stderr.splitlines()
    if done.returncode == 0:
        said = DONE.findall(done.stderr)
        return lines, int(said[-1]) if said else 0
    print("\n".join(lines[-60:]))
    print(f"{target}: failed with seed {seed}")
    if kept.exists():
        print(f"the input, also in {kept}: {kept.read_bytes().hex()}")
        print(f"again: {program} {kept}")
    return lines, None


def count(place: Path) -> int:
    """How many inputs lie there."""
    return sum(1 for _ in place.iterdir())


@contextmanager
def bounded(target: str, program: Path, corpus: Path, seeds: Path) -> Iterator[None]:
    """Makes the directory, or removes what is too much; while nobody else has it in use."""
    corpus.mkdir(parents=True, exist_ok=True)
    with corpus.with_name(f"{corpus.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        else:
            bound(target, program, corpus, seeds)
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


def bound(target: str, program: Path, corpus: Path, seeds: Path) -> None:
    """Of too many inputs those stay that reach what others do not; of these any."""
    if count(corpus) <= CORPUS_MOST:
        return
    with tempfile.TemporaryDirectory(dir=corpus.parent) as place:
        merged, artifact = Path(place) / "merged", Path(place) / "artifact"
        merged.mkdir()
        command = [str(program), "-merge=1", "-max_len=4096", f"-exact_artifact_path={artifact}"]
        command += [str(merged), str(seeds), str(corpus)]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode or artifact.exists():
            return  # one breaks something: it must be there for the run to find it
        stay = {each.name for each in merged.iterdir() if (corpus / each.name).exists()}
    if len(stay) > CORPUS_MOST:
        stay = set(random.sample(sorted(stay), CORPUS_MOST))
    for each in list(corpus.iterdir()):
        if each.name not in stay:
            each.unlink()
    print(f"{target}: {count(corpus)} inputs of earlier runs are kept")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--target", choices=TARGETS, help="this one only")
    parser.add_argument(
        "--seconds", type=int, default=5, metavar="N", help="each (%(default)s); 0: kept inputs"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of libFuzzer's (drawn)")
    parser.add_argument(
        "--corpus",
        type=Path,
        metavar="DIR",
        help="keep interesting inputs here (fuzz-corpus in the build's directory)",
    )
    parser.add_argument("--keep", type=Path, default=Path(), metavar="DIR", help="for failures")
    parser.add_argument(
        "--programs",
        type=Path,
        default=ROOT / "build" / "tests" / "fuzz",
        metavar="DIR",
        help="where built targets lie (%(default)s)",
    )
    return parser.parse_args()


def main() -> int:
    """Fuzz as asked."""
    args = arguments()
    targets = [args.target] if args.target else list(TARGETS)
    # The programs lie in tests/fuzz of the build.
    corpora = args.corpus or args.programs.resolve().parents[1] / "fuzz-corpus"
    failed = []
    for target in targets:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
            why = fuzz(target, args, corpora / target, Path(place))
        if why:
            failed.append(f"{target}: {why}")
    print(f"{len(targets) - len(failed)} passed, {len(failed)} failed", flush=True)
    for each in failed:  # last, where whoever runs this takes the reason from
        print(each, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
