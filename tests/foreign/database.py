# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A PostgreSQL server on the second node of a lab, and on the first its runner of tests, whose
clients reach it there; over Beowire by `beowire sockets`, and then some of their bytes must have
left TCP. Arguments: the lab, the transport, the runner's command line."""

import subprocess
import sys

from beowire.bench import postgres, sockets_programs
from beowire.lab import lab as labs
from beowire.sockets import cli as preloading

PORT = 5433
BY_TCP = "no connection left TCP"


def main(lab: str, transport: str, runner: list[str]) -> int:
    """The runner's status; 3: it passed, and nothing went over Beowire."""
    first, second = labs.load_ready(lab).node_names()[:2]
    host = labs.load_ready(lab).address(second)
    with postgres.made(tables=False) as server:
        counted = server.directory("counted")
        there = [f"--host={host}", f"--port={PORT}", f"--outputdir={server.directory('out')}"]
        serves = server.words(f"listen_addresses={host}", f"port={PORT}")
        asks = [*runner, *there]
        if transport == "beowire":
            soon = server.variables | {"BEOWIRE_SOCKETS_AFTER": "0"}
            serves = preloading.command(serves, soon)
            asks = preloading.command(asks, soon | {preloading.STATS: str(counted)})
        serves = [*postgres.become(), *serves]

        def answers() -> bool:
            return server.answers(PORT)

        with sockets_programs.serving(lab, second, serves, "postgres", PORT, answers):
            line = [*preloading.where(lab, first), *postgres.become(), *asks]
            status = subprocess.run(line, check=False).returncode
        if transport != "beowire":
            return status
        told = preloading.gathered(counted)
        del told["each"]
        print(told)
        if not told["tx_beowire"] or not told["rx_beowire"]:
            print(BY_TCP)
            return status or 3
        return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
