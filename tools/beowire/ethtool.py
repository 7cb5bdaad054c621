# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The ethtool ioctl: switches an interface's offloads, as `ethtool -K` does; tells its firmware.

The call acts on interfaces of the caller's network namespace.
"""

import array
import fcntl
import socket
import struct

_SIOCETHTOOL = 0x8946

# ETHTOOL_* of linux/ethtool.h
_GET_DRIVER = 0x03
_SET_TX_CHECKSUM = 0x17
_GET_STRINGS = 0x1B
_SET_TSO = 0x1F
_SET_GSO = 0x24
_SET_GRO = 0x2C
_GET_SET_INFO = 0x37
_SET_FEATURES = 0x3B

_FEATURE_NAMES = 4
"""ETH_SS_FEATURES: the set of strings that name the features."""
_NAME_BYTES = 32
_UDP_SEGMENTATION = "tx-udp-segmentation"

_DRIVER_INFO = struct.Struct("=I32s32s32s32s32s12s5I")
"""struct ethtool_drvinfo: its fourth field is the firmware's version."""


def firmware(interface: str) -> str:
    """The version of the NIC's firmware, empty if its driver tells none. Raises OSError."""
    value = array.array("B", _DRIVER_INFO.pack(_GET_DRIVER, *[b""] * 6, *[0] * 5))
    _call(interface, value)
    told: bytes = _DRIVER_INFO.unpack(value)[3]
    text = told.partition(b"\0")[0].decode(errors="replace").strip()
    return "" if text == "N/A" else text


def _set(interface: str, command: int, on: bool) -> None:
    _call(interface, array.array("B", struct.pack("=II", command, int(on))))


def _call(interface: str, value: "array.array[int]") -> None:
    """With `value` for the request, which the kernel may write to."""
    address, _ = value.buffer_info()
    request = struct.pack("16sP", interface.encode(), address).ljust(40, b"\0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCETHTOOL, request)


def set_segmentation(interface: str, on: bool) -> None:
    """Large sends cut by the device or just before it, and frames joined on receipt.

    Programs that send UDP datagrams joined (UDP_SEGMENT) go on when it is off; they are cut before
    they reach the device."""
    for command in (_SET_TSO, _SET_GSO, _SET_GRO):
        _set(interface, command, on)
    names = feature_names(interface)
    if _UDP_SEGMENTATION in names:
        _set_feature(interface, names.index(_UDP_SEGMENTATION), len(names), on)


def feature_names(interface: str) -> list[str]:
    """What the kernel calls the features of an interface, in the order of their bits."""
    info = array.array("B", struct.pack("=IIQI", _GET_SET_INFO, 0, 1 << _FEATURE_NAMES, 0))
    _call(interface, info)
    known: int = struct.unpack("=IIQI", info)[3]
    head = struct.pack("=III", _GET_STRINGS, _FEATURE_NAMES, known)
    strings = array.array("B", head + bytes(known * _NAME_BYTES))
    _call(interface, strings)
    each = (strings[at : at + _NAME_BYTES] for at in range(len(head), len(strings), _NAME_BYTES))
    return [name.tobytes().partition(b"\0")[0].decode(errors="replace") for name in each]


def _set_feature(interface: str, bit: int, known: int, on: bool) -> None:
    """struct ethtool_sfeatures: for each 32 features which of them to change, and to what."""
    words = [0] * (2 * -(-known // 32))
    words[bit // 32 * 2] = 1 << bit % 32
    words[bit // 32 * 2 + 1] = int(on) << bit % 32
    head = struct.pack("=II", _SET_FEATURES, len(words) // 2)
    _call(interface, array.array("B", head + struct.pack(f"={len(words)}I", *words)))


def set_tx_checksum(interface: str, on: bool) -> None:
    """Checksums of TCP and UDP left to the device. Off, the kernel computes them; and the
    receiver, which trusts a virtual link's device, verifies them. Off implies no segmentation."""
    _set(interface, _SET_TX_CHECKSUM, on)
