"""Looks whether a database still is the one that counts, without what copies one: every start asks."""

from payrelay.errors import StoreUnusable
from payrelay.store.database.identity import IdentityStore


async def require_in_place(identities: IdentityStore) -> None:
    """Raises StoreUnusable where another database took the place of this one: two services would share its orders."""
    copied_to = (await identities.read()).copied_to
    if copied_to:
        raise StoreUnusable(
            f"this database was copied to {copied_to}, which took its place: set PAYRELAY_DATABASE_URL to that one."
            " Where that copy was stopped, make it again. payrelay recover takes this one back, as one that lost"
            " everything since"
        )
