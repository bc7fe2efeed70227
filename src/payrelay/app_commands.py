"""Puts together what the commands work with that act on the database beside a running service."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from payrelay.app import clearing_of, configured_seal, opened_database, opened_resources, trail_of
from payrelay.clock import Clock
from payrelay.core.database.schema_changes import AS_IT_IS, MAKE
from payrelay.errors import SettingsError, StoreUnusable
from payrelay.flows.audit.audit import Audit, Progress
from payrelay.flows.audit.audit_of_acts import check_of_acts
from payrelay.flows.operators.parts import OperatorParts, operator_parts
from payrelay.runtime.database.revocation_list import RevocationList
from payrelay.settings import Settings
from payrelay.store.access.credentials import Credentials
from payrelay.store.access.principals import Principals
from payrelay.store.access.signing_keys import SigningKeys
from payrelay.store.database.identity import IdentityStore
from payrelay.store.engine.shrinking import shrink_file
from payrelay.store.gateways.pauses import Pauses
from payrelay.store.meta import chain_key
from payrelay.store.payments.audit import Trail
from payrelay.store.retention.clearing import Clearing
from payrelay.store.tables.seals import Seals


class KeyStores(NamedTuple):
    """What the commands about keys work with."""

    credentials: Credentials
    principals: Principals
    revocations: RevocationList


@asynccontextmanager
async def opened_key_stores(settings: Settings, clock: Clock, *, may_make: bool = False) -> AsyncIterator[KeyStores]:
    """Opens the database beside a running server, for the commands about keys; ``may_make`` a missing one."""
    async with opened_resources(settings, clock, changes=MAKE if may_make else AS_IT_IS) as shared:
        yield KeyStores(
            Credentials(shared.database, shared.rows),
            Principals(shared.database, shared.rows),
            RevocationList(settings.marks_folder, shared.chain.secret),
        )


class PauseStores(NamedTuple):
    """What the commands that pause work with; without the encryption key no list of revocations."""

    pauses: Pauses
    revocations: RevocationList | None


@asynccontextmanager
async def opened_pauses(settings: Settings, clock: Clock) -> AsyncIterator[PauseStores]:
    """Opens the database beside a running server, for the commands that pause; they need no encryption key."""
    async with opened_database(settings, clock) as database:
        try:
            secret = (await chain_key(database, configured_seal(settings))).secret
        except (SettingsError, StoreUnusable):
            yield PauseStores(Pauses(database), None)
        else:
            yield PauseStores(Pauses(database), RevocationList(settings.marks_folder, secret))


class ClearingStores(NamedTuple):
    """What the commands about retention work with."""

    clearing: Clearing
    identities: IdentityStore


@asynccontextmanager
async def opened_clearing(settings: Settings, clock: Clock) -> AsyncIterator[ClearingStores]:
    """Opens the database beside a running server, for the commands about retention."""
    async with opened_resources(settings, clock, is_patient=True) as shared:
        yield ClearingStores(clearing_of(settings, shared), IdentityStore(shared.database, shared.seal))


def shrunk(path: Path) -> tuple[int, int]:
    """Writes the file of an embedded database anew; returns its bytes before and after. Raises StoreUnusable."""
    return shrink_file(path)


@asynccontextmanager
async def opened_seals(settings: Settings, clock: Clock) -> AsyncIterator[Seals]:
    """Opens the database beside a running server, for the commands about sealed values."""
    async with opened_resources(settings, clock, is_patient=True) as shared:
        yield Seals(shared.database, shared.seal)


@asynccontextmanager
async def opened_signing_keys(settings: Settings, clock: Clock) -> AsyncIterator[SigningKeys]:
    """Opens the keys of client tokens beside a running server, for the command that rotates them."""
    async with opened_resources(settings, clock) as shared:
        yield SigningKeys(shared.database, shared.seal, clock)


@asynccontextmanager
async def opened_operators(settings: Settings, clock: Clock, *, may_make: bool = False) -> AsyncIterator[OperatorParts]:
    """Opens the database beside a running server, for the commands about operators; ``may_make`` a missing one."""
    async with opened_resources(settings, clock, changes=MAKE if may_make else AS_IT_IS) as shared:
        yield operator_parts(shared, clock)


@asynccontextmanager
async def opened_trail(settings: Settings, clock: Clock) -> AsyncIterator[Trail]:
    """Opens the audit trail beside a running server, for the command that prints the newest anchor."""
    async with opened_resources(settings, clock) as shared:
        yield trail_of(shared)


@asynccontextmanager
async def opened_audit(
    settings: Settings, clock: Clock, progress: Progress, noted: Mapping[int, str]
) -> AsyncIterator[Audit]:
    """Opens the audit beside a running server; ``noted`` are digests of anchors by their numbers."""
    async with opened_resources(settings, clock, is_patient=True) as shared:
        audit = Audit(
            trail_of(shared),
            shared.chain.since_ms,
            progress,
            rows=shared.rows,
            noted=noted,
            now_ms=clock.now_ms(),
            incarnations=(await IdentityStore(shared.database, shared.seal).read()).incarnations,
        )
        audit.also(check_of_acts(shared.database, shared.chain.secret))
        yield audit
