# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Switches an interface's offloads by the ethtool ioctl, as `ethtool -K` does.

The call acts on interfaces of the caller's network namespace.
"""

import array
import fcntl
import socket
import struct

_SIOCETHTOOL = 0x8946

# ETHTOOL_S* of linux/ethtool.h
_SET_TX_CHECKSUM = 0x17
_SET_TSO = 0x1F
_SET_GSO = 0x24
_SET_GRO = 0x2C


def _set(interface: str, command: int, on: bool) -> None:
    value = array.array("B", struct.pack("=II", command, int(on)))
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
