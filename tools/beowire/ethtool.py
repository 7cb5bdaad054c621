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
_SET_TSO = 0x1F
_SET_GSO = 0x24
_SET_GRO = 0x2C


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
    """Large sends cut by the device or just before it, and frames joined on receipt."""
    for command in (_SET_TSO, _SET_GSO, _SET_GRO):
        _set(interface, command, on)


def set_tx_checksum(interface: str, on: bool) -> None:
    """Checksums of TCP and UDP left to the device. Off, the kernel computes them; and the
    receiver, which trusts a virtual link's device, verifies them. Off implies no segmentation."""
    _set(interface, _SET_TX_CHECKSUM, on)
