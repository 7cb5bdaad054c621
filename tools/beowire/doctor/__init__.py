# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What slows this node down, why, and how to fix it.

A *check* (check.py) judges what a *node* (node.py) reads through its *source* (source.py: the
running kernel, or a recorded tree). What it finds wrong names *settings* (setting.py) and the
values they should have; fixing writes those, after the old values went into a *journal*.
"""
