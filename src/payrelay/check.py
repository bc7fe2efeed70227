"""Says in plain words what is right and what is wrong: settings, database, encryption key, gateways."""

from collections.abc import AsyncIterator, Callable

from payrelay.app import opened_accounts, opened_database, seal_of
from payrelay.clock import Clock
from payrelay.errors import SettingsError, StoreError
from payrelay.gateways.payhere.checks import Finding
from payrelay.settings import Settings, require_serving
from payrelay.store.meta import schema_version


async def findings(read: Callable[[], Settings], clock: Clock) -> AsyncIterator[Finding]:
    """Looks at one thing after the other, and goes on where it can; changes nothing at the gateway.

    ``read`` gives the settings. A database that isn't there yet is made, as by every command.
    """
    try:
        settings = read()
    except SettingsError as error:
        yield Finding(subject="settings", is_right=False, text=str(error))
        return
    yield _of_settings(settings)
    async for finding in _of_database(settings, clock):
        yield finding
    async with opened_accounts(settings, clock) as accounts:
        for name, account in accounts.items():
            for found in await account.check():
                yield Finding(subject=f"{name}: {found.subject}", is_right=found.is_right, text=found.text)


def _of_settings(settings: Settings) -> Finding:
    try:
        require_serving(settings)
    except SettingsError as error:
        return Finding(subject="settings", is_right=False, text=str(error))
    accounts = ", ".join(f"{name} ({gateway.environment})" for name, gateway in settings.gateways.items())
    return Finding(subject="settings", is_right=True, text=f"complete; gateway accounts: {accounts}")


async def _of_database(settings: Settings, clock: Clock) -> AsyncIterator[Finding]:
    try:
        async with opened_database(settings, clock, is_owner=False) as database:
            version = await schema_version(database)
            await database.ping()
            text = f"{settings.shown_database} can be used; its schema has version {version}"
            yield Finding(subject="database", is_right=True, text=text)
            try:
                await seal_of(settings, database)
            except (SettingsError, StoreError) as error:
                yield Finding(subject="encryption key", is_right=False, text=str(error))
            else:
                yield Finding(subject="encryption key", is_right=True, text="it opens what this database holds")
    except (SettingsError, StoreError) as error:
        yield Finding(subject="database", is_right=False, text=str(error))
