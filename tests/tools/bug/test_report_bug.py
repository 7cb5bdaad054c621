# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The archive for maintainers: what is in it, and what is not."""

import json
import os
import pwd
import re
import socket
import stat
import tarfile
from pathlib import Path

import pytest
from beowire.bug import names
from beowire.bug.parts import KNOWN_VARIABLES, PARTS
from beowire.bug.privacy import Cleaner
from beowire_cli import beowire
from hypothesis import given
from hypothesis import strategies as st

KEY = "0123456789abcdef" * 4
HOSTS = ["alpha", "alpha.example.org", "beta-2"]


def cleaned(text: str, keep_names: bool = False) -> str:
    return Cleaner(HOSTS, ["grace"], keep_names=keep_names).clean(text)


@pytest.mark.parametrize("keep_names", [False, True])
def test_secrets_never_stay(keep_names: bool) -> None:
    text = f"key {KEY}\npassword=hunter2 token: abc\n-----BEGIN RSA PRIVATE KEY-----\nx\n"
    text += "-----END RSA PRIVATE KEY-----\n"
    said = cleaned(text, keep_names)
    for secret in (KEY, "hunter2", "abc", "\nx\n"):
        assert secret not in said
    assert said.startswith("key <secret>\npassword=<secret> token: <secret>\n<private key>")


@given(st.text("0123456789abcdefABCDEF", min_size=32, max_size=64))
def test_no_key_of_any_case(key: str) -> None:
    assert key not in cleaned(f'"{key}"', keep_names=True)


def test_names_become_numbers_that_stay_the_same() -> None:
    said = cleaned("alpha:1 speaks with beta-2:2, alpha.example.org, ALPHA and alphabet; grace")
    first = re.match(r"(host\d):1", said)
    assert first
    assert said.count(first[1]) == 2
    assert "alphabet" in said
    for name in ("alpha:", "beta", "example", "ALPHA", "grace"):
        assert name not in said


def test_names_in_json() -> None:
    text = json.dumps({"said": "first\ngrace\tgrace", "user": "zo\u00eb"})
    said = Cleaner(HOSTS, ["grace", "zo\u00eb"], keep_names=False).clean(text)
    assert "grace" not in said
    assert json.loads(said)["said"].startswith("first\n")
    assert json.loads(said)["user"].startswith("user")


def account(name: str, home: str) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", 4711, 4711, "", home, "/bin/sh"))


def test_an_account_that_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Directory services answer for one account, and list none."""
    monkeypatch.setattr(pwd, "getpwall", list)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: account("CORP\\jane.doe", "/net/staff/jd"))
    monkeypatch.setattr(pwd, "getpwnam", {"ann_b": account("ann_b", "/net/ann")}.__getitem__)
    monkeypatch.setenv("HOME", "/elsewhere/j-home")
    monkeypatch.setenv("SUDO_USER", "grace")
    status = json.dumps({"endpoints": [{"user": "ann_b"}, {"user": "joe@corp"}, {"user": "4711"}]})
    found = names.users({"status.json": status, "log-1.txt": "ran /home/bob/x, /home/eve: "})
    expected = {"CORP\\jane.doe", "jane.doe", "jd", "j-home", "grace", "ann_b", "ann", "joe@corp"}
    assert set(found) >= {*expected, "joe", "bob", "eve"}
    assert not {"", "4711"} & set(found)
    said = Cleaner([], found, keep_names=False).clean(status)
    assert not [name for name in ("ann_b", "joe") if name in said]
    assert "4711" in said


def test_a_name_has_a_letter_or_a_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are in any text: of a home that is left out, dots."""
    monkeypatch.setenv("USER", "--")
    told = {"endpoints": [{"user": "_"}, {"user": "zo\u00eb"}], "host": "_._"}
    texts = {"status.json": json.dumps(told, indent=1), "log-1.txt": "/home/.../x, /home/-_- "}
    found = names.users(texts)
    assert not {"...", "-_-", "--", "_", ""} & set(found)
    assert "zo\u00eb" in found
    assert "_._" not in names.hosts(texts)


