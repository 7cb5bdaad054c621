# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`python -m beowire`. Ctrl-C may come while the command is still being loaded: that ends like any
other time."""

import sys

try:
    from beowire.cli import main
except KeyboardInterrupt:
    print("beowire: interrupted", file=sys.stderr)
    sys.exit(130)

main()
