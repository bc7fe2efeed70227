"""The glossary explains the words that users meet, and has none that nobody uses."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import pytest
from tests.prose import ROOT
from tests.sources import OURS
from tests.test_docs import typed_commands

from payrelay.api.routes.table import ROUTES
from payrelay.core.access.client_token import CLIENT_SCOPES
from payrelay.core.access.credential import Scope
from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.customers.customer import CustomerState
from payrelay.core.events.delivery import DeliveryState, EndpointState
from payrelay.core.events.event import TYPES
from payrelay.core.notifications.notification import NotificationState
from payrelay.core.payments.operation import Kind, State
from payrelay.core.subscriptions.subscription import SubscriptionState
from payrelay.errors import Code, Retry

GLOSSARY: Final = ROOT / "docs" / "glossary.md"
PAGE: Final = GLOSSARY.read_text(encoding="utf-8")
TERMS: Final[Mapping[str, str]] = {
    term: " ".join(text.split())
    for term, text in re.findall(r"^- \*\*([^*]+)\*\*: (.*?)(?=^- |^$)", PAGE, re.MULTILINE | re.DOTALL)
}
"""Each term with what is said of it."""
STORED: Final[list[tuple[str, str, str]]] = re.findall(
    r"^\| `(\w+)` \| ([^|]+) \| `?([^|`]+)`? \|$", PAGE.partition("## Words in the database")[2], re.MULTILINE
)
"""Each stored word that differs, where it is stored, and the public word for it."""
MODULES: Final[Mapping[str, list[str]]] = {
    term: re.findall(r"`([\w/]+\.py)`", text.partition("Code: ")[2]) for term, text in TERMS.items()
}
"""Each term with the modules in which to begin reading, within ``src/payrelay``."""
WITHOUT_MODULE: Final = frozenset({"app", "client", "order", "settlement", "simulator"})
"""What is outside this package, or in all of it."""
PUBLIC: Final[dict[str, Iterable[str]]] = {
    "kinds of an operation": Kind,
    "states of an operation": State,
    "types of a checkout": CheckoutKind,
    "states of a checkout": CheckoutState,
    "states of a stored customer": CustomerState,
    "states of a subscription": SubscriptionState,
    "states of a notification": NotificationState,
    "types of an event": TYPES,
    "states of an endpoint": EndpointState,
    "states of a delivery": DeliveryState,
    "scopes of a key": Scope,
    "scopes of a client token": CLIENT_SCOPES,
    "error codes": Code,
    "what an error says about retrying": Retry,
}
FIELD_WORDS: Final = """
    anchor, attempt, audit chain, authorization, capture, charge, chargeback, checkout, circuit breaker, claim,
    client token, competing operation, control query, crash point, credential, dead letter, delivery, endpoint, event,
    evidence, fingerprint, follower, guard, held response, hosted page, idempotency key, inbox, installment, journal,
    lease, mandate, needs attention, observation, operation, outbox, permit, preapproval, principal, rate limiter,
    read cache, reconciliation, refund, replay, resend to resolve, resolution, ruling, scope, seal, settlement,
    status inquiry, stored customer, subscription, void, webhook
"""
"""What a payments engineer looks for on the first day, whatever it is called here."""
MIGRATIONS: Final = "\n".join(
    path.read_text(encoding="utf-8") for path in sorted((ROOT / "src/payrelay/store/engine/schema").glob("*.sql"))
)


def public_kinds() -> list[str]:
    """Gives the kinds of an operation as users read them: a stored word by the public word for it."""
    renamed = {stored: public for stored, where, public in STORED if where == "value in `operations.kind`"}
    return [renamed.get(kind, kind) for kind in Kind]


def nouns() -> set[str]:
    """Gives what the API, its scopes, its events and the commands are about, in the singular."""
    found = {scope.partition(":")[0] for scope in Scope}
    found |= {type_.partition(".")[0] for type_ in TYPES}
    found |= {route.path.split("/")[1] for route in ROUTES} - {"subscription-states"}
    found |= {command.split()[0] for command in typed_commands() if " " in command} - {"db"}
    return {noun.replace("-", " ").removesuffix("s") for noun in found}


def is_used(term: str, text: str) -> bool:
    """True where a term is a word of a text: in the singular or the plural, written in one or several words."""
    last = re.sub(r"y$", "(y|ie)", term.rsplit(maxsplit=1)[-1])
    phrase = r"[\s_-]+".join([*map(re.escape, term.split()[:-1]), last])
    return re.search(rf"(?<![a-z]){phrase}(s|es|d|ed)?(?![a-z])", text, re.IGNORECASE) is not None


def test_terms_are_in_alphabetical_order() -> None:
    """Nobody searches twice for a word that isn't where it belongs."""
    assert len(TERMS) == PAGE.count("\n- **")
    assert list(TERMS) == sorted(TERMS)


def test_every_term_is_explained_in_a_few_words() -> None:
    """A word that is explained by a page is looked up by nobody."""
    long = [term for term, text in TERMS.items() if len(text.split()) > 50]

    assert long == []


