"""Bolt between a transport and the intake: it knows Slack's requests by their signature, and answers what is its own.

Whatever is for us is taken before it is answered with 200; what could not be taken gets 503, and no acknowledgement.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from http.client import BAD_REQUEST, SERVICE_UNAVAILABLE
from typing import TYPE_CHECKING, Any

from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse

from adapters.errors import AuthFailed
from adapters.rounds import StoreError

if TYPE_CHECKING:
    from adapters.rounds import Rounds
    from adapters.slack.client import Client
    from adapters.slack.intake import Intake


log = logging.getLogger(__name__)


class Dispatch:
    """For one bot. ``signing_secret`` is "" where nothing is signed, as in Socket Mode."""

    def __init__(self, client: Client, intake: Intake, rounds: Rounds, signing_secret: str = "") -> None:
        self.intake = intake
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Fails with AuthFailed once Slack says that this is the end."""
        self._rounds = rounds
        self._app = AsyncApp(
            client=client.web,
            logger=client.web.logger,
            signing_secret=signing_secret,
            authorize=self._authority(),
            ignoring_self_events_enabled=False,
            attaching_function_token_enabled=False,
            attaching_conversation_kwargs_enabled=False,
        )
        self._app.middleware(self._middleware())

    async def answer(self, body: str | dict[str, Any], headers: Mapping[str, str], *, signed: bool) -> BoltResponse:
        """What to answer to a request of Slack's."""
        mode = "http" if signed else "socket_mode"
        plain: dict[str, str | Sequence[str]] = {**headers}
        try:
            return await self._app.async_dispatch(AsyncBoltRequest(body=body, headers=plain, mode=mode))
        except Exception as error:  # Bolt is strict about the form of what it doesn't need
            log.warning("%s: a request was skipped, it can't be read: %r", self._rounds.name, error)
            return BoltResponse(status=BAD_REQUEST)

    def _middleware(self) -> Any:
        async def take(body: dict[str, Any]) -> BoltResponse:
            try:
                await self.intake.take(body)
            except AuthFailed as error:
                if not self.ended.done():
                    self.ended.set_exception(error)
                return BoltResponse(status=200)
            except StoreError as error:
                self._rounds.failed(error)
                return BoltResponse(status=SERVICE_UNAVAILABLE)
            self._rounds.well(self.intake.name, has_all=False)
            return BoltResponse(status=200)

        return take

    def _authority(self) -> Any:
        """Bolt would ask Slack who we are; that is known. It calls nothing but plain functions, by the names of their
        arguments."""
        me = self.intake.reader.me

        async def known() -> AuthorizeResult:
            return AuthorizeResult(enterprise_id=None, team_id=me.team, bot_user_id=me.id, bot_id=me.bot, bot_token="")

        return known
