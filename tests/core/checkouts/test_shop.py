import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.checkouts.shop import (
    BEHIND_DARK,
    BEHIND_LIGHT,
    EDGE_CONTRAST_MIN,
    LOGO_BYTES_MAX,
    contrast,
    logo_of,
    parse_colour,
    shades,
)

TEXT_CONTRAST_MIN = 4.5
channel = st.integers(0, 255)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [((0, 0, 0), (255, 255, 255), 21.0), ((119, 119, 119), (255, 255, 255), 4.48), ((255, 0, 0), (255, 0, 0), 1.0)],
)
def test_a_contrast_is_that_of_the_standard(
    one: tuple[int, int, int], other: tuple[int, int, int], expected: float
) -> None:
    """Known values of WCAG 2; the order doesn't matter."""
    assert round(contrast(one, other), 2) == expected
    assert contrast(one, other) == contrast(other, one)


@given(colour=st.tuples(channel, channel, channel), is_dark=st.booleans())
def test_every_colour_makes_a_button_that_can_be_seen_and_read(colour: tuple[int, int, int], *, is_dark: bool) -> None:
    """Pale yellow on white and navy on black too."""
    made = shades(colour, is_dark=is_dark)

    assert parse_colour(made.button) == colour
    assert contrast(parse_colour(made.edge), BEHIND_DARK if is_dark else BEHIND_LIGHT) >= EDGE_CONTRAST_MIN
    assert contrast(colour, parse_colour(made.text)) >= TEXT_CONTRAST_MIN


def test_a_colour_that_can_be_seen_needs_no_other_edge() -> None:
    """The edge is there for those that can't."""
    assert shades((0x0B, 0x5C, 0xAD), is_dark=False).edge == "#0b5cad"
    assert shades((0xFF, 0xD7, 0x00), is_dark=True).edge == "#ffd700"
    assert shades((0xFF, 0xD7, 0x00), is_dark=False).edge == "#a68c00"


@pytest.mark.parametrize("text", ["", "0b5cad", "#0b5ca", "#0b5cadff", "#0b5cag", "red", " #0b5cad"])
def test_another_text_is_no_colour(text: str) -> None:
    """A style sheet must not be written by a setting."""
    with pytest.raises(ValueError, match="must be a colour such as #0b5cad"):
        parse_colour(text)


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\nrest", "image/png"),
        (b"\xff\xd8\xffrest", "image/jpeg"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
    ],
)
def test_a_logo_is_known_by_its_first_bytes(body: bytes, media_type: str) -> None:
    """A browser is told what it is, and believes nothing else."""
    assert (logo_of(body).media_type, logo_of(body).body) == (media_type, body)


@pytest.mark.parametrize("body", [b"", b"<svg onload=alert(1)>", b"RIFF\x00\x00\x00\x00WAVE", b"GIF89a"])
def test_another_file_is_no_logo(body: bytes) -> None:
    """A picture that can hold a script is none of them."""
    with pytest.raises(ValueError, match="must be a PNG, JPEG or WebP picture"):
        logo_of(body)


def test_a_huge_picture_is_no_logo() -> None:
    """Each customer's phone loads it."""
    with pytest.raises(ValueError, match="at most 262144 bytes"):
        logo_of(b"\x89PNG\r\n\x1a\n" + bytes(LOGO_BYTES_MAX))


def test_a_logo_is_not_printed() -> None:
    """Settings end up in logs."""
    assert repr(logo_of(b"\xff\xd8\xff")) == "Logo(image/jpeg, 3 bytes)"