@pytest.mark.parametrize("kinds", [(["beowire", "Root"], []), ([], ["beowire", "Root"])])
def test_names_that_stand_for_something_else_stay(kinds: tuple[list[str], list[str]]) -> None:
    text = "libbeowire, beowire: /usr/lib/beowire, root"
    assert Cleaner(*kinds, keep_names=False).clean(text) == text


def test_names_of_hosts_in_the_state() -> None:
    told = {"node": "node_7", "peers": [{"host": "a_b.example"}, {"host": "?"}], "nodes": ["x"]}
    found = names.hosts({"status.json": json.dumps(told, indent=1)})
    assert {"node_7", "a_b.example"} <= set(found)
    assert not {"?", "", "localhost"} & set(found)


def test_addresses_become_numbers() -> None:
    text = "10.1.2.3 fe80::1 fd00:1:2::3 52:54:00:12:34:56 10.1.2.3 127.0.0.1 ::1 12:34:56 1.2.3"
    said = cleaned(text)
    numbers = said.split()
    assert numbers[0] == numbers[4]
    assert len({*numbers[:4]}) == 4
    assert numbers[5:] == ["127.0.0.1", "::1", "12:34:56", "1.2.3"]
    assert all(re.fullmatch(r"(address|mac)\d", each) for each in numbers[:5])


def test_names_can_be_kept() -> None:
    text = "alpha 10.1.2.3 52:54:00:12:34:56 grace"
    assert cleaned(text, keep_names=True) == text


def test_what_goes_in_can_be_listed() -> None:
    before = set(Path.cwd().iterdir())
    answer = beowire("report-bug", "--dry-run", "--log", "some.log")
    assert answer.status == 0
    listed = [line.split()[0] for line in answer.output.splitlines()]
    assert listed == [*(part.name for part in PARTS), "log-1.txt"]
    assert set(Path.cwd().iterdir()) == before


def test_the_archive(tmp_path: Path) -> None:
    log = tmp_path / "mine.log"
    log.write_text(f"it broke on {socket.gethostname()}-not with {KEY}, for adalove, gracehop\n")
    target = tmp_path / "bug.tar.gz"
    variables = {
        "BEOWIRE_LOG": "warn",
        "MY_SETTING": "hunter2",
        "BEOWIRE_STATS": f"/x/{KEY}",
        "HOME": "/absent/adalove",
        "SUDO_USER": "gracehop",
    }
    arguments = ["report-bug", "--output", str(target), "--log", str(log)]
    answer = beowire(*arguments, **variables)
    assert answer.status == 0, answer.errors
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with tarfile.open(target) as archive:
        names = [each.name for each in archive.getmembers()]
        texts = {}
        for each in archive.getmembers():
            content = archive.extractfile(each)
            assert content is not None
            texts[Path(each.name).name] = content.read().decode()
    assert names == [f"bug/{name}" for name in (*(part.name for part in PARTS), "log-1.txt")]
    assert "BEOWIRE_LOG=warn" in texts["environment.txt"]
    for secret in ("hunter2", KEY, "adalove", "gracehop"):
        assert secret not in "".join(texts.values())
    assert '"endpoints"' in texts["status.json"]
    own = socket.gethostname()
    if len(own) > 2:
        word = re.compile(rf"(?<![A-Za-z0-9-]){re.escape(own)}(?![A-Za-z0-9-])")
        assert [name for name, text in texts.items() if word.search(text)] == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "bug.tar.gz"
    target.write_text("precious")
    answer = beowire("report-bug", "--output", str(target))
    assert answer.status == 1
    assert target.read_text() == "precious"


def test_variables_are_those_that_are_described() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "man" / "beowire.7").read_text()
    known = {name for name in KNOWN_VARIABLES if name.startswith("BEOWIRE_")}
    described = set(re.findall(r"^\.It Ev (BEOWIRE_\w+)", page, flags=re.MULTILINE))
    assert described - known == {"BEOWIRE_KEY"}
    assert not {name for name in KNOWN_VARIABLES if "KEY" in name or "TOKEN" in name}
    assert os.environ.keys() - set(KNOWN_VARIABLES)
