"""Signing in by the company's account: the way to the provider, and the way back."""

from payrelay.api.console_exchange import ConsoleAnswer
from payrelay.console.flows.provider_sign_in import BroughtBack, lead_to_provider, take_from_provider
from payrelay.console.flows.sign_in import Failure
from payrelay.console.pages.sign_in.password import form_after, led_on, sign_in_for
from payrelay.console.web.asked import SIGN_IN, Asked, next_of_text
from payrelay.console.web.cookies import CookieName, is_form_token
from payrelay.console.web.rendering import redirect


async def lead_away(asked: Asked) -> ConsoleAnswer:
    """Leads the browser to the provider, or on where somebody is signed in.

    Only by a link of a page of the console, whose address has what its forms carry: any other page can have a browser
    ask for this, and would use up the tries of its office. It is no form, because where that may lead the policy of
    the page would have to say.
    """
    if asked.is_open:
        return redirect(asked.next)
    if not is_form_token(asked.cookie, asked.form.get("token", "")):
        return redirect(sign_in_for(asked))
    found = await lead_to_provider(asked.parts, asked.next, asked.sent.provider, asked.browser)
    if isinstance(found, Failure):
        return form_after(asked, found)
    return asked.with_cookie(redirect(found.address), CookieName.PROVIDER, found.cookie.reveal())


async def take_back(asked: Asked) -> ConsoleAnswer:
    """Signs in by what the provider has sent; the browser goes on at once, so that no address bar keeps a code."""
    told = asked.form
    brought = BroughtBack(told.get("state", ""), told.get("code", ""), told.get("iss", ""))
    found = await take_from_provider(asked.parts, brought, asked.sent.provider, asked.browser)
    if isinstance(found, Failure):
        return redirect(f"{SIGN_IN}?why={found}")
    return led_on(asked, found.signed_in, next_of_text(found.way))
