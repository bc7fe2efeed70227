"""Faults of the program that are known and not mended yet, each as narrow as it shows itself after a loss of commits.

TODO: remove each with its fault.
"""

from tests.simulation.clients import Told
from tests.simulation.losses import STRAYS_S, Loss
from tests.simulation.network import Gateway

from payrelay_simulator.clock import STANDING_START


def is_ownerless(told: Told, loss: Loss | None, things: frozenset[str]) -> bool:
    """TODO: a principal gets at what another one made in the lost window, because its owner is in no book."""
    if loss is None or told.at_s < loss.lost_s:
        return False
    words = f"{told.ask.path} {told.ask.body.decode()}"
    return told.ask.path.startswith("operations/") or any(each in words for each in things)


def ownerless_things(loss: Loss | None, gateway: Gateway) -> frozenset[str]:
    """Gives what was made in the lost window, and the subscriptions of orders that are in no book, by their names."""
    if loss is None:
        return frozenset()
    skew_s, names = gateway.fate.skew_s, set[object](loss.order_ids)
    for entry in gateway.world.ledger.entries():
        at_s = (entry.at - STANDING_START).total_seconds() - skew_s
        if loss.copied_s <= at_s < loss.lost_s + STRAYS_S:
            names |= {entry.order_id, entry.payment_id, entry.subscription_id, entry.authorization_token}
        elif entry.order_id in loss.order_ids:
            names.add(entry.subscription_id)
    return frozenset(str(name) for name in names if name)
