# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Completion for fish: in vendor_completions.d, or by beowire completion fish | source.
function __beowire_complete
	set -l words (commandline -opc) (commandline -ct)
	set -l found ($words[1] completion --answer -- $words[2..-1] 2>/dev/null)
	for line in $found
		set -l parts (string split \t -- $line)
		if test "$parts[1]" = plain
			printf '%s\t%s\n' $parts[2] $parts[3]
		else
			__fish_complete_path (commandline -ct)
		end
	end
	if test -z "$found"
		__fish_complete_path (commandline -ct)
	end
end
complete -c beowire -f -a '(__beowire_complete)'
