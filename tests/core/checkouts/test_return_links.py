from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.checkouts.return_links import LINK_LENGTH_MAX, LinkError, is_allowed, parse_rule, with_outcome


@pytest.mark.parametrize(
    ("rule", "link"),
    [
        ("https://shop.example/*", "https://shop.example/done?order=1"),
        ("https://shop.example/*", "https://SHOP.example:443/"),
        ("https://shop.example/*", "https://shop.example"),
        ("https://shop.example/app/*", "https://shop.example/app/done"),
        ("https://shop.example/done", "https://shop.example/done?order=1#top"),
        ("https://shop.example:8443/*", "https://shop.example:8443/x"),
        ("http://localhost:3000/*", "http://localhost:3000/done"),
        ("http://127.0.0.1/*", "http://127.0.0.1:80/done"),
        ("myshop://", "myshop://done"),
        ("MyShop://", "myshop:///paid?x=1"),
        ("com.example.shop://", "com.example.shop://"),
    ],
)
def test_what_is_listed_is_allowed(rule: str, link: str) -> None:
    """An app gets its customer back."""
    assert parse_rule(rule).allows(link)


@pytest.mark.parametrize(
    "link",
    [
        "https://evil.example/",
        "https://shop.example.evil.example/",
        "https://shop.example@evil.example/",
        "https://shop.example%2f@evil.example/",
        "https://shop.example\\@evil.example/",
        "https://shop.example:444/",
        "https://shop.example/../admin",
        "https://shop.example/app/../../admin",
        "https://shop.example/app/%2E%2e/admin",
        "https://shop.example/application",
        "http://shop.example/app/",
        "//shop.example/app/",
        "/app/",
        "javascript://shop.example/app/%0aalert(1)",
        "JavaScript:alert(1)",
        "data://text/html,x",
        "https://shop.example/app/ x",
        "https://shop.example/app/\nx",
        'https://shop.example/app/"x',
        "https://shop.example:99999/app/",
        "https:///app/",
        "myshop2://done",
        "",
        "https://shop.example/app/" + "x" * LINK_LENGTH_MAX,
    ],
)
def test_everything_else_is_not(link: str) -> None:
    """A page of ours that leads anywhere is what thieves of card data look for."""
    rules = (parse_rule("https://shop.example/app/*"), parse_rule("myshop://"))

    assert not is_allowed(link, rules)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "https://*",
        "https://*.example/*",
        "https://",
        "javascript://",
        "intent://",
        "file://",
        "shop.example/*",
        "http://shop.example/*",
        "https://shop.example/*?x",
        "https://shop.example/?x=1",
        "https://u:p@shop.example/*",
        "myshop://done",
        "https://shop.example:0/*",
    ],
)
def test_a_rule_that_says_too_much_or_nothing_is_refused(text: str) -> None:
    """It would be found out by a customer."""
    with pytest.raises(LinkError):
        parse_rule(text)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("myshop://", "myshop://?checkout=chk_1&state=open"),
        ("myshop:///done", "myshop:///done?checkout=chk_1&state=open"),
        ("https://shop.example/done", "https://shop.example/done?checkout=chk_1&state=open"),
        ("https://shop.example/done?order=1", "https://shop.example/done?order=1&checkout=chk_1&state=open"),
        ("https://shop.example/done?#top", "https://shop.example/done?checkout=chk_1&state=open#top"),
    ],
)
def test_the_outcome_is_added_to_the_query(link: str, expected: str) -> None:
    """The app learns which checkout it is; that it is so it asks its own server."""
    assert with_outcome(link, "chk_1", "open") == expected


@given(st.from_regex(r"https://shop\.example/[a-z0-9/?&=#%]{0,40}", fullmatch=True))
def test_what_is_added_leads_nowhere_else(link: str) -> None:
    """Whatever an app's link looks like, host and path stay, and the outcome can be read."""
    before, after = urlsplit(link), urlsplit(with_outcome(link, "chk_1", "failed"))

    assert (before.scheme, before.netloc, before.path) == (after.scheme, after.netloc, after.path)
    assert parse_qs(after.query)["checkout"][-1] == "chk_1"


@pytest.mark.parametrize("address", ["http://192.168.1.5:8090", "http://10.0.0.7", "http://127.0.0.2:8090"])
def test_a_private_network_is_allowed_only_where_it_is_asked_for(address: str) -> None:
    """A demo leads a phone back by http; a real shop's customers must never be led that way."""
    assert parse_rule(f"{address}/*", may_be_near=True).allows(f"{address}/done")
    if "127." not in address:
        with pytest.raises(LinkError):
            parse_rule(f"{address}/*")


@pytest.mark.parametrize(
    "address", ["http://8.8.8.8", "http://shop.example", "http://0.0.0.0:8090", "http://[2001:4860::1]"]
)
def test_http_leads_nowhere_else(address: str) -> None:
    """Whoever sits on the way could send the customer anywhere."""
    with pytest.raises(LinkError):
        parse_rule(f"{address}/*", may_be_near=True)
