"""What tells whether the database is the one that it was."""

from dataclasses import dataclass

from payrelay.runtime.database.lost_commits import LostCommits
from payrelay.runtime.database.marks import Marks
from payrelay.runtime.database.revocation_list import RevocationList
from payrelay.store.database.identity import IdentityStore


@dataclass(frozen=True, kw_only=True, slots=True)
class DatabaseParts:
    """What tells whether the database is the one that it was, and whether it lacks commits.

    Attributes:
        identities: the identity of the database.
        lost_commits: knows whether the database may lack commits, and whether a recovery is under way.
        marks: this process's high-water mark, and those of others.
        revocations: lists outside the database what was taken back.
    """

    identities: IdentityStore
    lost_commits: LostCommits
    marks: Marks
    revocations: RevocationList