@pytest.mark.parametrize("word", sorted(part.strip() for part in FIELD_WORDS.split(",")))
def test_every_word_of_the_field_is_found(word: str) -> None:
    """Whoever knows payments and not this program comes with these words."""
    assert word in TERMS


@pytest.mark.parametrize("noun", sorted(nouns()))
def test_every_noun_of_the_interface_is_a_term(noun: str) -> None:
    """Routes, scopes, events and commands are named by what they are about."""
    assert noun in TERMS


@pytest.mark.parametrize("kind", [*public_kinds(), *CheckoutKind])
def test_every_kind_is_a_term(kind: str) -> None:
    """What an operation does, and what a checkout asks for, decides what happens to the money."""
    assert kind in TERMS


@pytest.mark.parametrize("term", TERMS)
def test_every_term_leads_to_the_code(term: str) -> None:
    """The glossary is the index into the tree: a word leads to a module, or to a word that does."""
    targets = re.findall(r"[Ss]ee \*\*([^*]+)\*\*", TERMS[term]) or [term]
    lost = [target for target in targets if not MODULES[target] and target not in WITHOUT_MODULE]

    assert lost == []


@pytest.mark.parametrize(
    ("term", "module"), [(term, module) for term, modules in MODULES.items() for module in modules]
)
def test_a_term_is_a_word_of_its_module(term: str, module: str) -> None:
    """A module that was moved, or that speaks of something else by now, leads its reader astray."""
    path = ROOT / "src" / "payrelay" / module

    assert path.is_file()
    assert is_used(term, path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("what", PUBLIC)
def test_every_public_word_is_listed(what: str) -> None:
    """A state or a code that an answer may have is found, and so is the page that explains it."""
    row = re.search(rf"^\| {what} \|(.*)\| \[", PAGE, re.MULTILINE)

    assert row is not None
    assert set(re.findall(r"`([^`]+)`", row[1])) == set(map(str, PUBLIC[what]))


@pytest.mark.parametrize("command", typed_commands())
def test_every_command_stands_beside_its_noun(command: str) -> None:
    """Who knows what a thing is called can find what can be done with it."""
    assert f"`payrelay {command}`" in PAGE


def test_no_command_is_listed_that_is_none() -> None:
    """A command that was renamed would send an operator to an error."""
    listed = re.findall(r"`payrelay ([a-z -]+)`", PAGE.partition("## Commands")[2])

    assert set(listed) == set(typed_commands())


def test_every_term_is_used_or_leads_to_one_that_is() -> None:
    """A word that only the glossary has is not a word of this program; it may only point to ours."""
    pages = [*ROOT.glob("*.md"), *(page for page in (ROOT / "docs").rglob("*.md") if page != GLOSSARY)]
    everything = "\n".join([*(page.read_text(encoding="utf-8") for page in pages), *(source.text for source in OURS)])
    orphans = [
        term for term, text in TERMS.items() if not re.search(r"[Ss]ee \*\*", text) and not is_used(term, everything)
    ]

    assert orphans == []


def test_what_is_pointed_to_is_there() -> None:
    """A reader who is sent on finds the word."""
    targets = {target for text in TERMS.values() for target in re.findall(r"\*\*([^*]+)\*\*", text)}

    assert targets - set(TERMS) == set()


@pytest.mark.parametrize(("word", "where", "_public"), STORED, ids=[word for word, *_ in STORED])
def test_a_stored_word_is_in_the_database(word: str, where: str, _public: str) -> None:
    """An operator compares the page with what the database shows."""
    if where == "table":
        assert f"CREATE TABLE {word} (" in MIGRATIONS
    elif where.startswith("column of "):
        assert word in columns(where.removeprefix("column of ").strip("`"))
    else:
        table, column = where.removeprefix("value in ").strip("`").split(".")
        assert column in columns(table)
        assert any(f'"{word}"' in source.text for source in OURS)


@pytest.mark.parametrize(
    ("term", "text", "expected"),
    [
        ("delivery", "Deliveries wait.", True),
        ("rate limiter", "class RateLimiter: the rate_limiter module", True),
        ("dead letter", "a dead-letter queue", True),
        ("key", "a keyword, a monkey", False),
        ("void", "It is avoided.", False),
    ],
)
def test_a_term_is_found_as_a_word(term: str, text: str, *, expected: bool) -> None:
    """A term that is only part of another word would pass as used."""
    assert is_used(term, text) is expected


def columns(table: str) -> set[str]:
    """Gives the columns of a table."""
    created = re.search(rf"CREATE TABLE {table} \((.*?)^\)", MIGRATIONS, re.MULTILINE | re.DOTALL)
    assert created is not None
    added = re.findall(rf"ALTER TABLE {table} ADD COLUMN (\w+)", MIGRATIONS)
    return {*re.findall(r"^    (\w+) ", created[1], re.MULTILINE), *added}
