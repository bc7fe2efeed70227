"""A relay as production puts it together, over a database of a test's own; what a test wants otherwise it replaces."""

from collections.abc import Callable, Mapping
from typing import Final

from structlog.typing import FilteringBoundLogger
from tests.digests import digests_of

from payrelay.app import found_of
from payrelay.clock import Clock
from payrelay.core.database.incarnations import Beginning, DatabaseIdentity, Incarnation
from payrelay.core.events.destinations import AllowedDestinations
from payrelay.core.payments.audit_chain import ChainKey
from payrelay.core.payments.operation import Retention
from payrelay.flows.relay import Relay, RelaySettings
from payrelay.flows.stores import access_stores, money_stores
from payrelay.flows.subscription_notes import ReadingNotes
from payrelay.gateways.gateway import Gateway
from payrelay.runtime.alert_channels import AlertChannels
from payrelay.runtime.background import Background
from payrelay.runtime.database.lost_commits import LostCommits
from payrelay.runtime.database.mark_files import MarkFiles
from payrelay.runtime.database.marks import Marks
from payrelay.runtime.database.parts import DatabaseParts
from payrelay.runtime.database.revocation_list import RevocationList
from payrelay.runtime.event_delivery import Dispatch
from payrelay.runtime.followers import Followers
from payrelay.runtime.ids import new_id
from payrelay.runtime.paused_accounts import PausedAccounts
from payrelay.runtime.read_cache import ReadCache
from payrelay.runtime.webhook_sender import WebhookSender
from payrelay.settings import Settings
from payrelay.store.alerts import Alerts, AlertSubject
from payrelay.store.checkouts import Checkouts
from payrelay.store.customers import Customers
from payrelay.store.database.identity import IdentityStore
from payrelay.store.database.marked_rows import MarkedRows
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.events.deliveries import Deliveries
from payrelay.store.events.endpoints import Endpoints
from payrelay.store.events.feed import Feed
from payrelay.store.gateways.pauses import Pauses
from payrelay.store.gateways.readings import ReadingStore
from payrelay.store.inbox import Inbox
from payrelay.store.meta import ChainStart
from payrelay.store.opened_store import OpenedStore
from payrelay.store.operators.acts import OperatorActs
from payrelay.store.payments.audit import Trail
from payrelay.store.payments.journal import Journal
from payrelay.store.payments.resolution import ResolutionStore
from payrelay.store.retention.clearing import Clearing
from payrelay.store.signed_texts import SignedTexts
from payrelay.store.subscriptions import Subscriptions

SEAL: Final = Seal((b"k" * 32,))
CHAIN_KEY: Final = b"c" * 32
FOLLOWERS_MAX: Final = 100


def relay_over(
    database: Database,
    accounts: Mapping[str, Gateway],
    *,
    clock: Clock,
    log: FilteringBoundLogger,
    retention: Retention,
    ids: Callable[[str, int], str] = new_id,
) -> Relay:
    """Gives a relay with every room that production sets; nothing is read or begun by making it, and nobody called."""
    background, rows = Background(), digests_of(database, clock=clock)
    store = OpenedStore(database, SEAL, ChainStart(CHAIN_KEY, 0), rows)
    lost_commits = LostCommits(_first_identity, clock, log)
    trail = Trail(database, SEAL, ChainKey(CHAIN_KEY))
    marks = Marks(MarkFiles(None, CHAIN_KEY), MarkedRows(database, trail), lost_commits, clock, log)
    feed, subscriptions = Feed(database, rows), Subscriptions(database, ids, rows)
    return Relay(
        journal=Journal(database, SEAL, rows, chain_key=CHAIN_KEY, acknowledged=marks.note_operation),
        resolution=ResolutionStore(database, rows),
        acts=OperatorActs(database, CHAIN_KEY),
        found=found_of(store, Settings()),
        accounts=accounts,
        clock=clock,
        log=log,
        new_id=ids,
        background=background,
        paused=PausedAccounts(Pauses(database), clock, log),
        alerting=AlertChannels(alerts=tuple(Alerts(database, about) for about in AlertSubject), channels={}),
        read_cache=ReadCache(
            ReadingStore(database, SEAL, rows),
            clock,
            log,
            start=background.start,
            note=ReadingNotes(subscriptions, accounts),
        ),
        inbox=Inbox(database, SEAL, rows),
        subscriptions=subscriptions,
        customers=Customers(database, SEAL, rows, chain_key=CHAIN_KEY),
        checkouts=Checkouts(database, SEAL, rows, acknowledged=marks.note_checkout),
        signed_texts=SignedTexts(database, rows, secret=CHAIN_KEY),
        pauses=Pauses(database),
        clearing=Clearing(database, SEAL, rows, Trail(database, SEAL, ChainKey(CHAIN_KEY))),
        dispatch=Dispatch(
            feed=feed,
            endpoints=Endpoints(database, SEAL, rows),
            deliveries=Deliveries(database),
            sender=WebhookSender(AllowedDestinations(), clock),
            followers=Followers(feed, limit=FOLLOWERS_MAX),
            clock=clock,
            log=log,
        ),
        access=access_stores(store, clock),
        money=money_stores(store),
        settings=RelaySettings(retention=retention),
        database=DatabaseParts(
            lost_commits=lost_commits,
            marks=marks,
            revocations=RevocationList(None, CHAIN_KEY),
            identities=IdentityStore(database, SEAL),
        ),
    )


async def _first_identity() -> DatabaseIdentity:
    """Reads the identity of a database that nothing was lost of: databases of these tests are not begun as stores."""
    return DatabaseIdentity(id="0" * 32, incarnations=(Incarnation(number=1, reason=Beginning.CREATED, began_at_ms=0),))
