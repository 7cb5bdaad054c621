# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The library as others use it: installed, found by pkg-config, its example compiled against it."""

import os
import subprocess
from pathlib import Path

from beowire import places


def installed(where: Path) -> Path:
    """The directory of the pkg-config file after an installation below `where`."""
    subprocess.run(
        ["meson", "install", "-C", str(places.build_dir()), "--no-rebuild", "--destdir", where],
        check=True,
        capture_output=True,
    )
    return next(where.rglob("beowire.pc")).parent


def test_example_is_built_by_pkg_config_and_runs(nodes: tuple[str, str], tmp_path: Path) -> None:
    config = installed(tmp_path)
    environment = {
        **os.environ,
        "PKG_CONFIG_PATH": str(config),
        "PKG_CONFIG_SYSROOT_DIR": str(tmp_path),
    }
    ask = ["pkg-config", "--cflags", "--libs", "beowire"]
    flags = subprocess.run(ask, env=environment, check=True, capture_output=True, text=True).stdout
    hello = tmp_path / "hello"
    source = places.root() / "hosts" / "user" / "hello.c"
    subprocess.run(["cc", str(source), *flags.split(), "-o", str(hello)], check=True)
    library = next(tmp_path.rglob("libbeowire.so")).parent
    run = {**os.environ, "LD_LIBRARY_PATH": str(library)}
    server = subprocess.Popen(
        ["ip", "netns", "exec", nodes[0], str(hello)], stdout=subprocess.PIPE, text=True, env=run
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        done = subprocess.run(
            ["ip", "netns", "exec", nodes[1], str(hello), address],
            env=run,
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
    finally:
        server.kill()
        server.wait()
    assert "answer: thank you for 6 bytes of eager data" in done.stdout
    assert "answer: thank you for 1000000 bytes of pulled data" in done.stdout


def test_only_the_public_interface_is_exported() -> None:
    library = places.product("hosts/user/libbeowire.so")
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", str(library)], check=True, capture_output=True, text=True
    ).stdout
    header = (places.root() / "hosts" / "user" / "beowire.h").read_text()
    exported = [line.split()[2] for line in symbols.splitlines()]
    assert exported
    for name in exported:
        assert f"{name}(" in header, f"{name} is exported but not public"


def test_header_is_valid_cplusplus(tmp_path: Path) -> None:
    source = tmp_path / "try.cc"
    source.write_text(
        '#include "beowire.h"\nint main() { return sizeof(bw_addr) == 64 ? 0 : 1; }\n'
    )
    include = places.root() / "hosts" / "user"
    command = ["c++", "-Wall", "-Wextra", "-Werror", f"-I{include}", str(source), "-o"]
    subprocess.run([*command, str(tmp_path / "try")], check=True)
    subprocess.run([str(tmp_path / "try")], check=True)
