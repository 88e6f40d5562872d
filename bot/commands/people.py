"""The owner's commands about who may talk: pairing, accounts and groups."""

from __future__ import annotations

from bot.commands.order import Answer, Order
from bot.errors import UsageError


async def pair(order: Order) -> Answer:
    return Answer(await order.admission.waiting())


async def approve(order: Order) -> Answer:
    return _decided(await order.admission.approve(order.given.words))


async def allow(order: Order) -> Answer:
    return _decided(await order.admission.allow(order.given.words, order.message.address))


async def deny(order: Order) -> Answer:
    return _decided(await order.admission.deny(order.given.words, order.message.address))


def _decided(said: tuple[str, bool]) -> Answer:
    words, is_done = said
    return Answer(words, 0 if is_done else UsageError.exit_code)
