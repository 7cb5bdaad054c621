#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A run repeats from its seed to the last frame, another seed gives another run, and a wrong command
# line is refused. The argument is the simulator.
set -eu
sim=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM

"$sim" --seed 7 --trace >"$dir/first"
"$sim" --seed 7 --trace >"$dir/second"
"$sim" --seed 8 --trace >"$dir/other"
grep -q 'DATA#' "$dir/first" || { echo "the log shows no frames"; exit 1; }
cmp "$dir/first" "$dir/second" || { echo "the same seed gives different runs"; exit 1; }
if cmp -s "$dir/first" "$dir/other"; then
	echo "different seeds give the same run"
	exit 1
fi
# What engines make as rows is to the last byte what they make one by one.
for scenario in jumbo stripe; do
	"$sim" --seed 3 --scenario $scenario --trace >"$dir/rows"
	"$sim" --seed 3 --scenario $scenario --trace --singly >"$dir/singly"
	cmp "$dir/rows" "$dir/singly" || { echo "rows change what is sent"; exit 1; }
done
"$sim" --seed 7 --scenario damage | grep -q 'drops:.* header [1-9].* data [1-9]' ||
	{ echo "a run does not tell what was dropped"; exit 1; }

refused() {
	status=0
	"$sim" "$@" >/dev/null 2>&1 || status=$?
	[ "$status" = 2 ] || { echo "$* gives $status instead of 2"; exit 1; }
}
refused
refused --seed x
refused --seeds 9-3
refused --scenario nothing --seed 1
refused --protocol smoke-signals --seed 1
refused --frames 0
refused --jobs 0 --frames 1
refused --report=weather

# Every scenario that is listed is tested by name.
here=$(dirname "$0")
for name in $("$sim" --list | cut -d' ' -f1); do
	[ "$name" = random ] || grep -q "'$name'" "$here/meson.build" ||
		{ echo "scenario $name is not tested"; exit 1; }
done
