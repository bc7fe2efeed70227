"""Places in a gateway's budget, as those who keep them and those who give them out speak of them."""

import msgspec


class Grant(msgspec.Struct, frozen=True):
    """One place that was taken: the slot, and a random name of this taking, so that nobody ends another one's."""

    slot: int
    holding: str


class Taken(msgspec.Struct, frozen=True):
    """What a look for places came to.

    Attributes:
        grants: as many as there were, and no more than were asked for.
        next_in_s: when there may be another one; None where all came that were asked for.
    """

    grants: tuple[Grant, ...]
    next_in_s: float | None = None
