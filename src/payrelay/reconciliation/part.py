"""What the reconciliation brings."""

from typing import TYPE_CHECKING, Final

from payrelay.parts import Part

if TYPE_CHECKING:
    from payrelay.api.metrics.gauges import StoreGauges
    from payrelay.flows.operators.acts.act_registry import ActRegistry
    from payrelay.flows.relay import Relay
    from payrelay.reconciliation.rules.verdicts import OpenDifferences
    from payrelay.reconciliation.store.stores import ReconciliationStores
    from payrelay.settings import Settings
    from payrelay.store.opened_store import OpenedStore


def _opened(store: "OpenedStore", settings: "Settings") -> "ReconciliationStores":
    from payrelay.reconciliation.store.stores import reconciliation_stores

    return reconciliation_stores(store.database, store.rows, store.chain.secret, settings.reconciliation.timezone)


def _acts() -> "ActRegistry":
    from payrelay.reconciliation.acts.of_books import ACTS_OF_BOOKS

    return ACTS_OF_BOOKS


def _gauges(relay: "Relay") -> "StoreGauges[OpenDifferences]":
    from payrelay.reconciliation.gauges import BooksGauges
    from payrelay.reconciliation.store.stores import ReconciliationStores

    return BooksGauges(relay.clock, relay.find(ReconciliationStores).differences.count_open)


PART: Final = Part(
    commands={"reconcile": "payrelay.reconciliation.commands.reconcile"},
    opened=_opened,
    acts=_acts,
    gauges=_gauges,
    pages="payrelay.reconciliation.pages",
)
