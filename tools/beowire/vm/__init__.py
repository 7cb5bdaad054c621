# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Guests: virtual machines that run a command under another kernel."""
