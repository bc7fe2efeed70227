"""Stores again what this process remembers of the commits that were lost, where it has outlived their database.

That is done once a recovery has begun, so that its lost window accounts for whatever is missing all the same. Until it
is done in every process, nothing takes effect (``LostCommits.is_returning``): so no request is sent, held or adopted
whose first try is about to come back.
"""

from payrelay.errors import StoreError
from payrelay.flows.relay import Relay


async def begin_bringing_back(relay: Relay) -> None:
    """Begins to store again what this process remembers, in the background, while a recovery has just begun.

    Raises StoreError.
    """
    await relay.database.lost_commits.identity()
    remembered = relay.journal.remembered
    if relay.database.lost_commits.is_returning and not remembered.is_under_way:
        remembered.is_under_way = True
        relay.background.start(_bring_back_apart(relay))


async def bring_back(relay: Relay) -> None:
    """Stores again the answered operations that this process remembers and the database lacks. Raises StoreError.

    May be repeated: another process may have the versions before.
    """
    back = await relay.journal.bring_back()
    for operation in back:
        relay.hooks.operation_changed(operation)
    if back:
        relay.log.warning("operations_brought_back", count=len(back))


async def _bring_back_apart(relay: Relay) -> None:
    try:
        await bring_back(relay)
    except StoreError as error:  # the next round tries again
        relay.log.warning("job_failed", job="bring_back", reason=str(error))
        relay.hooks.job_failed("bring_back")
    finally:
        relay.journal.remembered.is_under_way = False
