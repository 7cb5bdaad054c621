# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fixes are applied and undone, byte for byte, whatever happens in between."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import beowire_cli
import pytest
from beowire.doctor import fix, journal, persist
from beowire.doctor.check import Change
from beowire.doctor.examine import examine
from beowire.doctor.fix import Result, Step
from beowire.doctor.journal import Journal
from beowire.doctor.registry import ALL
from beowire.doctor.setting import (
    ABSENT,
    ConfigurationSetting,
    EthtoolSetting,
    FileSetting,
    LinkSetting,
    Setting,
    from_json,
)
from beowire.doctor.source import Recorded
from beowire.errors import BeowireError
from faults import FAULTS
from good_node import GoodNode
from pyroute2 import IPRoute
from world import EXAMINED, Layered, World, world

pytestmark = pytest.mark.skipif(
    bool(beowire_cli.NO_NAMESPACES), reason=f"namespaces: {beowire_cli.NO_NAMESPACES}"
)

_NAMED = (
    "tcp.sack",
    "tcp.autocorking",
    "tcp.ports",
    "buffers.tcp_receive",
    "buffers.tcp_send_first",
    "offloads.tso",
    "offloads.gro_size",
    "link.queue_length",
    "napi.threaded",
    "queues.send",
    "path.answers",
)
_NOBODY = 65534
_RECORDED = ("memory.huge_pages", "cpu.governor", "coalescing.receive_short", "clock.source")


@pytest.fixture(autouse=True)
def _journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEOWIRE_STATE", str(tmp_path / "state"))


@pytest.fixture
def ill() -> Iterator[World]:
    """The good node with faults that can be fixed."""
    with world("latency") as made:
        for name in (*_NAMED, *_RECORDED):
            FAULTS[name].plant(made)
        yield made


def settings(made: World) -> list[Setting]:
    """All that fixing would change."""
    return [
        change.setting
        for each in made.examine().findings()
        if each.bad
        for change in each.bad.changes
    ]


def values(made: World, which: list[Setting]) -> list[str]:
    return made.run(lambda: [each.read(made.source) for each in which])


def repair(made: World, *, interrupting: bool = False) -> list[Step]:
    def act() -> list[Step]:
        done = examine(made.node(), ALL.values(), EXAMINED)
        log = Journal(made.source, "fix")
        with contextlib.closing(log):
            outcomes = fix.fixable(done, interrupting=interrupting)
            return list(fix.apply(made.source, done.node, outcomes, log))

    return made.run(act)


def undo(made: World, *, force: bool = False) -> list[Step]:
    return made.run(lambda: list(fix.undo(made.source, journal.pending()[0], force=force)))


def test_what_is_fixed_is_good_and_what_is_undone_is_as_before(ill: World) -> None:
    which = settings(ill)
    before = values(ill, which)
    assert {*_NAMED, *_RECORDED} <= ill.found()
    steps = repair(ill)
    assert {step.result for step in steps} == {Result.DONE}
    assert ill.found() == set()
    assert values(ill, which) != before
    assert {step.result for step in undo(ill)} == {Result.DONE}
    assert values(ill, which) == before
    assert journal.pending() == []


def test_two_fixes_of_one_setting_add_up_and_are_both_undone() -> None:
    with world("latency") as made:
        made.sysctl("ipv4/tcp_rmem", "4096 8192 65536")
        setting = FileSetting("/proc/sys/net/ipv4/tcp_rmem")
        before = values(made, [setting])
        repair(made)
        assert made.found() == set()
        undo(made)
        assert values(made, [setting]) == before


def _kill_at(made: World, number: int, *, after: bool) -> None:
    """Fixes in a child that is killed at its n-th write, just before or just after it."""

    def act() -> None:
        child = os.fork()
        if child == 0:
            writes = 0
            done = examine(made.node(), ALL.values(), EXAMINED)
            log = Journal(made.source, "fix")

            def count(_: str) -> None:
                nonlocal writes
                writes += 1
                if writes == number + after:
                    os.kill(os.getpid(), signal.SIGKILL)

            made.source.before_write = count
            for _ in fix.apply(made.source, done.node, fix.fixable(done, interrupting=False), log):
                pass
            os._exit(0)
        os.waitpid(child, 0)

    made.run(act)


