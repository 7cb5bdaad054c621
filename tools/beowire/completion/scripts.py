# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The scripts, by shell."""

SCRIPTS = {"bash": "beowire.bash", "zsh": "_beowire", "fish": "beowire.fish"}
