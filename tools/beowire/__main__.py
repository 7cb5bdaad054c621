# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Entry of `python -m beowire`, which the bootstrap script executes."""

from beowire.cli import main

if __name__ == "__main__":
    main()
