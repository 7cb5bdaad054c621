# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The shape of a switch port: a link's models as far as the port alone can do them, in the words of
`lab up` and `lab set`."""

from dataclasses import dataclass

from beowire.topology.topology import Link, Model


@dataclass(frozen=True)
class Shape:
    """What the switch does to the frames of one node's port; nothing by default.

    Losses, corruption and drops hit what the node sends, the rate limits what it receives.
    """

    loss: float = 0.0
    """Share of frames lost at random, 0 to 1."""
    corrupt: float = 0.0
    """Share of frames in which one random bit behind the Ethernet header is flipped, 0 to 1."""
    rate_bits: int = 0
    """Bits per second towards the node; 0: unlimited."""
    queue_bytes: int = 0
    """Room of the drop-tail queue before that rate; 0: the default for the rate."""
    longest_bytes: int = 0
    """Frames with more payload than this are dropped, as by a switch without jumbo frames;
    0: none."""
    drop_raw: bool = False
    """Drop what is neither IP nor ARP, as some clouds do."""

    def models(self) -> tuple[Model, Model]:
        """What befalls the frames that the node sends, and those it receives."""
        out = Model(
            loss=self.loss,
            corrupt=self.corrupt,
            mtu_bytes=self.longest_bytes,
            drop_raw=self.drop_raw,
        )
        return out, Model(rate_bits=self.rate_bits, queue_bytes=self.queue_bytes)


def of_link(link: Link, node: str) -> Shape:
    """What the port of this link of the node does."""
    leaving = link.leaving(node)
    out, back = link.model(leaving), link.model("ba" if leaving == "ab" else "ab")
    return Shape(
        loss=out.loss,
        corrupt=out.corrupt,
        rate_bits=back.rate_bits,
        queue_bytes=back.queue_bytes,
        longest_bytes=out.mtu_bytes,
        drop_raw=out.drop_raw,
    )
