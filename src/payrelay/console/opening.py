"""Makes the console from its settings."""

from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Final

from structlog.typing import FilteringBoundLogger

from payrelay.console.dispatch import Console
from payrelay.console.flows.cases.parts import case_parts
from payrelay.console.flows.opening import console_parts
from payrelay.console.routes import NAVIGATION
from payrelay.console.rules.sign_in.provider import ProviderRules
from payrelay.console.runtime.provider_calls import SignInProvider
from payrelay.console.web.asked import Site
from payrelay.console.web.cookies import Cookies
from payrelay.flows.relay import Relay
from payrelay.settings import ConsoleSettings, is_secure
from payrelay.store.opened_store import OpenedStore

BACK_PATH: Final = "/console/sign-in/provider/back"
"""Where the provider leads browsers back to; it is registered there."""


def console_of(
    stack: AsyncExitStack, settings: ConsoleSettings, store: OpenedStore, relay: Relay, log: FilteringBoundLogger
) -> Console:
    """Makes the console, whose calls end with the stack."""
    provider = _provider_of(settings, relay, log)
    if provider is not None:
        stack.push_async_callback(provider.close)
    parts = replace(
        console_parts(store, relay.clock),
        needs_second_factor=settings.second_factor == "required",
        second_person=settings.second_person,
        small_refunds=settings.second_factor_above,
        provider=provider,
        takes_passwords=not settings.provider_only,
    )
    cookies = Cookies(is_secure=is_secure(settings.public_url))
    cases = case_parts(store, relay)
    cases.budgets.begin()
    stack.push_async_callback(cases.budgets.end)
    site = Site(
        parts=parts, cases=cases, relay=relay, cookies=cookies, origin=settings.public_url, navigation=NAVIGATION
    )
    return Console(site, log)


def _provider_of(settings: ConsoleSettings, relay: Relay, log: FilteringBoundLogger) -> SignInProvider | None:
    """Makes what asks the sign-in provider; the settings were checked before (``problem_of_console``)."""
    issuer, client_id, client_secret = (
        settings.provider_issuer,
        settings.provider_client_id,
        settings.provider_client_secret,
    )
    if issuer is None or client_id is None or client_secret is None or settings.public_url is None:
        return None
    rules = ProviderRules(
        issuer=issuer,
        client_id=client_id,
        email_claim=settings.provider_email_claim,
        verified_claim=settings.provider_verified_claim,
        requires=settings.provider_requires,
        second_factors=settings.provider_second_factor,
    )
    return SignInProvider(rules, client_secret, settings.public_url + BACK_PATH, relay.clock, log)
