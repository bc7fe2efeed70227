import pytest

from payrelay.api.public.page_assets import ASSETS, asset
from payrelay.core.checkouts.shop import UNNAMED_SHOP, Shop, logo_of
from payrelay.errors import Refusal

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("name", ASSETS)
def test_what_the_pages_load_is_there(name: str) -> None:
    """The files come from this server, and browsers may cache them."""
    headers = dict(asset(name, UNNAMED_SHOP).raw_headers)

    assert headers[b"content-type"].startswith(ASSETS[name].encode())
    assert b"max-age" in headers[b"cache-control"]


@pytest.mark.parametrize("name", ["page.html", "languages/si.po", "../app.py", "", "logo", "shop.css"])
def test_nothing_else_of_the_folder_is_served(name: str) -> None:
    """Templates are not public, and a merchant who has said nothing has no logo and no style."""
    with pytest.raises(Refusal, match="nothing at this address"):
        asset(name, UNNAMED_SHOP)


def test_a_logo_is_served_as_what_it_is() -> None:
    """No browser may take it for anything but a picture."""
    answer = asset("logo", Shop(name="Tea", logo=logo_of(PNG)))
    headers = dict(answer.raw_headers)

    assert (answer.body, headers[b"content-type"]) == (PNG, b"image/png")
    assert headers[b"x-content-type-options"] == b"nosniff"


def test_the_style_of_a_shop_can_be_seen_by_day_and_in_the_dark() -> None:
    """A colour that can be seen on white can't always be seen on black."""
    style = asset("shop.css", Shop(colour=(0x00, 0x00, 0x80))).body.decode()

    assert style.startswith(
        ":root { --act: #000080; --on-act: #ffffff; --edge: #000080; }\n@media (prefers-color-scheme: dark)"
    )
    assert (style.count("--act: #000080"), style.count("--edge: #000080")) == (2, 1)
