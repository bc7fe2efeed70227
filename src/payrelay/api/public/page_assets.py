"""The files that the customers' pages load, all from this server: style sheets, the script, and the merchant's logo."""

from importlib.resources import files
from typing import Final

from payrelay.api.http.outgoing import PlainAnswer, plain_answer
from payrelay.api.public.site import ASSET_CACHED_S
from payrelay.core.checkouts.shop import Rgb, Shop, shades
from payrelay.errors import Code, Refusal

ASSETS: Final = {"page.css": "text/css", "continue.js": "text/javascript"}
"""The files that the pages of every account load."""
SHOP_STYLE: Final = "shop.css"
"""Overrides the colours of ``page.css``, where the merchant has a colour."""
LOGO: Final = "logo"


def asset(name: str, shop: Shop) -> PlainAnswer:
    """Gives a file that a page loads; raises Refusal (not_found)."""
    cache_control = f"public, max-age={ASSET_CACHED_S}"
    if name in ASSETS:
        body = files("payrelay.api.public").joinpath("hosted", name).read_bytes()
        return plain_answer(body, f"{ASSETS[name]}; charset=utf-8", cache_control)
    if name == SHOP_STYLE and shop.colour is not None:
        return plain_answer(_shop_style(shop.colour).encode(), "text/css; charset=utf-8", cache_control)
    if name == LOGO and shop.logo is not None:
        return plain_answer(shop.logo.body, shop.logo.media_type, cache_control)
    raise Refusal(Code.NOT_FOUND, "there is nothing at this address")


def _shop_style(colour: Rgb) -> str:
    by_day, in_the_dark = (
        f":root {{ --act: {tones.button}; --on-act: {tones.text}; --edge: {tones.edge}; }}"
        for tones in (shades(colour, is_dark=False), shades(colour, is_dark=True))
    )
    return f"{by_day}\n@media (prefers-color-scheme: dark) {{ {in_the_dark} }}\n"
