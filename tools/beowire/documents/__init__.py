# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The documents as one site: which files are on it, and how a page is made of each."""
