"""What a live page is sent: its own parts, and only those that have changed."""

import json

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from payrelay.console.rules.live import ALIVE, changed, parts_of

texts = st.dictionaries(st.sampled_from(["live-now", "live-queue", "live-as-of"]), st.text())


def page(parts: dict[str, str]) -> bytes:
    """Writes a page with these texts in its parts, escaped as templates do."""
    marked = [f'<div class="live" id="{name}">{escape(text)}</div><!--{name}-->' for name, text in parts.items()]
    return ("<h1>x</h1>" + "<p>between</p>".join(marked)).encode()


@given(texts)
def test_each_part_is_found_whatever_is_in_it(parts: dict[str, str]) -> None:
    """Also where the text looks like the mark that ends a part, or begins another."""
    assert parts_of(page(parts)) == {name: str(escape(text)) for name, text in parts.items()}


def test_a_text_that_looks_like_a_mark_is_a_text() -> None:
    """Otherwise an order's id could leave out what stands behind it."""
    hostile = '</div><!--live-now--><div class="live" id="live-queue">'

    assert list(parts_of(page({"live-now": hostile}))) == ["live-now"]


@given(texts, texts)
def test_only_what_has_changed_is_sent(before: dict[str, str], now: dict[str, str]) -> None:
    """A page that is as it was gets a sign of life; whoever applies what comes has the page as it is."""
    event = changed(before, now)
    if event == ALIVE:
        sent = {}
    else:
        assert event.startswith(b"data: ")
        assert event.endswith(b"\n\n")
        assert event.count(b"\n") == 2
        sent = json.loads(event.removeprefix(b"data: "))

    assert sent == {name: text for name, text in now.items() if before.get(name) != text}