@pytest.mark.parametrize("number", [1, 2, 5, 9])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_kill_in_the_middle_can_be_undone(number: int, after: bool) -> None:
    with world("latency") as made:
        for name in _NAMED:
            FAULTS[name].plant(made)
        made.run(made.source.close)
        which = settings(made)
        before = values(made, which)
        made.run(made.source.close)
        _kill_at(made, number, after=after)
        if number + after > 1:
            assert values(made, which) != before
        assert {step.result for step in undo(made)} <= {Result.DONE}
        assert values(made, which) == before
        assert set(_NAMED) <= made.found()


def test_a_kill_in_the_middle_of_undoing_can_be_undone(ill: World) -> None:
    which = settings(ill)
    before = values(ill, which)
    repair(ill)

    def begin() -> None:
        steps = fix.undo(ill.source, journal.pending()[0])
        for _ in range(5):
            next(steps)

    ill.run(begin)
    assert values(ill, which) != before
    undo(ill)
    assert values(ill, which) == before


def test_a_torn_line_is_of_a_change_that_was_not_made(ill: World) -> None:
    repair(ill)
    past = journal.pending()[0]
    lines = past.path.read_bytes().splitlines(keepends=True)
    past.path.write_bytes(b"".join(lines[:3]) + lines[3][:20])
    assert len(journal.read(past.path).entries) == 1


@pytest.mark.parametrize("line", [b"{]", b"[" * 100_000], ids=["torn", "deep"])
def test_a_damaged_journal_is_named(ill: World, line: bytes) -> None:
    repair(ill)
    past = journal.pending()[0]
    past.path.write_bytes(line + b"\n" + past.path.read_bytes())
    with pytest.raises(BeowireError, match=r"damaged.*no JSON"):
        journal.read(past.path)


def _spoil_head(path: Path) -> None:
    path.write_bytes(b"{]\n" + path.read_bytes())


def _spoil_shape(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b'{"setting": ["no"], "old": "", "new": ""}\n')


def _leave_open(path: Path) -> None:
    path.chmod(0o666)


def _give_away(path: Path) -> None:
    os.chown(path, _NOBODY, _NOBODY)


@pytest.mark.parametrize("spoil", [_spoil_head, _spoil_shape, _leave_open, _give_away])
def test_a_journal_that_cannot_be_used_is_named_and_the_others_are_undone(
    ill: World, spoil: Callable[[Path], None]
) -> None:
    which = settings(ill)
    before = values(ill, which)
    repair(ill)
    ill.sysctl("ipv4/tcp_retries2", "3")
    repair(ill)
    bad, good = journal.pending()
    spoil(bad.path)
    assert journal.pending() == [good]
    (error,) = journal.unreadable()
    assert str(bad.path) in str(error)
    undo(ill)
    assert values(ill, which) == before
    assert bad.path.exists()


@pytest.mark.parametrize(
    "setting",
    [
        {"of": "file", "path": "/proc/sys/kernel/core_pattern"},
        {"of": "file", "path": "/proc/sys/net/../kernel/modprobe"},
        {"of": "file", "path": "/etc/passwd"},
        {"of": "file", "path": "/sys/class/net/../../kernel/uevent_helper"},
        {"of": "configuration", "path": "/etc/passwd"},
        {"of": "configuration", "path": "/etc/sysctl.d/../shadow"},
        {"of": "configuration", "path": "/etc/systemd/network/10-beowire-../x.link"},
        {"of": "ethtool", "interface": "../n0", "kind": "rings", "name": "rx"},
        {"of": "link", "interface": "n0", "name": "ifname"},
        {"of": "link", "interface": "n0", "name": ["mtu"]},
        {"of": "nothing"},
    ],
    ids=str,
)
def test_what_the_doctor_does_not_change_is_not_undone(setting: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"is no setting|does not change"):
        from_json(setting)


def test_the_old_value_is_on_disk_before_the_change(ill: World) -> None:
    known: list[bool] = []

    def look(what: str) -> None:
        past = journal.pending()[0]
        last = past.entries[-1]
        known.append(
            last.became is None and (what.endswith(str(last.setting)) or what in str(vars(last)))
        )

    ill.source.before_write = look
    steps = repair(ill)
    assert len(known) == len(steps)
    assert all(known)


