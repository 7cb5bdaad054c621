# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What labs use of pyroute2, loaded when it is first used: most commands never do, and it takes
as long to load as they take."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyroute2 import IPRoute as IPRoute
    from pyroute2.netlink.exceptions import NetlinkError as NetlinkError
    from pyroute2.netlink.rtnl import TC_H_CLSACT as TC_H_CLSACT
    from pyroute2.netlink.rtnl import TC_H_ROOT as TC_H_ROOT


def __getattr__(name: str) -> Any:
    """The missing names: those above."""
    if name not in ("IPRoute", "NetlinkError", "TC_H_CLSACT", "TC_H_ROOT"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pyroute2 import IPRoute
    from pyroute2.netlink.exceptions import NetlinkError
    from pyroute2.netlink.rtnl import TC_H_CLSACT, TC_H_ROOT

    globals().update(
        IPRoute=IPRoute, NetlinkError=NetlinkError, TC_H_CLSACT=TC_H_CLSACT, TC_H_ROOT=TC_H_ROOT
    )
    return globals()[name]
