# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The tests of the project: run, counted, and told."""
