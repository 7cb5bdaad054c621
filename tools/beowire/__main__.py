# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command. Ctrl-C may come while it is still being loaded: that ends like any other time."""

import sys


def main() -> None:
    try:
        from beowire import signals

        signals.never_lose_an_interruption()
        from beowire import cli
    except KeyboardInterrupt:
        print("beowire: interrupted", file=sys.stderr)
        sys.exit(130)
    cli.main()


if __name__ == "__main__":
    main()
