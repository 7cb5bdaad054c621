# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a probe makes of its measurements, on series whose truth is known."""

import numpy as np
import pytest
from beowire.bench.samples import Ratio
from beowire.doctor import headroom, loggp, parts
from beowire.doctor.draws import LEAST_ROUNDS, between, estimate, of_rounds
from beowire.doctor.gain import HERE, THERE, Told
from beowire.doctor.keep import helped, together
from beowire.doctor.series import Key, Mode, Series, Transport, Wait

_ROUNDS = 9
_NOISE = (0.97, 0.98, 0.99, 1.0, 1.0, 1.0, 1.01, 1.02, 1.03)
_MS = 1e-3


def series(
    figures: dict[tuple[Transport, Mode, Wait, int], float],
    call_s: float = 1e-7,
    *,
    back: bool = False,
) -> Series:
    """Rounds that scatter by some per cent around these values."""
    found = Series(system_call_s=[call_s] * _ROUNDS)
    for (transport, mode, wait, size), value in figures.items():
        rounds = [value * each for each in _NOISE]
        found.of[Key(transport, mode, wait, size, back)] = rounds
    return found


def outcome(check: str, **settings: str) -> dict[str, object]:
    changes = [
        {"setting": name.replace("__", "."), "old": "0", "new": new}
        for name, new in settings.items()
    ]
    return {"check": check, "state": "bad", "changes": changes}


def test_an_interval_holds_its_value_and_scatter_widens_it() -> None:
    narrow = estimate(of_rounds([1.0] * _ROUNDS))
    wide = estimate(of_rounds(_NOISE))
    assert narrow.low == narrow.value == narrow.high == 1.0
    assert wide.low < wide.value == 1.0 < wide.high


@pytest.mark.parametrize("rounds", [LEAST_ROUNDS, 5, 7, 9])
def test_an_interval_holds_the_truth_as_often_as_it_says(rounds: int) -> None:
    """As drawn, without more, those of three rounds would in 75 of 100 cases."""
    cases = 800
    scatter = np.random.default_rng(rounds).normal(0, 0.1, size=(cases, rounds))
    found = [estimate(of_rounds(list(each))) for each in np.exp(scatter)]
    right = sum(each.low <= 1 <= each.high for each in found)
    assert right > 0.925 * cases  # 0.95 but for three deviations


def test_fewer_rounds_carry_no_interval() -> None:
    with pytest.raises(ValueError, match="2 rounds carry no interval"):
        of_rounds([1.0, 1.1])


def test_what_two_quantities_have_in_common_cancels() -> None:
    one = of_rounds(_NOISE)
    found = estimate(2 * one / one)
    assert (found.low, found.high) == (2.0, 2.0)


def test_quantities_of_other_salts_are_independent() -> None:
    assert list(between(0, 1, 1)[1:5]) == list(between(0, 1, 1)[1:5])
    assert list(between(0, 1, 1)[1:5]) != list(between(0, 1, 2)[1:5])


def test_loggp_is_found_again() -> None:
    latency, send, receive, gap, byte = 20e-6, 3e-6, 2e-6, 5e-6, 8e-10
    figures: dict[tuple[Transport, Mode, Wait, int], float] = {
        ("tcp", "latency", "spin", 8): send + latency + receive + 7 * byte,
        ("tcp", "send", "spin", 8): send,
        ("tcp", "receive", "spin", 8): receive,
        ("tcp", "rate", "spin", 8): 1 / gap,
    }
    for size in (65536, 262144, 1048576):
        figures["tcp", "bandwidth", "spin", size] = size / (30e-6 + size * byte)
    found = loggp.fit(series(figures), "tcp", "spin", 8)
    assert found is not None
    assert found.byte.value == pytest.approx(byte)
    assert found.latency.value == pytest.approx(latency)
    assert (found.send.value, found.receive.value) == (pytest.approx(send), pytest.approx(receive))
    assert found.gap.value == pytest.approx(gap)
    assert found.byte.low < byte < found.byte.high
    assert found.latency.low < latency < found.latency.high


def test_without_a_part_there_is_no_loggp() -> None:
    assert loggp.fit(series({("tcp", "latency", "spin", 8): 1e-5}), "tcp", "spin", 8) is None


def test_the_parts_of_a_message_add_up() -> None:
    found = parts.divide(
        series(
            {
                ("tcp", "latency", "block", 8): 20e-6,
                ("tcp", "latency", "spin", 8): 12e-6,
                ("packet", "latency", "spin", 8): 7e-6,
            },
            call_s=2e-7,
        ),
        "tcp",
        8,
    )
    assert found is not None
    values = {name: each.value for name, each in found.parts.items()}
    assert values == {
        "system call": pytest.approx(4e-7),
        "stack": pytest.approx(4.8e-6),
        "wake-up": pytest.approx(8e-6),
        "wire": pytest.approx(6.8e-6),
    }
    assert sum(values.values()) == pytest.approx(found.whole.value)


def slow_pair(bulk: float, line: float) -> Series:
    return series(
        {
            ("tcp", "latency", "block", 8): 5 * _MS,
            ("tcp", "bandwidth", "block", 65536): bulk,
            ("packet", "bandwidth", "block", 65536): line,
        }
    )


