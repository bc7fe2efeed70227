import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.api.http.incoming_request import Headers
from payrelay.api.public.caller import Caller
from payrelay.api.public.language import LANGUAGES
from payrelay.api.public.page_reader import RANGES_MAX, chosen_language, reader_of
from payrelay.api.public.refused_senders import RefusedSenders
from payrelay.core.checkouts.shop import Shop


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        (None, "en"),
        ("", "en"),
        ("si", "si"),
        ("ta-LK", "ta"),
        ("TA", "ta"),
        ("si-LK,si;q=0.9,en-US;q=0.8,en;q=0.7", "si"),
        ("en;q=0.5, ta;q=0.7", "ta"),
        ("ta;q=0.7,si;q=0.7", "ta"),
        ("si;q=0.7,ta;q=0.7", "si"),
        ("fr, de;q=0.9, ta;q=0.1", "ta"),
        ("fr, de", "en"),
        ("*", "en"),
        ("ta;q=0.4, *;q=0.5", "en"),
        ("en;q=0, *", "si"),
        ("en;q=0, si;q=0, ta;q=0", "en"),
        ("*;q=0, ta", "ta"),
        ("ta;q=0", "en"),
        ("ta;q=0, ta-LK", "ta"),
        ("si;q=0.001", "si"),
        ("si;q=1.000", "si"),
        ("si ; q=0.3 , ta;Q=0.4", "ta"),
        ("si;q=1.5, ta", "ta"),
        ("si;q=, ta;q=0.2", "ta"),
        ("si;q=0.3333, ta;q=0.2", "ta"),
        ("sinhala", "en"),
        ("i-si", "en"),
        ("si_LK", "en"),
        ("<script>, ta", "ta"),
    ],
)
def test_the_language_is_what_the_reader_likes_best(accepted: str | None, expected: str) -> None:
    """By quality, then by place; a region counts as its language, and what can't be read as absent."""
    assert chosen_language(accepted, LANGUAGES) == expected


@given(accepted=st.text(alphabet="ensita-*;q=0.15, ", max_size=60))
def test_any_header_chooses_one_of_the_languages(accepted: str) -> None:
    """A stranger writes it."""
    assert chosen_language(accepted, LANGUAGES) in LANGUAGES


def test_an_endless_header_is_cut() -> None:
    """It costs no more than a short one."""
    assert chosen_language("fr," * RANGES_MAX + "ta", LANGUAGES) == "en"


@pytest.mark.parametrize(
    ("pairs", "tag"),
    [
        ([], "en"),
        ([(b"accept-language", b"ta")], "ta"),
        ([(b"accept-language", b"fr"), (b"accept-language", b"si")], "si"),
    ],
)
def test_a_reader_comes_with_the_request(pairs: list[tuple[bytes, bytes]], tag: str) -> None:
    """A header that comes twice is one list, as HTTP has it."""

    async def receive() -> dict[str, object]:
        return {}

    shop = Shop(name="Tea")
    caller = Caller(
        account="gateway",
        segments=(),
        headers=Headers(pairs),
        receive=receive,
        query_string=b"",
        client="127.0.0.1",
        refused_senders=RefusedSenders(),
        request_id="req_1",
        shop=shop,
    )
    reader = reader_of(caller)

    assert (reader.language.tag, reader.shop) == (tag, shop)
