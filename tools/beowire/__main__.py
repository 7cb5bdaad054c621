# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command. Ctrl-C may come while it is still being loaded: that ends like any other time."""

import signal
import sys


def main(*, raise_interruptions: bool = False) -> None:
    """The whole command. `raise_interruptions`: Ctrl-C has had its default effect until now."""
    try:
        from beowire import signals

        signals.never_lose_an_interruption()
        from beowire import cli

        if raise_interruptions:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    except KeyboardInterrupt:
        print("beowire: interrupted", file=sys.stderr)
        sys.exit(130)
    cli.main()


if __name__ == "__main__":
    main()