def test_what_is_refused_is_named_and_the_rest_goes_on(ill: World) -> None:
    def refuse(path: str) -> None:
        if path.endswith("tcp_sack"):
            raise OSError(30, "Read-only file system", path)

    ill.source.before_write = refuse
    steps = repair(ill)
    refused = [step for step in steps if step.result is Result.REFUSED]
    assert [step.what for step in refused] == ["tcp.sack: net.ipv4.tcp_sack"]
    assert "read-only file system" in refused[0].said
    assert ill.found() == {"tcp.sack"}


def test_what_someone_else_changed_since_is_left_unless_forced(ill: World) -> None:
    repair(ill)
    ill.sysctl("ipv4/tcp_rmem", "4096 131072 123456789")
    left = [step for step in undo(ill) if step.result is Result.LEFT]
    assert [step.what for step in left] == ["net.ipv4.tcp_rmem"]
    assert "tcp_sack" in " ".join(map(str, settings(ill)))


def test_force_puts_back_what_someone_else_changed(ill: World) -> None:
    setting = FileSetting("/proc/sys/net/ipv4/tcp_rmem")
    before = values(ill, [setting])
    repair(ill)
    ill.sysctl("ipv4/tcp_rmem", "4096 131072 123456789")
    undo(ill, force=True)
    assert values(ill, [setting]) == before


def test_what_was_left_can_be_forced_afterwards(ill: World) -> None:
    """Though the earlier changes of that setting, and of others, were undone before."""
    which = settings(ill)
    before = values(ill, which)
    repair(ill)
    ill.sysctl("ipv4/tcp_rmem", "4096 131072 123456789")
    undo(ill)
    again = {step.said for step in undo(ill) if step.what != "net.ipv4.tcp_rmem"}
    assert again == {"it has its old value"}
    assert {step.result for step in undo(ill, force=True)} == {Result.DONE}
    assert values(ill, which) == before
    assert journal.pending() == []


def test_what_is_undone_of_two_changes_of_a_setting_is_not_taken_for_someone_else_s(
    ill: World,
) -> None:
    sack, retries = (FileSetting(f"/proc/sys/net/ipv4/tcp_{name}") for name in ("sack", "retries2"))
    before = values(ill, [retries])
    with contextlib.closing(ill.run(Journal, ill.source, "fix")) as log:
        for setting, old, new in (
            (sack, "0\n", "1\n"),
            (retries, before[0], "9\n"),
            (retries, "9\n", "11\n"),
        ):
            log.before(Change(setting, old, new))
            log.after(new)
    ill.sysctl("ipv4/tcp_sack", "2")
    ill.sysctl("ipv4/tcp_retries2", "11")
    undo(ill)
    assert values(ill, [retries]) == before
    results = {step.what: step.result for step in undo(ill)}
    assert results == {str(retries): Result.DONE, str(sack): Result.LEFT}


def test_a_change_that_the_kernel_refused_is_no_reason_to_overwrite_a_later_one(
    ill: World,
) -> None:
    def refuse(path: str) -> None:
        if path.endswith("tcp_rmem"):
            raise OSError(22, "Invalid argument", path)

    setting = FileSetting("/proc/sys/net/ipv4/tcp_rmem")
    ill.source.before_write = refuse
    repair(ill)
    assert not ill.run(persist.in_force, ill.source, journal.pending()).keys() & {setting}
    ill.source.before_write = lambda _: None
    ill.sysctl("ipv4/tcp_rmem", "4096 131072 123456789")
    undo(ill)
    assert values(ill, [setting])[0].split() == ["4096", "131072", "123456789"]


