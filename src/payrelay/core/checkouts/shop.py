"""How a merchant's pages look: name, logo and colour, and a button of that colour that everybody can see.

Contrasts are those of WCAG 2, from 1 to 21. Text needs 4.5, and the edge of a button 3 against what is behind it.
"""

import re
from typing import Final, TypeAlias

import msgspec

Rgb: TypeAlias = tuple[int, int, int]

EDGE_CONTRAST_MIN: Final = 3.0
BEHIND_LIGHT: Final[Rgb] = (0xFF, 0xFF, 0xFF)
BEHIND_DARK: Final[Rgb] = (0x1C, 0x24, 0x2C)
"""What is behind the buttons of the pages, ``--card`` in their style sheet: by day, and where a reader prefers dark."""
LOGO_BYTES_MAX: Final = 256 * 1024
_BLACK: Final[Rgb] = (0, 0, 0)
_WHITE: Final[Rgb] = (0xFF, 0xFF, 0xFF)
_STEPS: Final = 20
_LINEAR_BELOW: Final = 0.04045

_colour = re.compile(r"#([0-9a-fA-F]{2})([0-9a-fA-F]{2})([0-9a-fA-F]{2})").fullmatch


class Logo(msgspec.Struct, frozen=True, kw_only=True):
    """A picture and its media type."""

    body: bytes
    media_type: str

    def __repr__(self) -> str:
        return f"Logo({self.media_type}, {len(self.body)} bytes)"


class Shop(msgspec.Struct, frozen=True, kw_only=True):
    """How the pages of an account look; None for what the merchant hasn't said.

    Attributes:
        name: as customers know the merchant.
        logo: is shown beside the name.
        colour: of the buttons.
    """

    name: str | None = None
    logo: Logo | None = None
    colour: Rgb | None = None


UNNAMED_SHOP: Final = Shop()


class Shades(msgspec.Struct, frozen=True, kw_only=True):
    """The colours of a button, of its text and of its edge, such as ``#0b5cad``."""

    button: str
    text: str
    edge: str


def parse_colour(text: str) -> Rgb:
    """Reads ``#0b5cad``. Raises ValueError."""
    found = _colour(text)
    if found is None:
        raise ValueError("must be a colour such as #0b5cad")
    return (int(found[1], 16), int(found[2], 16), int(found[3], 16))


def logo_of(body: bytes) -> Logo:
    """Reads a picture by its first bytes: PNG, JPEG or WebP. Raises ValueError."""
    if len(body) > LOGO_BYTES_MAX:
        raise ValueError(f"must be a picture of at most {LOGO_BYTES_MAX} bytes")
    if body.startswith(b"\x89PNG\r\n\x1a\n"):
        return Logo(body=body, media_type="image/png")
    if body.startswith(b"\xff\xd8\xff"):
        return Logo(body=body, media_type="image/jpeg")
    if body.startswith(b"RIFF") and body[8:12] == b"WEBP":
        return Logo(body=body, media_type="image/webp")
    raise ValueError("must be a PNG, JPEG or WebP picture")


def shades(colour: Rgb, *, is_dark: bool) -> Shades:
    """Gives the colours of a button that can be read, with an edge that can be told from what is behind the button."""
    behind, towards = (BEHIND_DARK, _WHITE) if is_dark else (BEHIND_LIGHT, _BLACK)
    mixes = (_mixed(colour, towards, step) for step in range(_STEPS + 1))
    edge = next(mix for mix in mixes if contrast(mix, behind) >= EDGE_CONTRAST_MIN)
    text = max(_WHITE, _BLACK, key=lambda tone: contrast(tone, colour))
    return Shades(button=_written(colour), text=_written(text), edge=_written(edge))


def contrast(one: Rgb, other: Rgb) -> float:
    """Gives the contrast of two colours, from 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Rgb) -> float:
    red, green, blue = (_linear(value / 255) for value in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(value: float) -> float:
    return value / 12.92 if value <= _LINEAR_BELOW else ((value + 0.055) / 1.055) ** 2.4


def _mixed(colour: Rgb, towards: Rgb, step: int) -> Rgb:
    red, green, blue = (
        round(value + (end - value) * step / _STEPS) for value, end in zip(colour, towards, strict=True)
    )
    return (red, green, blue)


def _written(colour: Rgb) -> str:
    return "#" + "".join(f"{value:02x}" for value in colour)
