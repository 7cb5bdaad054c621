#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Run the fuzz targets for some seconds each, beginning with the seeds kept here.

Each run draws a seed of its own and prints it. An input that breaks something is printed in
hexadecimal digits and kept in a file; its target run with that file as its only argument shows
the failure again. A line in seeds_TARGET.hex makes it part of every run.
"""

from __future__ import annotations

import argparse
import secrets
import subprocess
import sys
import tempfile
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


def fuzz(target: str, args: argparse.Namespace, corpus: Path) -> bool:
    """Run one target; False, and a file kept, if it finds something."""
    program = args.programs / f"fuzz-{target}"
    if not program.exists():
        sys.exit(f"{program} is missing: it is built with clang, by ninja -C {ROOT / 'build'}")
    plant(target, corpus)
    seed = args.seed or secrets.randbelow(2**31) + 1
    kept: Path = args.keep / f"fuzz-{target}-{seed}"
    command = [
        str(program),
        f"-seed={seed}",
        "-max_len=4096",
        "-len_control=0",
        f"-exact_artifact_path={kept}",
        f"-max_total_time={args.seconds}",
        "-timeout=100",
        str(corpus),
    ]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    lines = done.stderr.splitlines()
    if done.returncode == 0:
        print(f"{target}: seed {seed}: {lines[-1] if lines else 'done'}")
        return True
    print("\n".join(lines[-60:]))
    print(f"{target}: failed with seed {seed}")
    if kept.exists():
        print(f"the input, also in {kept}: {kept.read_bytes().hex()}")
        print(f"again: {program} {kept}")
    return False


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--target", choices=TARGETS, help="this one only")
    parser.add_argument("--seconds", type=int, default=5, metavar="N", help="each (%(default)s)")
    parser.add_argument("--seed", type=int, metavar="N", help="of libFuzzer's (drawn)")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="keep interesting inputs here")
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
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
        corpora = args.corpus or Path(place)
        failed = sum(not fuzz(target, args, corpora / target) for target in targets)
    print(f"{len(targets) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