def test_what_lasts_keeps_what_lasts_already() -> None:
    """Of a boot before this one: what still holds, of files that were written so."""
    with world("latency") as made:
        made.good.files |= {"/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never"}
        huge, governor, sack, window, retries = (
            FileSetting(path, path.endswith("enabled"))
            for path in (
                "/sys/kernel/mm/transparent_hugepage/enabled",
                "/sys/devices/system/cpu/cpufreq/policy2/scaling_governor",
                "/proc/sys/net/ipv4/tcp_sack",
                "/proc/sys/net/ipv4/tcp_window_scaling",
                "/proc/sys/net/ipv4/tcp_retries2",
            )
        )
        ring = EthtoolSetting("nic0", "rings", "rx")
        tso = EthtoolSetting("nic0", "features", "tx-tcp-segmentation")
        delay = EthtoolSetting("nic0", "coalesce", "rx-usecs")
        mtu = LinkSetting("nic0", "mtu")
        held: dict[Setting, str] = dict(
            zip(
                (huge, governor, sack, window, retries, ring, tso, delay, mtu),
                values(made, [huge, governor, sack, window, retries, ring, tso, delay, mtu]),
                strict=True,
            )
        )
        first = {each: value for each, value in held.items() if each not in (window, mtu, huge)}
        later = {each: held[each] for each in (window, mtu, huge)}
        whole = made.run(persist.plan, made.source, held)
        made.good.files |= made.run(persist.plan, made.source, first).files
        made.good.files["/etc/sysctl.d/90-beowire.conf"] += "kernel.core_pattern = core\n"
        both = made.run(persist.plan, made.source, later)
        lines = {path: sorted(text.splitlines()) for path, text in both.files.items()}
        assert lines == {path: sorted(text.splitlines()) for path, text in whole.files.items()}
        assert len(lines) == 3
        assert made.run(persist.plan, made.source, later, "/image").files.keys() == lines.keys()
        made.sysctl("ipv4/tcp_retries2", "3")
        told = made.run(persist.plan, made.source, later).files["/etc/sysctl.d/90-beowire.conf"]
        assert "tcp_retries2" not in told
        assert "tcp_sack" in told
        others = "# of someone else\nnet.ipv4.tcp_sack = 1\n"
        made.good.files["/etc/sysctl.d/90-beowire.conf"] = others
        told = made.run(persist.plan, made.source, later).files["/etc/sysctl.d/90-beowire.conf"]
        assert "tcp_sack" not in told


def test_the_profile_of_tuned_keeps_the_one_that_it_includes(tmp_path: Path) -> None:
    """Once it is the active one itself."""
    source = Recorded(tmp_path)
    setting = FileSetting("/sys/devices/system/cpu/cpufreq/policy2/scaling_governor")
    for path, text in (
        (setting.path, "performance\n"),
        ("/etc/tuned/active_profile", "balanced\n"),
        ("/proc/sys/kernel/random/boot_id", "this\n"),
        ("/answers/links.json", "[]"),
    ):
        source.place(path).parent.mkdir(parents=True, exist_ok=True)
        source.place(path).write_text(text)
    for _ in range(2):
        made = persist.plan(source, {setting: "performance"})
        (text,) = made.files.values()
        assert "include=balanced\n" in text
        with contextlib.closing(Journal(source, "persist")) as log:
            assert [each.result for each in persist.write(source, made, log)] == [Result.DONE]
        (tmp_path / "etc/tuned/active_profile").write_text("beowire\n")


def test_what_lasts_is_of_the_nic_and_not_of_whose_address_it_has() -> None:
    """A bond's ports have the bond's, and a VLAN that of what is below it, at boot or later."""
    good = GoodNode("latency")
    port, vlan = good.link("nic0"), good.link("nic1")
    port |= {"address": "02:00:00:00:00:77", "permanent_address": "02:00:00:00:00:33"}
    vlan |= {"address": "02:00:00:00:00:77", "permanent_address": None}
    made = persist.plan(
        Layered(good), {LinkSetting("nic0", "mtu"): "9000", LinkSetting("nic1", "mtu"): "9000"}
    )
    ((path, text),) = made.files.items()
    assert path == "/etc/systemd/network/10-beowire-nic0.link"
    assert "[Match]\nPermanentMACAddress=02:00:00:00:00:33\n" in text
    assert "77" not in text
    assert made.left == ["ip link set nic1 mtu 9000"]


