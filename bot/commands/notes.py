"""The commands about the memory: what was noted, what is found there, and taking the last of it back."""

from __future__ import annotations

from agents.taking_back import taken_back
from bot.commands.order import Answer, Order, bullets
from bot.errors import UsageError
from bot.spelling import closest
from workspaces.memory import Hit

MOST_FOUND = 5
MOST_LINES = 60
"""Of today's note: one or two messages; the rest is in the file."""

NOTHING_TODAY = "Nothing was noted today."
NOT_FOUND = "Nothing in the memory fits that."


async def undo(order: Order) -> Answer:
    notes = (await order.agent()).memory
    words, code = taken_back(await notes.undo(scope=order.scope, by=order.turn))
    return Answer(words, code, noted=0 if code else -1)


async def memory(order: Order) -> Answer:
    verb, _, words = order.given.words.partition(" ")
    match verb.casefold():
        case "today" if not words.strip():
            return await _today(order)
        case "search" if words.strip():
            return await _search(order, words)
        case other:
            meant = closest(other, ["today", "search"]) if other else None
            hint = f" Did you mean /memory {meant}?" if meant and meant != other else ""
            return Answer(f"Say /memory today, or /memory search and what to look for.{hint}", UsageError.exit_code)


async def _today(order: Order) -> Answer:
    agent = await order.agent()
    path = f"{order.scope.notes}{agent.clock().astimezone(agent.zone()):%Y-%m-%d}.md"
    excerpt = await agent.memory.get(path, scope=order.scope, lines=1)
    start = max(1, excerpt.total - MOST_LINES + 1)
    excerpt = await agent.memory.get(path, scope=order.scope, start=start, lines=MOST_LINES)
    if not excerpt.text.strip():
        return Answer(NOTHING_TODAY)
    above = f"({start - 1} lines before these are in {path}.)\n\n" if start > 1 else ""
    return Answer(above + excerpt.text)


async def _search(order: Order, words: str) -> Answer:
    agent = await order.agent()
    result = await agent.memory.search(words, scope=order.scope, limit=MOST_FOUND)
    found = bullets([_quote(hit) for hit in result.hits]) if result.hits else NOT_FOUND
    amiss = [f"({warning})" for warning in result.warnings] if order.is_private else []
    return Answer("\n\n".join([found, *amiss]), 0 if result.hits else 1)


def _quote(hit: Hit) -> str:
    return f"{' '.join(hit.text.split()).removeprefix('- ')} ({hit.citation})"
