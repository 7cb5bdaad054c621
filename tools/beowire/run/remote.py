# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Commands and files on real hosts, over ssh or whatever the cluster's agent is."""

import contextlib
import io
import os
import signal
import subprocess
import tarfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, NamedTuple, TypeVar

from beowire import signals
from beowire.errors import BeowireError
from beowire.run.cluster import Cluster

T = TypeVar("T")

LIMIT_S = 600.0
"""For a script that nobody bounds otherwise: some copy programs, over slow lines too."""
_AT_ONCE = 32
_LOOK_S = 0.01


class Answers(NamedTuple):
    """What hosts put out, and why the others did not."""

    told: dict[str, bytes]
    failed: dict[str, BeowireError]


def execute(
    cluster: Cluster, host: str, script: str, data: bytes = b"", limit_s: float | None = None
) -> bytes:
    """The output of a shell script on a host; its failure, or that it takes longer than `limit_s`,
    is an error."""
    answers = ask_everywhere(replace(cluster, hosts=[host]), script, data, limit_s)
    for error in answers.failed.values():
        raise error
    return answers.told[host]


def execute_everywhere(
    cluster: Cluster, script: str, data: bytes = b"", limit_s: float = LIMIT_S
) -> dict[str, bytes]:
    """The same script on all hosts at once; the outputs by host. The failure of any is an error."""
    answers = ask_everywhere(cluster, script, data, limit_s)
    for error in answers.failed.values():
        raise error
    return answers.told


def ask_everywhere(
    cluster: Cluster, script: str, data: bytes = b"", limit_s: float | None = None
) -> Answers:
    """The same of hosts any of which may fail, or take longer than `limit_s`, by itself. An
    interruption ends what was begun, unless the caller holds it back."""
    told: dict[str, bytes] = {}
    failed: dict[str, BeowireError] = {}
    waiting = list(reversed(dict.fromkeys(cluster.hosts)))
    begun: dict[str, _Begun] = {}
    with signals.uninterrupted() as held_back:
        try:
            while waiting or begun:
                while waiting and len(begun) < _AT_ONCE:
                    host = waiting.pop()
                    try:
                        begun[host] = _begin(cluster, host, script, data, held_back)
                    except BeowireError as error:
                        failed[host] = error
                if not held_back & signals.ENDING:
                    signals.check_interrupted()
                over = [host for host, each in begun.items() if each.is_over(limit_s)]
                for host in over:
                    with contextlib.closing(begun.pop(host)) as ended:
                        try:
                            told[host] = ended.answer(cluster, host, limit_s)
                        except BeowireError as error:
                            failed[host] = error
                if not over:
                    time.sleep(_LOOK_S)
        finally:
            for each in begun.values():
                each.close()
    return Answers(_in_order(cluster, told), _in_order(cluster, failed))


def _in_order(cluster: Cluster, found: dict[str, T]) -> dict[str, T]:
    return {host: found[host] for host in cluster.hosts if host in found}


@dataclass(frozen=True)
class _Begun:
    """What executes the script on a host, and the files that it writes to: it does not wait until
    somebody reads a pipe."""

    child: "subprocess.Popen[bytes]"
    said: IO[bytes]
    complaint: IO[bytes]
    files: contextlib.ExitStack
    since: float

    def is_over(self, limit_s: float | None) -> bool:
        late = limit_s is not None and time.monotonic() >= self.since + limit_s
        return self.child.poll() is not None or late

    def answer(self, cluster: Cluster, host: str, limit_s: float | None) -> bytes:
        status = self.child.returncode
        if status is None:
            raise BeowireError(
                f"{host} did not answer within {limit_s:g} s.", cluster.by_hand(host)
            )
        if status != 0:
            self.complaint.seek(0)
            words = self.complaint.read().decode(errors="replace").strip() or f"status {status}"
            raise BeowireError(f"{host} did not do as asked: {words}", cluster.by_hand(host))
        self.said.seek(0)
        return self.said.read()

    def close(self) -> None:
        """Ends it, if it has not ended."""
        self.child.kill()
        self.child.wait()
        self.files.close()


def _begin(
    cluster: Cluster, host: str, script: str, data: bytes, mask: set[signal.Signals | int]
) -> _Begun:
    """Begins the script on a host, with these signals held back."""
    with contextlib.ExitStack() as files:
        given, said, complaint = (files.enter_context(_memory(each)) for each in (data, b"", b""))
        try:
            child = subprocess.Popen(
                cluster.reach(host, script),
                stdin=given,
                stdout=said,
                stderr=complaint,
                preexec_fn=lambda: signals.release(mask),
            )
        except OSError as error:
            raise BeowireError(
                f"{cluster.agent[0]} cannot be executed: {error.strerror}.",
                "Install ssh (apt-get install openssh-client), or name another command by --ssh.",
            ) from error
        return _Begun(child, said, complaint, files.pop_all(), time.monotonic())


def _memory(content: bytes) -> IO[bytes]:
    """A file that takes no room on a disk."""
    file = open(os.memfd_create("beowire"), "w+b")  # noqa: SIM115
    file.write(content)
    file.seek(0)
    return file


def packed(files: dict[str, Path | str]) -> bytes:
    """A tar archive of files by the names they get; a text stands for a file's content."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, source in files.items():
            content = source.read_bytes() if isinstance(source, Path) else source.encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o755 if isinstance(source, Path) else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def unpack(archive: bytes, directory: Path) -> None:
    """Unpacks plain files of an archive from a host into a directory here."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as content:
        for entry in content.getmembers():
            name = Path(entry.name).name
            stream = content.extractfile(entry) if entry.isfile() else None
            if stream is not None:
                (directory / name).write_bytes(stream.read())