def test_after_a_reboot_only_configuration_files_are_put_back(ill: World, tmp_path: Path) -> None:
    file = tmp_path / "etc" / "sysctl.d" / "90-beowire.conf"
    log = ill.run(Journal, ill.source, "test")
    for setting, old, new in (
        (FileSetting("/proc/sys/net/ipv4/tcp_sack"), "0\n", "1"),
        (ConfigurationSetting(str(file)), ABSENT, "a = 1\n"),
    ):
        log.before(Change(setting, old, new))
        log.after(new)
    log.close()
    file.parent.mkdir(parents=True)
    file.write_text("a = 1\n")
    ill.good.files[str(file)] = "a = 1\n"
    ill.good.sysctl("kernel/random/boot_id", "another")
    results = {step.what: step.result for step in undo(ill)}
    assert results["net.ipv4.tcp_sack"] is Result.GONE
    assert results[str(file)] is not Result.GONE
    assert not file.exists()


def test_without_a_place_for_the_undo_file_nothing_is_changed(
    ill: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BEOWIRE_STATE", str(tmp_path / "file"))
    which = settings(ill)
    before = values(ill, which)
    with pytest.raises(BeowireError, match="Nothing was changed"):
        repair(ill)
    assert values(ill, which) == before


def test_outside_the_first_network_namespace_the_machine_is_left_alone(ill: World) -> None:
    FAULTS["memory.swappiness"].plant(ill)
    FAULTS["kernel.autogroup"].plant(ill)
    of_machine = {*_RECORDED, "memory.swappiness", "kernel.autogroup"} - {
        "coalescing.receive_short"
    }
    for name in ("netdev_budget", "netdev_budget_usecs"):
        del ill.good.files[f"/proc/sys/net/core/{name}"]
    files = dict(ill.good.files)
    done = ill.examine()
    for interrupting in (False, True):
        left = ill.run(partial(fix.left_to_the_machine, done, interrupting=interrupting))
        assert {each.check.name for each in left} == (set() if interrupting else of_machine)
    assert {step.result for step in repair(ill)} == {Result.DONE}
    assert ill.good.files == files
    assert ill.found() == of_machine


def test_what_cannot_be_read_is_not_taken_for_gone(
    ill: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    repair(ill)
    real = ill.source.text

    def deny(path: str) -> str:
        if path.endswith("tcp_sack"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(ill.source, "text", deny)
    refused = [step.what for step in undo(ill) if step.result is Result.REFUSED]
    assert refused == ["net.ipv4.tcp_sack"]
    assert journal.pending()


def test_what_vanished_before_its_fix_is_not_called_fixed() -> None:
    with world("latency") as made:
        FAULTS["offloads.tso"].plant(made)

        def act() -> list[Step]:
            done = examine(made.node(), ALL.values(), EXAMINED)
            outcomes = [each for each in done.findings() if each.interface == "n0"]
            with IPRoute() as route:
                route.link("del", index=route.link_lookup(ifname="n0")[0])
            log = Journal(made.source, "fix")
            with contextlib.closing(log):
                return list(fix.apply(made.source, done.node, outcomes, log))

        assert {step.result for step in made.run(act)} == {Result.GONE}


def test_interrupting_fixes_are_apart_from_live_ones() -> None:
    with world("latency") as made:
        FAULTS["link.mtu"].plant(made)
        FAULTS["tcp.sack"].plant(made)
        FAULTS["rings.receive"].plant(made)
        repair(made)
        assert made.found() == {"link.mtu", "rings.receive"}
        repair(made, interrupting=True)
        assert made.found() == set()


def test_what_is_only_reported_is_never_fixed() -> None:
    reported = [name for name in FAULTS if name.startswith(("netfilter", "groups", "accounting"))]
    with world("latency") as made:
        for name in reported:
            FAULTS[name].plant(made)
        files = dict(made.good.files)
        assert repair(made) == []
        assert repair(made, interrupting=True) == []
        assert made.good.files == files


def test_a_confirmation_after_the_guard_came_says_so(ill: World) -> None:
    repair(ill)
    path = journal.pending()[0].path
    assert journal.confirm(path)
    undo(ill)
    assert not journal.confirm(path)
    assert not list(path.parent.glob("*.confirmed"))


def test_what_a_fix_at_work_writes_is_not_undone(ill: World) -> None:
    log = ill.run(Journal, ill.source, "fix")
    with pytest.raises(BeowireError, match="a fix is at work"):
        undo(ill)
    log.close()
