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
    example = tmp_path / "example"
    source = places.root() / "programs" / "example.c"
    subprocess.run(["cc", str(source), *flags.split(), "-o", str(example)], check=True)
    library = next(tmp_path.rglob("libbeowire.so")).parent
    run = {**os.environ, "LD_LIBRARY_PATH": str(library)}
    server = subprocess.Popen(
        ["ip", "netns", "exec", nodes[0], str(example)], stdout=subprocess.PIPE, text=True, env=run
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        client = ["ip", "netns", "exec", nodes[1], str(example), address]
        subprocess.run(client, env=run, check=True, timeout=240)
        output, _ = server.communicate(timeout=240)
    finally:
        server.kill()
        server.wait()
    assert "Hello over the wire" in output
    assert "and 1048576 bytes: ok" in output


def _exported() -> list[str]:
    library = places.product("hosts/user/libbeowire.so")
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", str(library)], check=True, capture_output=True, text=True
    ).stdout
    return sorted(line.split()[2] for line in symbols.splitlines())


def test_only_the_public_interface_is_exported() -> None:
    header = (places.root() / "hosts" / "user" / "beowire.h").read_text()
    exported = _exported()
    assert exported
    for name in exported:
        assert f"{name}(" in header, f"{name} is exported but not public"


def test_the_package_tells_since_when_each_function_exists() -> None:
    """deb-symbols(5): what programs need decides which version of the package they depend on."""
    lines = (places.root() / "packaging/debian/libbeowire1.symbols").read_text().splitlines()
    assert lines[0] == "libbeowire.so.1 libbeowire1 #MINVER#"
    assert sorted(line.split("@")[0][1:] for line in lines if line.startswith(" ")) == _exported()


def test_header_is_valid_cplusplus(tmp_path: Path) -> None:
    source = tmp_path / "try.cc"
    source.write_text(
        '#include "beowire.h"\nint main() { return sizeof(bw_addr) == 56 ? 0 : 1; }\n'
    )
    include = places.root() / "hosts" / "user"
    command = ["c++", "-Wall", "-Wextra", "-Werror", f"-I{include}", str(source), "-o"]
    subprocess.run([*command, str(tmp_path / "try")], check=True)
    subprocess.run([str(tmp_path / "try")], check=True)


UNLOADER = """
#include <dlfcn.h>
#include <unistd.h>
#include "beowire.h"

static void message(void *arg, const struct bw_message *m) {}
static void sent(void *arg, void *op, int status) {}
static void pulled(void *arg, void *op, int status, uint64_t len) {}
static void down(void *arg, bw_peer_no peer, int status) {}

int main(int argc, char **argv)
{
	const struct bw_handlers handlers = {message, sent, pulled, down, 0};
	const struct bw_ep_attr attr = {&handlers, 0, false};
	void *library = dlopen(argv[1], RTLD_NOW);
	int (*open)(struct bw_ep **, const struct bw_ep_attr *, const char **);
	struct bw_ep *ep;
	const char *why;

	open = library ? dlsym(library, "bw_ep_open") : 0;
	if (!open || open(&ep, &attr, &why))
		return 1;
	dlclose(library);
	usleep(100000);
	return fork() < 0;
}
"""


def test_unloading_with_an_open_endpoint_does_no_harm(tmp_path: Path) -> None:
    """The code stays where the helper thread runs, and where fork() looks for its handlers."""
    source = tmp_path / "unload.c"
    source.write_text(UNLOADER)
    program = tmp_path / "unload"
    include = places.root() / "hosts" / "user"
    subprocess.run(["cc", f"-I{include}", str(source), "-ldl", "-o", str(program)], check=True)
    library = places.product("hosts/user/libbeowire.so")
    run = {**os.environ, "BEOWIRE_LINKS": "local"}
    assert subprocess.run([str(program), str(library)], env=run, check=False).returncode == 0
