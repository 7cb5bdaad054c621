# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What this node tells to `beowire status` elsewhere, as JSON: without the whole command."""

import json
import sys

from beowire.status import node

INTERVAL_S = 0.6
"""Longer than two sheets of a board are apart."""


def main(arguments: list[str]) -> None:
    network = node.own_network() if "--own-network" in arguments else None
    print(json.dumps(node.look(INTERVAL_S, network, ranks="--ranks" in arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
