# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The suites: how each is built outside the repository, and which tests it has."""
