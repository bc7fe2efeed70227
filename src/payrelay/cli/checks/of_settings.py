"""Checks of the settings: what is missing for a start, and what is missing for a service that can be relied on."""

import platform
import shutil
from collections.abc import Iterator

from payrelay.cli.checks.of_python import of_python
from payrelay.cli.checks.public_address import PublicAddressState, try_public_address
from payrelay.errors import SettingsError
from payrelay.gateways.gateway import CheckResult
from payrelay.settings import Settings, is_secure, require_serving


async def of_settings(settings: Settings) -> list[CheckResult]:
    """Checks all that the settings say, and calls the public address; warns of what is not set, and what that means.

    The Python that reads them is checked with them.
    """
    python = of_python(platform.python_implementation(), platform.python_version())
    program = () if settings.alert_command is None else (_of_alert_command(settings.alert_command[0]),)
    public = await _of_public_url(settings.public_url)
    return [_of_serving(settings), python, _of_alerts(settings), *program, public, *_of_console(settings)]


def _of_serving(settings: Settings) -> CheckResult:
    try:
        require_serving(settings)
    except SettingsError as error:
        return CheckResult(subject="settings", is_right=False, text=str(error))
    accounts = ", ".join(f"{name} ({gateway.environment})" for name, gateway in settings.gateways.items())
    return CheckResult(subject="settings", is_right=True, text=f"serve can start; gateway accounts: {accounts}")


def _of_alerts(settings: Settings) -> CheckResult:
    names = ("PAYRELAY_ALERT_COMMAND", "PAYRELAY_ALERT_URL")
    values = (settings.alert_command, settings.alert_url)
    set_names = [name for name, value in zip(names, values, strict=True) if value is not None]
    if set_names:
        return CheckResult(subject="alerts", is_right=True, text=f"operators are told by {' and '.join(set_names)}")
    text = f"neither {names[0]} nor {names[1]} is set: what needs an operator is only written to the log"
    return CheckResult(subject="alerts", is_right=True, is_warning=True, text=text)


def _of_console(settings: Settings) -> Iterator[CheckResult]:
    """Warns where operators come through a proxy that isn't trusted. Payrelay speaks no https, so there is a proxy."""
    if settings.console.enabled and is_secure(settings.console.public_url) and not settings.trusted_proxies:
        text = (
            f"{settings.console.public_url} is behind a proxy, and PAYRELAY_TRUSTED_PROXIES names none: all operators"
            " count as one address, so whoever guesses passwords keeps them all out, and their sessions show the"
            " proxy's address"
        )
        yield CheckResult(subject="console", is_right=True, is_warning=True, text=text)


def _of_alert_command(program: str) -> CheckResult:
    """Checks that the program exists, without running it. Its arguments are not shown: they may hold a secret."""
    is_there = shutil.which(program) is not None
    text = f"{program} {'can be run' if is_there else 'is not a program that can be run'}"
    return CheckResult(subject="alert command", is_right=is_there, text=text)


async def _of_public_url(public_url: str | None) -> CheckResult:
    if public_url is None:
        text = (
            "PAYRELAY_PUBLIC_URL is not set: the gateway is told no address for its notifications, and no checkout can"
            " be opened"
        )
        return CheckResult(subject="public address", is_right=True, is_warning=True, text=text)
    state = await try_public_address(public_url)
    text = {
        PublicAddressState.PRIVATE: "is an address of this machine or of a private network: the gateway can't reach it",
        PublicAddressState.SILENT: "does not answer, seen from this machine: does serve run, and does it lead there?",
        PublicAddressState.OTHER: "answers, but not as Payrelay does: does it lead to this service?",
        PublicAddressState.ANSWERS: "answers, seen from this machine; only a notification shows that the gateway"
        " reaches it",
    }[state]
    is_warning = state is not PublicAddressState.ANSWERS
    return CheckResult(subject="public address", is_right=True, is_warning=is_warning, text=f"{public_url} {text}")
