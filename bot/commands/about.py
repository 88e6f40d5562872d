"""The commands about the assistant and who talks to it: its state, what it cost today, and who one is to it."""

from __future__ import annotations

from agents.errors import ModelError
from agents.quoting import one_line
from agents.spending import calls, dollars, told
from bot.commands.order import LEVELS, Answer, Order, bullets
from bot.usage import Used
from workspaces.memory import Mode
from workspaces.profile import read_profile
from workspaces.scope import Level

_MODES: dict[Mode, str] = {
    "hybrid": "searched by words and by meaning",
    "keyword": "searched by words only",
    "scan": "read file by file: the index can't be used",
}


async def whoami(order: Order) -> Answer:
    address, sender = order.message.address, order.message.sender
    account, level = f"{address.channel}:{sender.id}", LEVELS[order.scope.level]
    called = await _called(order)
    lines = [f"You are {called} ({account}), {level}." if called else f"You are {level} ({account})."]
    if address.kind != "direct":
        lines.append(f"This is the {address.kind} {address.chat}; what I note here is for all who read it.")
    elif order.scope.is_home and order.scope.level is Level.OWNER:
        lines.append("What you ask me to note goes into the home memory.")
    else:
        lines.append("What you ask me to note is kept for this chat alone.")
    return Answer(" ".join(lines))


async def _called(order: Order) -> str:
    """The sender's name: for the owner the one in USER.md, else as the platform has it; "" where nobody knows it."""
    own = ""
    if order.scope.is_home and order.scope.level is Level.OWNER:
        own = read_profile((await order.agent()).workspace.root).name
    return one_line(own or order.message.sender.name, 60)


async def status(order: Order) -> Answer:
    agent = await order.agent()
    memory = await agent.memory.status()
    code = 0
    try:
        model = agent.model()
        known = model.name if model else "none, I answer from notes only"
    except ModelError as error:
        known, code = f"none can be had: {error}" if order.is_private else "none can be had now", 1
    lines = [f"agent: {order.route.agent}", f"model: {known}", f"memory: {_MODES[memory.mode]}"]
    if order.is_private:
        lines += [f"memory: {warning}" for warning in memory.warnings]
    lines.append(f"session: {order.route.session}")
    return Answer(bullets(lines), code)


async def usage(order: Order) -> Answer:
    """What the models were used for today, and what that cost: this agent first, then the others."""
    own = order.route.agent
    rows = sorted(await order.ledger.used_today(), key=lambda row: row.agent != own)
    if not rows:
        return Answer("No model was asked today.")
    spent, budget = sum(row.cost or 0.0 for row in rows), order.ledger.daily_usd
    of = f" of {dollars(budget)}" if budget is not None else ""
    unknown = sum(row.unpriced for row in rows)
    left_out = f" {calls(unknown).capitalize()} of unknown price not counted." if unknown else ""
    return Answer(f"{bullets([_used(row, own) for row in rows])}\n\nToday {dollars(spent)}{of} are spent.{left_out}")


def _used(row: Used, own: str) -> str:
    whose = "" if row.agent == own else f"{row.agent}, "
    tokens = f"{row.input:,} tokens in, {row.output:,} out"
    return f"{whose}{row.model}: {calls(row.calls)}, {tokens}, cost {told(row.cost, row.unpriced)}"
