"""Looks whether a database still is the one that counts, without what copies one: every start asks."""

from payrelay.errors import StoreUnusable
from payrelay.store.database.identity import IdentityStore


async def require_in_place(identities: IdentityStore) -> None:
    """Raises StoreUnusable where the database doesn't count, or doesn't count yet.

    Where another one took its place, two services would share its orders. A copy that was restored lacks what was
    charged since, until a recovery reckons with that.
    """
    identity = await identities.read()
    if identity.current.is_moved:
        raise StoreUnusable(
            "this database is a copy that was restored, or was moved here, and its recovery has not begun: run"
            " payrelay recover, and start again"
        )
    if identity.copied_to:
        raise StoreUnusable(
            f"this database was copied to {identity.copied_to}, which took its place: set PAYRELAY_DATABASE_URL to"
            " that one. Where that copy was stopped, make it again. payrelay recover takes this one back, as one that"
            " lost everything since"
        )
