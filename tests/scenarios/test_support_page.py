"""The page for support staff: each of its questions is asked of a running demo, and answered as the page says."""

import html
import re
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

import pytest
from tests.scenarios.demo import Demo, running_demo
from tests.scenarios.orders_to_ask_about import EMAIL, invited, make_orders
from tests.scenarios.test_demo import play
from tests.scenarios.waiting import until
from tests.sources import ROOT

PAGE = (ROOT / "docs" / "support.md").read_text()
ROW = re.compile(r"^\| (.+?) \| `([^`]+)` \| (\d+) \| (open the order|ask the gateway) \| “(.+?)”", re.MULTILINE)

PASSWORD = "a password of the demo's"
NO_CALL_LEFT = "budget of calls is used up"


class Question(NamedTuple):
    """A row of the table."""

    asked: str
    typed: str
    searches: str
    then: str
    says: str


QUESTIONS = [Question(*row) for row in ROW.findall(PAGE)]


class Reader:
    """Somebody who is signed in to the console of a demo, without a script; counts searches."""

    def __init__(self, demo: Demo, invitation: str) -> None:
        self.searches = 0
        self._address = demo.address
        self._browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        self.post(invitation, self.open(invitation), email=EMAIL, password=PASSWORD, again=PASSWORD)

    def open(self, path: str) -> str:
        """Opens a page."""
        with self._browser.open(self._address + path, timeout=30) as answer:
            return str(answer.read().decode())

    def post(self, path: str, page: str, **fields: str) -> str:
        """Sends a form of a page."""
        token = re.findall(r'name="token" value="(\w+)"', page)[0]
        data = urlencode({"token": token, **fields}).encode()
        with self._browser.open(self._address + path, data, timeout=30) as answer:
            return str(answer.read().decode())

    def record_of(self, address: str) -> str:
        """Asks the gateway for an order's record, again while the demo's budget of calls is used up; gives its page."""
        pages = [self.open(address)]

        def is_asked() -> bool:
            pages.append(self.post(f"{address}/gateway", pages[-1]))
            return NO_CALL_LEFT not in pages[-1]

        until(is_asked, "the budget has a call left")
        return pages[-1]

    def found(self, text: str) -> str:
        """Searches, and gives the address of the first order that was found."""
        self.searches += 1
        page = self.open(f"/console/find?q={quote(text, safe='')}")
        links = re.findall(r'href="(/console/orders/[^"]+)"', page)
        assert links, text
        return html.unescape(links[0])


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Who answers, in a demo whose calls were all made, and then made once more."""
    folder: Path = tmp_path_factory.mktemp("support")
    with running_demo(folder) as demo:
        for command in (*demo.calls, *demo.calls):
            assert play(command, demo.key).status == 200, command
        make_orders(demo)
        yield Reader(demo, invited(folder))


def words_of(page: str) -> str:
    """Gives the text of a page, as it is read."""
    body = re.sub(r"<head>.*?</head>|<header>.*?</header>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_the_page_has_ten_questions() -> None:
    """Those that a support team gets; each with what is typed and how often was searched."""
    assert len(QUESTIONS) == 10
    assert len({question.typed for question in QUESTIONS}) == 10


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.typed)
def test_a_customers_question_is_answered_by_the_console_alone(reader: Reader, question: Question) -> None:
    """With as many searches as the page says, and in the words that it quotes."""
    before = reader.searches
    address = reader.found(question.typed)
    page = reader.record_of(address) if question.then == "ask the gateway" else reader.open(address)

    assert question.says in words_of(page)
    assert reader.searches - before == int(question.searches)


def test_who_pressed_pay_twice_was_charged_once(reader: Reader) -> None:
    """The gateway's own record has one payment of the order, although the call was made twice."""
    page = reader.record_of(reader.found("DemoOrder3"))

    assert page.count("Paid; the record shows no refund of a part") == 1
