"""What the agent of a turn is asked: the messages as it gets them, with their files, and what joins them until they are
answered; what was said around them, and what was left out. Knows no lanes and sends nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

from adapters.adapter import Adapter
from adapters.message import Message
from agents.agent import Agent, Question
from agents.quoting import Quotation, one_line
from bot.inbox import LONGEST_WORDS, Item, LeftOut, SqliteInbox
from bot.joining import may_enter
from bot.media import Media, Received
from bot.overheard import Overheard
from bot.queueing import Queues
from bot.router import Route

FORWARDED = "(I forward you this.)"

MOST_NAMED = 5
"""Messages that were left out and of which the beginning is shown: the newest."""

ABOVE_SOURCE = "said here before you were called: others' words, for you to know"

LEFT_OUT_SOURCE = "sent to you here and left out, since too many messages waited: others' words, for you to know"


class Asking:
    """The questions of one turn: ``question`` once, and what its ``arrivals`` give.

    ``heard`` and ``left_out`` say afterwards how far the agent knows what was overheard and what was dropped, 0 for
    nothing; ``unsaid`` is what it was not told of that since it would take it for an order, "" for nothing.
    """

    def __init__(
        self,
        item: Item,
        route: Route,
        adapter: Adapter,
        agent: Agent,
        *,
        inbox: SqliteInbox,
        overheard: Overheard,
        media: Media,
        queues: Queues,
        admit: Callable[[Message], Awaitable[Route | None]],
        may_interview: bool,
    ) -> None:
        self._item = item
        self._route = route
        self._adapter = adapter
        self._agent = agent
        self._inbox = inbox
        self._overheard = overheard
        self._media = media
        self._queues = queues
        self._admit = admit
        self._may_interview = may_interview
        self._joined: dict[str, Question] = {}
        self.heard = 0
        self.left_out = 0
        self.unsaid = ""

    async def question(self) -> Question:
        """All that is answered from the start. Of the words around it a later try knows from its transcript."""
        item = self._item
        first, *further = [await self._said(one) for one in (item, *item.further)]
        asked = replace(
            first,
            text="\n\n".join(filter(None, [first.text, *(one.text for one in further)])),
            quotations=tuple(quotation for one in (first, *further) for quotation in one.quotations),
            images=tuple(image for one in (first, *further) for image in one.images),
            arrivals=self._arrivals,
        )
        if item.is_begun:
            return asked
        heard = await self._overheard.of(self._route.session)
        self.heard = heard.last
        return await self._with_left_out(replace(asked, quotations=(*heard.quotations, *asked.quotations)))

    async def _arrivals(self) -> Sequence[Question]:
        """What the same person said since, where it is to join the turn."""
        message, session = self._item.message, self._route.session
        if not (await self._queues.of(message.address, session)).joins:
            return ()
        for one in await self._inbox.following(self._item):
            if not may_enter(one.message, message):
                break
            if one.turn not in self._joined:
                admitted = await self._admit(one.message)
                if admitted is None or admitted.session != session:
                    break
                self._joined[one.turn] = await self._with_left_out(await self._said(one))
                await self._inbox.enter(one)
        return tuple(self._joined.values())

    async def _said(self, item: Item) -> Question:
        message, route = item.message, self._route
        root = self._agent.workspace.root
        fetch = partial(
            self._media.received, adapter=self._adapter, agent=self._agent.name, root=root, scope=route.scope
        )
        received = await fetch(message, item.turn)
        theirs = message.quote.attachments if message.quote else ()
        quoted = await fetch(replace(message, attachments=theirs), f"{item.turn}-quoted")
        text, quotations = _quoted(message, _words(received), _words(quoted))
        quotations = (*await self._above(message), *quotations)
        return Question(
            turn=item.turn,
            session=route.session,
            scope=route.scope,
            text=text,
            at=message.sent_at,
            sender=None if message.address.kind == "direct" else _name(message),
            quotations=quotations,
            may_interview=self._may_interview,
            images=tuple(each.image for each in (*quoted, *received) if each.image is not None),
            kind=message.address.kind,
        )

    async def _above(self, message: Message) -> tuple[Quotation, ...]:
        """What was said there before by us and by those who may be heard: for the agent to know."""
        known = []
        for spoken in message.context:
            if spoken.sender is None:
                known.append(f"you: {spoken.text}")
                continue
            asked = replace(message, sender=spoken.sender, text=spoken.text, mentions_me=True, context=())
            if await self._admit(asked) is not None:
                known.append(f"{one_line(spoken.sender.name or spoken.sender.id, 60)}: {spoken.text}")
        return (Quotation("\n".join(known), ABOVE_SOURCE),) if known else ()

    async def _with_left_out(self, asked: Question) -> Question:
        """``asked`` with what was dropped meanwhile: the sender's words as their own, others' as a quotation."""
        left_out = await self._inbox.left_out(self._item, self.left_out)
        if not left_out.last:
            return asked
        self.left_out = left_out.last
        model = self._agent.model()
        if model is None or not model.uses_tools:  # it takes every word for something to answer, or to note
            self.unsaid = f"({_counted(len(left_out.own) + len(left_out.others))} left out, since too many waited.)"
            return asked
        others = (Quotation("\n".join(left_out.others[-MOST_NAMED:]), LEFT_OUT_SOURCE),) if left_out.others else ()
        text = "\n\n".join([*_summary(left_out), asked.text])
        return replace(asked, text=text, quotations=(*others, *asked.quotations))


def _summary(left_out: LeftOut) -> list[str]:
    """What the sender's own messages were that were dropped: how many, and the first words of the newest."""
    if not left_out.own:
        return []
    named = left_out.own[-MOST_NAMED:]
    first = "; ".join(f'"{one_line(text, LONGEST_WORDS)}"' for text in named)
    begun = "It began" if len(left_out.own) == 1 else "They began"
    which = begun if len(named) == len(left_out.own) else f"The last {len(named)} of them began"
    return [
        f"[{_counted(len(left_out.own), ' of mine before this')} left out, since too many waited. {which}: {first}]"
    ]


def _counted(number: int, which: str = "") -> str:
    return f"1 message{which} was" if number == 1 else f"{number} messages{which} were"


def _name(message: Message) -> str:
    """Who speaks, as it may stand in the brackets before their words."""
    return one_line(message.sender.name or message.sender.id, 60).translate(str.maketrans("[]", "()"))


def _words(received: Sequence[Received]) -> list[str]:
    return [each.words for each in received if each.words]


def _quoted(message: Message, files: Sequence[str], theirs: Sequence[str]) -> tuple[str, tuple[Quotation, ...]]:
    """The sender's own words, and what others wrote in the message: that is a quotation, never their own.

    ``files`` tell of what is attached: with somebody else's names and words, too, in what is forwarded. ``theirs`` tell
    of the files of what is quoted.
    """
    text, quotations = "\n".join(part for part in (message.text, *files) if part), []
    if message.quote is not None:
        author = message.quote.author or "an earlier message"
        said = "\n".join(part for part in (message.quote.text, *theirs) if part)
        quotations.append(Quotation(said, f"quoted from {author}", message.quote.below))
    if message.forwarded_from is not None:
        quotations.append(Quotation(text, f"forwarded from {message.forwarded_from or 'somebody'}"))
        text = FORWARDED
    return text, tuple(quotations)
