# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Measurements of the transports: what is run in turn, and what comes of the samples."""
