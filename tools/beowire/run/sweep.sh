#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# sweep.sh MARK: removes the shared memory that MPI libraries leave behind when their processes are
# killed, and our own boards (hosts/user/board.h) of processes that are gone. A file of a library's
# goes only if it is ours, is younger than the file MARK, which was made when the job began, and no
# living process has it mapped or open.

# Has this process memory? One that is about to end has none any more, and so no command line, but
# may not have closed its files yet.
lives() {
	grep -qsa . "/proc/$1/cmdline"
}

is_open() {
	find /proc/[0-9]*/fd -lname "$1" 2>/dev/null | {
		while IFS= read -r descriptor; do
			pid=${descriptor#/proc/}
			lives "${pid%%/*}" && exit 0
		done
		exit 1
	}
}

find /dev/shm -maxdepth 1 -type f -user "$(id -u)" -newer "$1" \( \
	-name 'mpich_shm_*' -o -name 'vader_segment.*' -o -name 'sm_segment.*' -o \
	-name 'ucx_shm_*' \) 2>/dev/null |
while IFS= read -r file; do
	# Who has it open may have it mapped, and closed, at the second look: not the other way round.
	is_open "$file" && continue
	grep -qs -- "$file\$" /proc/[0-9]*/maps && continue
	rm -f -- "$file"
done
for file in "/dev/shm/beowire-$(id -u)"/*-*; do
	pid=${file##*/}
	lives "${pid%%-*}" || rm -f -- "$file"
done
rmdir -- "/dev/shm/beowire-$(id -u)" 2>/dev/null || true
