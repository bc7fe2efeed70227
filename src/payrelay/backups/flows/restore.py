"""Puts a backup back in the place of the database, and begins the recovery in the same step.

Until everything is checked, nothing is changed that a server would use. Then the restored database takes the place at
once, with its recovery begun: there is no moment in which a server would find it without.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from payrelay.backups.flows.begin_in_draft import LookAtMarks, begin_in_draft, no_marks
from payrelay.backups.flows.check_copy import CopyChecked, check_copy
from payrelay.backups.flows.noted_anchors import NotedAnchor, noted_in
from payrelay.backups.store.copied import Moved
from payrelay.backups.store.drafts import Draft, draft_at
from payrelay.backups.store.manifest import Backup, read_backup
from payrelay.clock import Clock
from payrelay.core.moments import rfc3339
from payrelay.errors import PayrelayError, StoreUnusable
from payrelay.flows.audit.audit import Progress
from payrelay.store.engine.sealing import Seal


class RestorePlace(NamedTuple):
    """Where a backup is restored to.

    Attributes:
        url: the setting PAYRELAY_DATABASE_URL.
        seal: gives the seal of the configured encryption key, which must open the backup. Raises PayrelayError.
        anchor_path: the setting PAYRELAY_ANCHOR_PATH.
        look_at_marks: compares the high-water marks with the backup.
    """

    url: str
    seal: Callable[[], Seal]
    anchor_path: Path | None
    look_at_marks: LookAtMarks = no_marks


class RestoreOrder(NamedTuple):
    """What an operator wants.

    Attributes:
        folder: the backup.
        replaces: the name of the database that the backup takes the place of; None where there should be none.
        accepts_findings: whether a backup in which the audit finds something is restored too.
        operator: who restores.
        note: why, in that operator's words.
    """

    folder: Path
    replaces: str | None
    accepts_findings: bool
    operator: str
    note: str


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What was restored.

    Attributes:
        database: its name.
        made_at: when the backup began. RFC 3339, UTC, as all times here.
        newest_entry_at: when the newest journal entry in it was written; None where it has none.
        incarnation: the number of the incarnation that began.
        lost_since, lost_until: the time whose commits may be lost.
        replaced: where the database of before is kept; None where there was none.
        needs_upgrade: whether its schema or its data are those of an earlier version. No audit was made then.
        operations: how many operations the audit compared.
        findings: what it found, in words.
        missing: the commits that high-water marks name and the backup lacks, in words, the oldest first.
        newest_noted_anchor: the newest anchor that was noted outside; None where none was.
        lost_anchors: how many of these came after the backup.
        anchors_moved_to: the new name of the file of anchors, where some came after the backup.
    """

    database: str
    made_at: str
    newest_entry_at: str | None
    incarnation: int
    lost_since: str
    lost_until: str
    replaced: str | None
    needs_upgrade: bool
    operations: int
    findings: list[str]
    missing: tuple[str, ...]
    newest_noted_anchor: str | None
    lost_anchors: int
    anchors_moved_to: str | None


class FoundWrong(StoreUnusable):
    """The audit found something in a backup; ``findings`` says what."""

    def __init__(self, findings: list[str]) -> None:
        super().__init__(f"the audit has {len(findings)} findings in the backup; nothing was restored")
        self.findings = findings


async def restore(place: RestorePlace, order: RestoreOrder, clock: Clock, moved: Moved, progress: Progress) -> Restored:
    """Restores a backup and begins the recovery, at once or not at all. May be interrupted, and repeated.

    ``moved`` is told of the copying, ``progress`` of the audit.

    Raises StoreUnusable where the backup is not whole, is of a later version, or was sealed with another key; where a
    process runs on the database, or there is a database that ``order`` doesn't name. Raises FoundWrong, StoreError,
    OSError.
    """
    backup = read_backup(order.folder)
    seal = _required_seal(place, backup)
    async with draft_at(place.url, backup) as draft:
        _require_named(draft, order.replaces)
        await draft.load(backup, moved)
        noted = noted_in(place.anchor_path)
        incarnation, marks = await begin_in_draft(
            draft, backup, seal, clock, place.look_at_marks, operator=order.operator, note=order.note
        )
        checked = await check_copy(draft.url, seal, clock, noted, progress)
        if checked.findings and not order.accepts_findings:
            raise FoundWrong(checked.findings)
        replaced = await draft.take_place(_digits(clock))
    lost = incarnation.lost
    if lost is None:
        raise StoreUnusable("a recovery has a lost window")
    return Restored(
        database=draft.name,
        made_at=backup.manifest.made_at,
        newest_entry_at=backup.manifest.newest_entry_at,
        incarnation=incarnation.number,
        lost_since=rfc3339(lost.since_ms),
        lost_until=rfc3339(lost.until_ms),
        replaced=replaced,
        needs_upgrade=checked.needs_upgrade,
        operations=checked.operations,
        findings=checked.findings,
        missing=tuple(each.name for each in marks.missing),
        newest_noted_anchor=_text(noted[-1]) if noted else None,
        lost_anchors=checked.lost_anchors,
        anchors_moved_to=_set_anchors_aside(place.anchor_path, checked, clock),
    )


def _required_seal(place: RestorePlace, backup: Backup) -> Seal:
    needed = backup.manifest.key_id
    try:
        seal = place.seal()
    except PayrelayError as error:
        raise StoreUnusable(f"{error}. The backup opens only with the encryption key {needed}") from error
    if needed not in {key_id.hex() for key_id in seal.key_ids}:
        raise StoreUnusable(
            f"the backup opens only with the encryption key {needed}, and the configured one is {seal.key_id.hex()};"
            " nothing was touched"
        )
    return seal


def _require_named(draft: Draft, name: str | None) -> None:
    if draft.is_taken and name is None:
        raise StoreUnusable(
            f"there is a database already: to put the backup in its place, and keep it beside, add --replace"
            f" {draft.name}"
        )
    if name is not None and (name != draft.name or not draft.is_taken):
        there = f"that is called {draft.name}" if draft.is_taken else "there is none"
        raise StoreUnusable(f"--replace names {name}, and the configured database is another: {there}")


def _set_anchors_aside(path: Path | None, checked: CopyChecked, clock: Clock) -> str | None:
    """Renames the file of anchors that the restored database can't have: otherwise the service would make none."""
    if path is None or not checked.lost_anchors:
        return None
    aside = path.with_name(f"{path.name}.before-{_digits(clock)}")
    try:
        path.rename(aside)
    except OSError:
        return None
    return str(aside)


def _text(anchor: NotedAnchor) -> str:
    return f"{anchor.at} {anchor.number}:{anchor.digest}".strip()


def _digits(clock: Clock) -> str:
    return "".join(character for character in rfc3339(clock.now_ms(), "seconds") if character.isdigit())
