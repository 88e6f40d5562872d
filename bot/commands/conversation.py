"""The commands about the conversation: to begin it anew, sum it up, look into its window, and stop its answer; how its
messages queue, and which model answers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from agents.events import Event, Notice
from agents.prefix import PrefixTooLong
from agents.upkeep import KEPT
from bot.commands.order import NO_AGENT, Answer, Order, bullets
from bot.errors import NotPermitted, UsageError
from bot.metering import NOT_TODAY, keeper, refusal
from bot.queueing import MODES, QueueMode
from bot.spelling import closest
from workspaces.scope import Level

BEGUN_ANEW = "A new conversation begins. What was said before is in the transcript, what mattered in the notes."
COMPACTED = "Our older messages are summed up."
DEFAULT = "default"
"""In the place of a choice: as the settings have it."""

_MODES: dict[QueueMode, str] = {
    "steer": "joins that answer",
    "collect": "waits, and all of it is answered together",
    "followup": "waits, and each message is answered by itself",
    "interrupt": "ends that answer, and I begin anew with both",
}


async def new(order: Order) -> Answer:
    agent = await order.agent()
    noted = await _carried_out(agent.reset(order.thread, "new"), order)
    return Answer("\n\n".join([BEGUN_ANEW, *noted]))


async def compact(order: Order) -> Answer:
    agent = await order.agent()
    model = keeper(agent)
    if model is not None and (reason := await refusal(model)):
        return Answer(reason if order.is_private else NOT_TODAY, 1)
    said = await _carried_out(agent.compact(order.thread, order.given.words), order)
    return Answer("\n\n".join(said) or COMPACTED)


async def _carried_out(events: AsyncIterator[Event], order: Order) -> list[str]:
    """What there is to say of it."""
    return [_for_all(each.text, order) async for each in events if isinstance(each, Notice)]


def _for_all(notice: str, order: Order) -> str:
    """``notice`` without its cause, which names the server and the budget, where others read it."""
    without, _, _ = KEPT.partition(": {why}")
    return f"{without}." if notice.startswith(without) and not order.is_private else notice


async def context(order: Order) -> Answer:
    agent = await order.agent()
    try:
        made = agent.composition(order.thread)
    except PrefixTooLong as error:
        return Answer(str(error) if order.is_private else NO_AGENT, 1)
    if made is None:
        return Answer("Nothing of our conversation is kept in a window here: each message is answered by itself.")
    window = made.window
    lines = [
        f"{share.tokens:,} {share.source}" + (f" ({share.remark})" if share.remark else "") for share in made.shares
    ]
    head = f"{made.total:,} of {window.context:,} tokens are used in the window of {made.model}:"
    foot = f"Notes are taken at {window.flush_at:,}, and older messages summed up at {window.compact_at:,}."
    return Answer(f"{head}\n\n{bullets(lines)}\n\n{foot}")


async def stop(order: Order) -> Answer:
    return Answer(await order.stop())


async def queue(order: Order) -> Answer:
    """Show how messages queue in the session, or choose it."""
    word, session = order.given.words.casefold(), order.route.session
    if not word:
        return Answer(await _queue_is(order))
    if word != DEFAULT and word not in MODES:
        nearest = closest(word, [*MODES, DEFAULT])
        hint = f" Did you mean /queue {nearest}?" if nearest else ""
        return Answer(f"Say /queue and one of {', '.join(MODES)} or {DEFAULT}.{hint}", UsageError.exit_code)
    await order.choices.queue(session, None if word == DEFAULT else word)
    return Answer(await _queue_is(order))


async def _queue_is(order: Order) -> str:
    mode = (await order.queues.of(order.message.address, order.route.session)).mode
    others = ", ".join(other for other in MODES if other != mode)
    return f"While I answer you, what you say {_MODES[mode]} (/queue {mode}). The other ways: {others}."


async def model(order: Order) -> Answer:
    """Show which model answers in the session; its owner chooses another."""
    word, session, agent = order.given.words, order.route.session, order.route.agent
    is_owner = order.scope.level is Level.OWNER
    names = order.models.names(agent)
    if not word:
        answering = (await order.agent()).model()
        lines = [f"{answering.name} answers here." if answering else "No model answers here: I go by my notes."]
        if is_owner:
            chosen = (await order.choices.of(session)).model
            back = f" /model {DEFAULT} takes back that you chose {chosen}." if chosen else ""
            lines.append(f"There are: {', '.join(names)}.{back}" if names else "No other is configured.")
        return Answer(" ".join(lines))
    if not is_owner:
        return Answer("Which model answers is for my owner to choose.", NotPermitted.exit_code)
    if word == DEFAULT:
        await order.choices.model(session, None)
        return Answer("From now on the model of the settings answers here.")
    if word not in names:
        nearest = closest(word, [*names, DEFAULT])
        hint = f" Did you mean {nearest}?" if nearest else ""
        known = f"There are: {', '.join(names)}." if names else "None is configured."
        return Answer(f"I know no model of that name. {known}{hint}", UsageError.exit_code)
    if (problem := order.models.obstacle(word)) is not None:
        mend = f" To mend it: {problem.mend}." if problem.mend else ""
        return Answer(f"{problem.what}.{mend}" if order.is_private else NO_AGENT, 1)
    await order.choices.model(session, word)
    return Answer(f"From now on {word} answers here. /model {DEFAULT} takes that back.")
