# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The tables, figures and stated numbers of the papers behind the project, measured again."""
