"""What needs a person: the queue, and what is written about one thing from its page."""

from payrelay.api.console_exchange import ConsoleAnswer
from payrelay.console.pages.target import path_of, reason_from, stale_page, target_page
from payrelay.console.web.asked import Asked
from payrelay.console.web.rendering import redirect
from payrelay.core.operators.act_texts import text_of
from payrelay.errors import Refusal
from payrelay.flows.operators.acts.cases import add_note, assign, read_queue
from payrelay.flows.operators.acts.confirm import existing_target
from payrelay.flows.operators.acts.stale import StalePageError


async def show_queue(asked: Asked) -> ConsoleAnswer:
    """Lists what needs a person."""
    queue = await read_queue(asked.parts, asked.site.relay, asked.actor)
    return asked.page("queue.html", live="/console/queue", tells=True, queue=queue, text_of=text_of)


async def show_target(asked: Asked) -> ConsoleAnswer:
    """Shows one thing, with what can be done about it."""
    return await target_page(asked, await existing_target(asked.site.relay, asked.actor, *asked.names))


async def note(asked: Asked) -> ConsoleAnswer:
    """Adds a note."""
    target = await existing_target(asked.site.relay, asked.actor, *asked.names)
    seen = asked.form.get("seen", "")
    try:
        text = reason_from(asked, "note", "the note")
        await add_note(asked.parts, asked.site.relay, asked.actor, target, seen=seen, text=text)
    except Refusal as refusal:
        return await target_page(asked, target, refusal)
    except StalePageError as stale:
        return stale_page(asked, stale, kept=asked.form.get("note", ""))
    return redirect(path_of(target))


async def assign_to(asked: Asked) -> ConsoleAnswer:
    """Says who sees to it."""
    target = await existing_target(asked.site.relay, asked.actor, *asked.names)
    seen, email = asked.form.get("seen", ""), asked.form.get("email", "").strip().lower()
    try:
        reason = reason_from(asked, "reason", "the reason")
        await assign(asked.parts, asked.site.relay, asked.actor, target, seen=seen, email=email, reason=reason)
    except Refusal as refusal:
        return await target_page(asked, target, refusal)
    except StalePageError as stale:
        return stale_page(asked, stale)
    return redirect(path_of(target))
