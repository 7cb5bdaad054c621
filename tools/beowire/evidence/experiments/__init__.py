# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What gives our figures: each experiment is a function of its parameters."""
