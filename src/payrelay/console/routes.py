"""The table of the console's routes: who may open each, and what answers.

A test asks every route with every role, and compares the answers with ``core.operators.roles``.
"""

from typing import Final
from urllib.parse import unquote

from payrelay.console import live
from payrelay.console.pages import account, acts, assets, find, operators, orders, overview, queue
from payrelay.console.pages.sign_in import password, provider, second_factor
from payrelay.console.web.route import ConsoleRoute, Entry, further_pages
from payrelay.core.operators.roles import TO_CONFIRM, Act

NAVIGATION: Final = (
    ("/console/", "Start", Act.LOOK),
    ("/console/overview", "Overview", Act.LOOK),
    ("/console/find", "Find", Act.LOOK),
    ("/console/queue", "Queue", Act.LOOK),
    *(each for pages in further_pages() for each in pages.navigation),
    ("/console/operators", "Operators", Act.LIST_OPERATORS),
    ("/console/acts", "History", Act.READ_ACTS),
    ("/console/account", "Your account", Act.END_OWN_SESSION),
)
"""What leads from every page to others: address, name, and what a role must allow to see it."""
LIVE_PATH: Final = "/console/live"
"""Asked by open pages, and by nobody's hand: it is no use of a session."""
ROUTES: Final = (
    ConsoleRoute("GET", "/console/assets/console.css", assets.style_sheet, entry=Entry.ANYBODY),
    ConsoleRoute("GET", "/console/assets/live.js", assets.live_script, entry=Entry.ANYBODY),
    ConsoleRoute("GET", "/console/assets/passkeys.js", assets.passkey_script, entry=Entry.ANYBODY),
    ConsoleRoute("GET", "/console/sign-in", password.show_form, entry=Entry.ANYBODY),
    ConsoleRoute("POST", "/console/sign-in", password.take_password, entry=Entry.ANYBODY),
    ConsoleRoute("GET", "/console/sign-in/provider", provider.lead_away, entry=Entry.ANYBODY),
    ConsoleRoute("GET", "/console/sign-in/provider/back", provider.take_back, entry=Entry.ANYBODY),
    ConsoleRoute("GET", "/console/invitations/{token}", password.show_invitation, entry=Entry.ANYBODY),
    ConsoleRoute("POST", "/console/invitations/{token}", password.take_invitation, entry=Entry.ANYBODY),
    ConsoleRoute("GET", "/console/code", second_factor.show_code, Act.SIGN_IN, Entry.HALF),
    ConsoleRoute("POST", "/console/code", second_factor.take_code, Act.SIGN_IN, Entry.HALF),
    ConsoleRoute("POST", "/console/code/passkey", second_factor.take_passkey, Act.SIGN_IN, Entry.HALF),
    ConsoleRoute("POST", "/console/passkeys", second_factor.add, Act.ENROL_SECOND_FACTOR, Entry.HALF),
    ConsoleRoute("POST", "/console/sign-out", password.leave, Act.SIGN_OUT, Entry.HALF),
    ConsoleRoute("GET", "/console/", account.start, Act.LOOK),
    ConsoleRoute("GET", "/console/account", account.show, Act.END_OWN_SESSION),
    ConsoleRoute("GET", "/console/account/second-factor", second_factor.show_set_up, Act.ENROL_SECOND_FACTOR),
    ConsoleRoute("POST", "/console/account/passkeys/{passkey}/remove", second_factor.remove, Act.REMOVE_SECOND_FACTOR),
    ConsoleRoute("POST", "/console/account/authenticator/remove", second_factor.remove_app, Act.REMOVE_SECOND_FACTOR),
    ConsoleRoute("POST", "/console/account/sessions/{session}/end", account.end_session, Act.END_OWN_SESSION),
    ConsoleRoute("POST", "/console/account/zone", account.choose_zone, Act.LOOK),
    ConsoleRoute("GET", "/console/find", find.show, Act.LOOK),
    ConsoleRoute("GET", "/console/find.csv", find.as_csv, Act.LOOK),
    ConsoleRoute("GET", "/console/orders/{account}/{order}", orders.show, Act.LOOK),
    ConsoleRoute("POST", "/console/orders/{account}/{order}/gateway", orders.ask, Act.ASK_GATEWAY),
    ConsoleRoute("GET", "/console/operations/{operation}", orders.show_operation, Act.LOOK),
    ConsoleRoute("GET", "/console/overview", overview.show, Act.LOOK),
    ConsoleRoute("GET", LIVE_PATH, live.stream, Act.LOOK),
    ConsoleRoute("GET", "/console/queue", queue.show_queue, Act.LOOK),
    ConsoleRoute("GET", "/console/act/{noun}/{id}", queue.show_target, Act.LOOK),
    ConsoleRoute("POST", "/console/act/{noun}/{id}/note", queue.note, Act.ADD_NOTE),
    ConsoleRoute("POST", "/console/act/{noun}/{id}/assign", queue.assign_to, Act.ASSIGN_CASE),
    *(ConsoleRoute("POST", f"/console/act/{{noun}}/{{id}}/{act}", acts.prepare_act, act) for act in TO_CONFIRM),
    ConsoleRoute("GET", "/console/confirmations/{confirmation}", acts.show_confirmation, Act.CONFIRM),
    ConsoleRoute(
        "POST", "/console/confirmations/{confirmation}", acts.take_confirmation, Act.CONFIRM, about=acts.about
    ),
    ConsoleRoute("POST", "/console/confirmations/{confirmation}/withdraw", acts.take_back, Act.WITHDRAW),
    ConsoleRoute("GET", "/console/acts", operators.show_acts, Act.READ_ACTS),
    ConsoleRoute("GET", "/console/operators", operators.show_all, Act.LIST_OPERATORS),
    ConsoleRoute("POST", "/console/operators", operators.invite, Act.ADD_OPERATOR, about=operators.about),
    ConsoleRoute("GET", "/console/operators/{email}", operators.show_one, Act.LIST_OPERATORS),
    ConsoleRoute(
        "POST", "/console/operators/{email}/role", operators.give_role, Act.CHANGE_ROLE, about=operators.about
    ),
    ConsoleRoute(
        "POST", "/console/operators/{email}/disable", operators.disable, Act.DISABLE_OPERATOR, about=operators.about
    ),
    ConsoleRoute(
        "POST", "/console/operators/{email}/reset", operators.reset, Act.RESET_PASSWORD, about=operators.about
    ),
    ConsoleRoute("POST", "/console/operators/{email}/sessions/end", operators.end_all_sessions, Act.END_SESSIONS),
    *(route for pages in further_pages() for route in pages.routes),
)
"""Every page of the console."""


_LENGTHS: Final = frozenset(len(route.path.split("/")) for route in ROUTES)


def matching(raw_path: bytes) -> list[tuple[ConsoleRoute, tuple[str, ...]]]:
    """Gives the routes with this path, as it was sent, each with what stands in its braces, decoded."""
    pieces = raw_path.decode("latin-1").split("/")
    if len(pieces) not in _LENGTHS:  # each is decoded, and somebody may send thousands of slashes
        return []
    path = [unquote(piece, errors="replace") for piece in pieces]
    return [(route, names) for route in ROUTES if (names := _names(route.path.split("/"), path)) is not None]


def _names(pattern: list[str], path: list[str]) -> tuple[str, ...] | None:
    if len(pattern) != len(path):
        return None
    names = []
    for expected, given in zip(pattern, path, strict=True):
        if expected.startswith("{") and given:
            names.append(given)
        elif expected != given:
            return None
    return tuple(names)