def told(*here: dict[str, object], there: tuple[dict[str, object], ...] = ()) -> Told:
    buffers = {"net.ipv4.tcp_rmem": [4096, 16384, 65536], "net.ipv4.tcp_wmem": [4096, 16384, 65536]}
    return Told(1500, {HERE: list(here), THERE: list(there)}, {HERE: buffers, THERE: buffers})


def test_a_small_window_is_fixed_up_to_the_line() -> None:
    small = outcome("buffers.tcp_receive", net__ipv4__tcp_rmem="4096 131072 268435456")
    found = headroom.predict(slow_pair(3e6, 25e6), told(there=(small,)), 8)
    (gain,) = found.gains
    assert (gain.check, gain.node, gain.metric) == ("buffers.tcp_receive", THERE, "bulk")
    assert gain.after.value == pytest.approx(25e6 * 1448 / 1498)
    assert gain.factor.value == pytest.approx(25e6 * 1448 / 1498 / 3e6)
    assert gain.factor.low <= gain.factor.value <= gain.factor.high


def test_a_receiver_s_buffer_does_not_hold_back_what_it_sends() -> None:
    small = outcome("buffers.tcp_receive", net__ipv4__tcp_rmem="4096 131072 268435456")
    found = headroom.predict(slow_pair(3e6, 25e6), told(small), 8)
    assert found.gains == []


def test_a_window_that_the_path_does_not_fill_is_not_the_reason() -> None:
    small = outcome("buffers.tcp_receive", net__ipv4__tcp_rmem="4096 131072 268435456")
    found = headroom.predict(slow_pair(1e6, 25e6), told(there=(small,)), 8)
    assert found.gains == []


def test_of_two_windows_one_fix_brings_little_and_both_bring_the_line() -> None:
    receive = outcome("buffers.tcp_receive", net__ipv4__tcp_rmem="4096 131072 268435456")
    send = outcome("buffers.tcp_send", net__ipv4__tcp_wmem="4096 16384 268435456")
    found = headroom.predict(slow_pair(3e6, 25e6), told(send, there=(receive,)), 8)
    assert {gain.check for gain in found.gains} == {"buffers.tcp_receive", "buffers.tcp_send"}
    assert all(gain.factor.high < 3 for gain in found.gains)
    (whole,) = found.together
    assert whole.after.value == pytest.approx(25e6 * 1448 / 1498)


def test_longer_frames_carry_more_on_a_full_line_alone() -> None:
    jumbo = outcome("link.mtu", **{"n0 mtu": "9000"})
    full = headroom.predict(slow_pair(24e6, 25e6), told(jumbo), 8)
    (gain,) = full.gains
    assert gain.factor.value == pytest.approx((8948 / 9038) / (1448 / 1538))
    assert headroom.predict(slow_pair(3e6, 25e6), told(jumbo), 8).gains == []


def test_what_no_model_speaks_of_is_named() -> None:
    found = headroom.predict(slow_pair(3e6, 25e6), told(outcome("tcp.sack")), 8)
    assert found.silent == [("tcp.sack", HERE)]


def test_a_queueing_discipline_adds_what_bare_frames_do_not_wait_for() -> None:
    figures = series(
        {
            ("tcp", "latency", "block", 8): 5e-3,
            ("tcp", "send", "block", 8): 10e-6,
            ("tcp", "receive", "block", 8): 10e-6,
            ("packet", "latency", "block", 8): 1e-3,
        }
    )
    (gain,) = headroom.predict(figures, told(outcome("qdisc.shaping")), 8).gains
    assert gain.metric == "latency"
    assert gain.factor.value == pytest.approx(5, rel=0.05)


def test_coalescing_adds_its_time_to_a_receipt() -> None:
    waits = outcome("coalescing.receive_short", n0="0")
    waits["changes"] = [{"setting": "n0 coalesce rx-usecs", "old": "100", "new": "0"}]
    figures = series({("tcp", "latency", "block", 8): 100e-6})
    (gain,) = headroom.predict(figures, told(waits), 8).gains
    assert 50e-6 <= gain.after.value <= 75e-6


def test_only_a_gain_beyond_doubt_is_kept() -> None:
    gain, loss, doubt = Ratio(2, 1.5, 3), Ratio(0.5, 0.4, 0.6), Ratio(1.1, 0.9, 1.3)
    assert helped([gain, doubt])
    assert not helped([doubt])
    assert not helped([gain, loss])
    assert not helped([])
    assert together([], "check") == []


def test_the_hardware_is_a_bare_frame_and_the_nic_s_speed() -> None:
    figures = series(
        {
            ("tcp", "latency", "block", 8): 20e-6,
            ("packet", "latency", "block", 8): 8e-6,
            ("packet", "latency", "spin", 8): 5e-6,
            ("tcp", "bandwidth", "block", 65536): 50e6,
        }
    )
    latency, best, most = headroom.predict(figures, Told(1500, speed_bits=10**9), 8).hardware
    assert latency.factor.value == pytest.approx(4)
    assert best.factor.value == pytest.approx(1)
    assert most.at_most
    assert most.after.value == pytest.approx(125e6 * 1448 / 1538)
    virtual = headroom.predict(figures, Told(1500), 8)
    assert not any(gain.at_most for gain in virtual.hardware)
