# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Socket programs that begin before the service is there, or answers: their connections are on TCP
until it does, and no longer."""

import signal
from collections.abc import Callable

import pytest
import socket_load
from served import Service, served
from stopped import go_on, stop

PORT = 7960


def _absent(service: Service) -> tuple[str, Callable[[], object]]:
    assert service.stop() == 0
    return "beowired, which is not there", service.start


def _mute(service: Service) -> tuple[str, Callable[[], object]]:
    stop(service.process.pid)
    return "does not answer", lambda: go_on(service.process.pid)


@pytest.mark.parametrize("late", [_absent, _mute])
def test_connections_leave_tcp_once_the_service_is_there(
    nodes: tuple[str, str], late: Callable[[Service], tuple[str, Callable[[], object]]]
) -> None:
    with served(nodes[0]) as one, served(nodes[1]) as two:
        library = socket_load.library(one)
        word, comes = late(two)
        server = socket_load.server(two, library, PORT)
        client = socket_load.client(one, library, PORT, 1)
        try:
            server.await_word("no endpoint yet, next try in")
            assert word in server.complaints
            client.await_round()
            assert client.last[2] == 0
            comes()
            client.await_switch(server)
            assert "the endpoint is there now" in server.complaints
        finally:
            client.kill()
            server.kill()
            two.process.send_signal(signal.SIGCONT)
