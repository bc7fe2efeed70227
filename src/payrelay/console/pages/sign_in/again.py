"""The second factor once more, in the midst of something: what somebody typed is kept, and done once it was shown."""

from typing import Final

import msgspec

from payrelay.console.pages.sign_in.password import SENTENCES, STATUSES, told_when
from payrelay.console.web.asked import SIGN_IN, Asked
from payrelay.console.web.rendering import PASSKEY_SCRIPT_PATH, redirect
from payrelay.core.console.act_texts import ACT_TEXTS
from payrelay.core.console.exchange import ConsoleAnswer
from payrelay.core.console.roles import Act
from payrelay.flows.console.passkeys import PasskeyAnswer, ask_to_show, confirm_passkey
from payrelay.flows.console.sign_in import Failure, SignedIn, Visitor, confirm_code

MARK: Final = "again"
"""The field by which a form says that it brings the second factor along, and for which act."""
_OWN: Final = frozenset({MARK, "token", "code", "answer"})


async def ask_again(asked: Asked, way: str, act: str, failure: Failure | None = None) -> ConsoleAnswer:
    """Asks for the second factor, by a form that sends everything else of this request once more.

    ``way`` is the page where somebody begins anew who has to sign in for it. ``act`` is what is done then, as the form
    has it; what is done is decided when it is done.
    """
    visitor = asked.visited
    asked_to_show = await ask_to_show(asked.parts, visitor, asked.party, asked.cookie)
    error = None
    if failure is not None:
        error = "That was wrong, or was used before." if failure is Failure.WRONG else SENTENCES[failure]
    page = asked.page(
        "again.html",
        status=403 if failure is None else STATUSES[failure],
        script=PASSKEY_SCRIPT_PATH if asked_to_show else None,
        error=error,
        asked_to_show=asked_to_show,
        takes_code=visitor.operator.has_totp,
        kept={name: text for name, text in asked.form.items() if name not in _OWN},
        next=way,
        act=act,
        act_name=_name_of(act),
    )
    return page if failure is None else told_when(page, failure)


async def shown_again(asked: Asked, way: str) -> Asked | ConsoleAnswer:
    """Takes the second factor that a form brings along: gives the request of the new session, or a page instead."""
    answer = asked.form.get("answer")
    if answer is not None:
        brought = PasskeyAnswer(answer, asked.cookie, asked.party, asked.browser)
        found = await confirm_passkey(asked.parts, asked.visited, brought)
    elif asked.visited.operator.has_totp:
        code = asked.form.get("code", "")
        found = await confirm_code(asked.parts, asked.visited, code, asked.browser, token=asked.cookie)
    else:  # such a code would set an app up
        found = Failure.WRONG
    if isinstance(found, SignedIn):
        visitor = Visitor(found.operator, found.session)
        return msgspec.structs.replace(asked, visitor=visitor, cookie=found.token.reveal())
    if found is Failure.COPIED:
        return asked.without_session(redirect(f"{SIGN_IN}?why={found}"))
    return await ask_again(asked, way, asked.form[MARK], found)


def _name_of(act: str) -> str:
    """Gives the name of an act that a form has; empty for what is none."""
    if act not in set(Act):
        return ""
    text = ACT_TEXTS.get(Act(act))
    return act.replace("_", " ").capitalize() if text is None else text.name
