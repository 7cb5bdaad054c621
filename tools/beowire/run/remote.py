# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Commands and files on real hosts, over ssh or whatever the cluster's agent is."""

import io
import subprocess
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from beowire import signals
from beowire.errors import BeowireError
from beowire.run.cluster import Cluster


class Answers(NamedTuple):
    """What hosts put out, and why the others did not."""

    told: dict[str, bytes]
    failed: dict[str, BeowireError]


def execute(
    cluster: Cluster, host: str, script: str, data: bytes = b"", limit_s: float | None = None
) -> bytes:
    """The output of a shell script on a host; its failure, or that it takes longer than `limit_s`,
    is an error."""
    try:
        done = subprocess.run(
            cluster.reach(host, script),
            input=data,
            capture_output=True,
            check=False,
            timeout=limit_s,
        )
    except subprocess.TimeoutExpired as error:
        raise BeowireError(
            f"{host} did not answer within {limit_s:g} s.",
            cluster.by_hand(host),
        ) from error
    except OSError as error:
        raise BeowireError(
            f"{cluster.agent[0]} cannot be executed: {error.strerror}.",
            "Install ssh (apt-get install openssh-client), or name another command by --ssh.",
        ) from error
    if done.returncode != 0:
        words = done.stderr.decode(errors="replace").strip() or f"status {done.returncode}"
        raise BeowireError(
            f"{host} did not do as asked: {words}",
            cluster.by_hand(host),
        )
    return done.stdout


def execute_everywhere(cluster: Cluster, script: str, data: bytes = b"") -> dict[str, bytes]:
    """The same script on all hosts at once; the outputs by host. The failure of any is an error."""
    answers = ask_everywhere(cluster, script, data)
    for error in answers.failed.values():
        raise error
    return answers.told


def ask_everywhere(
    cluster: Cluster, script: str, data: bytes = b"", limit_s: float | None = None
) -> Answers:
    """The same of hosts any of which may fail, or take longer than `limit_s`, by itself."""
    answers = Answers({}, {})
    with signals.uninterrupted(), ThreadPoolExecutor(max_workers=32) as pool:
        futures = {
            host: pool.submit(execute, cluster, host, script, data, limit_s)
            for host in cluster.hosts
        }
        for host, future in futures.items():
            try:
                answers.told[host] = future.result()
            except BeowireError as error:
                answers.failed[host] = error
    return answers


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
