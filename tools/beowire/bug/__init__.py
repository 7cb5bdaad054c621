# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a maintainer needs to know of a machine, without what is none of his business."""
