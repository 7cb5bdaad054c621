# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Tells whether the file $file holds a key that libbeowire would take on this host, by the rules of
# common/key.c: the line `key FINGERPRINT`, or one with what is wrong. The key itself stays in
# this shell: printf is one of its own commands, and no other gets the key as an argument.
LC_ALL=C
export LC_ALL
tell() {
	printf '%s\n' "$1"
	exit 0
}
[ -e "$file" ] || tell 'there is no such file, or it cannot be reached'
[ -f "$file" ] || tell 'it is no regular file'
found=$(stat -L -c '%u %a %s' -- "$file") || tell 'it cannot be looked at'
user=$(id -u)
owner=${found%% *} size=${found##* } mode=${found#* }
mode=${mode% *}
[ "$owner" = "$user" ] || [ "$owner" = 0 ] ||
	tell "it belongs to user $owner, not to user $user or root"
case $mode in
600 | 400) ;;
*) tell "it has mode $mode, but only its owner may use it; fix: chmod 600" ;;
esac
[ -r "$file" ] || tell "user $user may not read it"
[ "$size" -le 4096 ] || tell 'it has more than 4096 bytes'
lines=$(grep -a -v -c '^#' -- "$file")
[ "$lines" = 1 ] || tell "it has $lines lines beside remarks instead of one of 64 hexadecimal digits"
digits=$(grep -a -v '^#' -- "$file" | grep -a -x -E '[0-9A-Fa-f]{64}') ||
	tell 'its line is not one of 64 hexadecimal digits'
case $digits in
*[!0]*) ;;
*) tell 'a key of zeroes is none' ;;
esac
print=$({
	printf 'beowire key fingerprint\n'
	printf '%s\n' "$digits" | tr ABCDEF abcdef
} | sha256sum) || tell 'sha256sum cannot be executed'
tell "key ${print%"${print#????????}"}"
