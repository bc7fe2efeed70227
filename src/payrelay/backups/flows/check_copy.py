"""Looks into a copy of a database before anything is served from it: the audit, and the anchors noted outside."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from payrelay.backups.flows.noted_anchors import NotedAnchor
from payrelay.clock import Clock
from payrelay.errors import DatabaseNotReady
from payrelay.flows.audit.audit import Audit, AuditFinding, Progress
from payrelay.flows.audit.audit_of_acts import check_of_acts
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.meta import chain_key, verify_key
from payrelay.store.opening import open_to_read_all
from payrelay.store.payments.audit import Trail
from payrelay.store.upgrades.run import UpgradeContext, require_upgraded

FINDINGS_MAX: Final = 100
"""What an operator reads; more of them say nothing more."""


class CopyChecked(NamedTuple):
    """What was found in a copy.

    Attributes:
        needs_upgrade: whether it is of an earlier version, and can't be checked before its upgrade.
        operations: how many the audit compared.
        findings: what the audit found, in words; FINDINGS_MAX at most.
        lost_anchors: how many of the noted anchors came after it.
    """

    needs_upgrade: bool
    operations: int
    findings: list[str]
    lost_anchors: int


async def check_copy(
    url: str, seal: Seal, clock: Clock, noted: Sequence[NotedAnchor], progress: Progress
) -> CopyChecked:
    """Checks every operation, journal entry, answer, anchor and row with a digest of the database at ``url``.

    Raises StoreUnusable where a later version of Payrelay made it, and StoreError.
    """
    try:
        database = await open_to_read_all(url, clock)
    except DatabaseNotReady:
        return CopyChecked(needs_upgrade=True, operations=0, findings=[], lost_anchors=0)
    try:
        return await check_database(database, seal, clock, noted, progress)
    except DatabaseNotReady:
        return CopyChecked(needs_upgrade=True, operations=0, findings=[], lost_anchors=0)
    finally:
        await database.close()


async def check_database(
    database: Database, seal: Seal, clock: Clock, noted: Sequence[NotedAnchor], progress: Progress
) -> CopyChecked:
    """Checks an open database as ``check_copy`` does. Raises DatabaseNotReady where it needs an upgrade first."""
    await verify_key(database, seal)
    chain = await chain_key(database, seal)
    await require_upgraded(UpgradeContext(database, seal, chain.secret))
    trail = Trail.under(database, seal, chain.secret)
    newest = await trail.last_anchor()
    last = 0 if newest is None else newest.number
    audit = Audit(
        trail,
        chain.since_ms,
        progress,
        rows=RowDigests(database, chain.secret, clock),
        noted={each.number: each.digest for each in noted if each.number <= last},
    )
    audit.also(check_of_acts(database, chain.secret))
    findings: list[str] = []
    async for finding in audit.findings():
        if len(findings) < FINDINGS_MAX:
            findings.append(_in_words(finding))
    return CopyChecked(
        needs_upgrade=False,
        operations=audit.summary.operations,
        findings=findings,
        lost_anchors=sum(each.number > last for each in noted),
    )


def _in_words(finding: AuditFinding) -> str:
    subject = finding.row or finding.operation_id
    subject = subject if finding.anchor is None else f"anchor {finding.anchor}"
    entry = "" if finding.version is None else f" entry {finding.version}"
    return f"{subject}{entry}: {finding.text}"
