# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Completion for bash: in bash-completion's directory, or by eval "$(beowire completion bash)".
# shellcheck shell=bash
_beowire() {
	local kind word _
	COMPREPLY=()
	while IFS=$'\t' read -r kind word _; do
		case $kind in
		plain) COMPREPLY+=("$word") ;;
		dir) compopt -o dirnames ;;
		esac # files are bash's own default
	done < <("${COMP_WORDS[0]}" completion --answer -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -o default -F _beowire beowire
