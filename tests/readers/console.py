"""The readers of what browsers send to the console."""

from typing import Final

from tests.readers.reader import Reader, Shape

from payrelay.api.serving import HEADERS_BYTES_MAX
from payrelay.console.web.cookies import Cookies

_COOKIES: Final = Cookies(is_secure=True)

READERS: Final = (
    Reader(
        name="cookies",
        read=_COOKIES.read,
        longest=HEADERS_BYTES_MAX,
        shapes=(
            Shape("escaped quotes", b'\\"', before=b'a="', after=b'"'),
            Shape("many of them", lambda number: b"a%d=b; " % number),
            Shape("many without a name", b";"),
            Shape("one again and again", b"__Host-payrelay_console_session=; "),
        ),
    ),
)
