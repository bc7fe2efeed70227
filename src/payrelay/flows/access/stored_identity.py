"""Finds for which principal an identity provider's tokens act."""

from structlog.typing import FilteringBoundLogger

from payrelay.errors import RowForged
from payrelay.settings import IdentitySettings
from payrelay.store.access.principals import Principals


async def stored_identity(
    identity: IdentitySettings | None, principals: Principals, log: FilteringBoundLogger
) -> IdentitySettings | None:
    """Returns the settings of an identity provider with the stored name of its principal.

    Where the row that tells this name was forged, nobody knows for whom the provider's tokens act: they count as
    unknown, until a person has mended the row and started the service again. Raises StoreError.
    """
    if identity is None:
        return None
    try:
        principal = await principals.stored_name(identity.principal)
    except RowForged as error:
        log.error("identity_provider_refused", principal=identity.principal, reason=str(error))
        return None
    return identity.model_copy(update={"principal": principal})
