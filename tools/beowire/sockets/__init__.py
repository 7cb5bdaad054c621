# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Socket programs whose TCP connections between nodes use Beowire."""
