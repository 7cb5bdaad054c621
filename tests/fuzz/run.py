#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Run the fuzz targets: so many inputs, or for so long, beginning with the seeds kept here.

An input that breaks something is kept in a file, and its target run with that file as its only
argument shows the failure again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGETS = ("reliable", "datagram", "link_text", "link_frame")
INCLUDE = [f"-I{ROOT / room}" for room in ("engine", "emulator", "hosts/sim", "hosts/user")]
# Of the link emulator, for targets whose name begins with link_.
LINK_SOURCES = ("headers.c", "segment.c", "settings.c", "request.c")
FLAGS = [
    "-std=gnu11",
    "-D_GNU_SOURCE",
    "-g",
    "-O1",
    "-w",
    "-fno-strict-aliasing",
    "-fsanitize=fuzzer,address,undefined",
    "-fno-sanitize-recover=undefined",
]


def build(target: str, folder: Path) -> Path:
    """Compile a target with clang."""
    program = folder / f"fuzz-{target}"
    sources = [HERE / "fuzz.c", HERE / f"fuzz_{target}.c", *sorted((ROOT / "engine").glob("*.c"))]
    if target.startswith("link_"):
        sources += [ROOT / "emulator" / name for name in LINK_SOURCES]
    command = [os.environ.get("CLANG", "clang"), *FLAGS, *INCLUDE]
    try:
        subprocess.run([*command, *map(str, sources), "-o", str(program)], check=True)
    except FileNotFoundError:
        sys.exit("clang is missing; install it (Debian: apt install clang), or name it in CLANG")
    except subprocess.CalledProcessError:
        sys.exit(f"{target} cannot be built, see above")
    return program


def plant(target: str, corpus: Path) -> None:
    """Write the seeds, one input per line in hexadecimal digits, as files."""
    corpus.mkdir(exist_ok=True)
    seeds = HERE / f"seeds_{target}.hex"
    for number, line in enumerate(seeds.read_text().split()):
        (corpus / f"seed-{number}").write_bytes(bytes.fromhex(line))


def fuzz(program: Path, target: str, args: argparse.Namespace, corpus: Path) -> bool:
    """Run one target; False, and a file kept, if it finds something."""
    plant(target, corpus)
    kept: Path = args.keep / f"fuzz-{target}-failure"
    limits = [f"-runs={args.runs}"]
    if args.seconds:
        limits = [f"-max_total_time={args.seconds}"]
    command = [
        str(program),
        "-seed=1",
        "-max_len=4096",
        "-len_control=0",
        f"-exact_artifact_path={kept}",
    ]
    done = subprocess.run(
        [*command, *limits, "-timeout=30", str(corpus)],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    lines = done.stderr.splitlines()
    if done.returncode == 0:
        print(f"{target}: {lines[-1] if lines else 'done'}")
        return True
    print("\n".join(lines[-40:]))
    print(f"{target}: failed; the input is in {kept}; again: {program.name} {kept}")
    return False


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--target", choices=TARGETS, help="this one only")
    parser.add_argument("--runs", type=int, default=3000, metavar="N", help="inputs (%(default)s)")
    parser.add_argument("--seconds", type=int, metavar="N", help="run for so long instead")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="keep interesting inputs here")
    parser.add_argument("--keep", type=Path, default=Path(), metavar="DIR", help="for failures")
    parser.add_argument("--programs", type=Path, metavar="DIR", help="where built targets lie")
    return parser.parse_args()


def run_all(targets: Sequence[str], args: argparse.Namespace, place: Path) -> int:
    """Run the targets; the number that failed."""
    failed = 0
    for target in targets:
        program = args.programs / f"fuzz-{target}" if args.programs else build(target, place)
        corpus = args.corpus / target if args.corpus else place / f"corpus-{target}"
        corpus.parent.mkdir(parents=True, exist_ok=True)
        failed += not fuzz(program, target, args, corpus)
    return failed


def main() -> int:
    """Fuzz as asked."""
    args = arguments()
    targets = [args.target] if args.target else list(TARGETS)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
        failed = run_all(targets, args, Path(place))
    print(f"{len(targets) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
