"""HTTP to a model server on aiohttp: a session that leads nowhere else, and what went wrong as a ``Failed``.

What is asked and how an answer is read is its callers'. Knows no provider's table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents import failures
from agents.model import Failed

if TYPE_CHECKING:
    import aiohttp

    from agents.failures import Endpoint

CONNECT_SECONDS = 10.0

_LONGEST_ERROR = 64 * 1024
"""Bytes of an error's body that are read."""


def session(
    endpoint: Endpoint, *, accept: str, total: float | None = None, silence: float | None = None
) -> aiohttp.ClientSession:
    """A session with the key of ``endpoint``, to be made where the loop that it belongs to is running.

    ``total`` bounds a whole call and ``silence`` the time in which a server says nothing, in seconds; None for no
    bound. Post with ``allow_redirects=False``: a redirect would turn the POST into a GET, and could carry the key to
    another host.
    """
    import aiohttp

    headers = {"Accept": accept, "User-Agent": "limpet"}
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    return aiohttp.ClientSession(
        headers=headers,
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=total, connect=CONNECT_SECONDS, sock_read=silence),
        trust_env=not endpoint.is_local,  # a proxy is on the way to the network, not to this machine
    )


async def beginning(response: aiohttp.ClientResponse, most: int = _LONGEST_ERROR) -> bytes:
    """The first bytes of a body, about ``most`` of them."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) >= most:
            break
    return bytes(body)


async def refusal(endpoint: Endpoint, response: aiohttp.ClientResponse, wanted: str) -> Failed:
    """What an answer that is no success means; ``wanted`` is what should have come ("chat completion")."""
    body = await beginning(response)
    if response.status < 400:
        return failures.not_an_api(endpoint, response.status, wanted)
    return failures.answered_with(endpoint, response.status, body, response.headers)


def failure(endpoint: Endpoint, error: Exception, *, too_slow: str, begun: bool = False) -> Failed:
    """What an ``aiohttp.ClientError``, TimeoutError or OSError means.

    ``too_slow`` is what a timeout says, as a clause; ``begun``: something of the answer was there already.
    """
    import aiohttp

    if isinstance(error, aiohttp.InvalidURL):
        return Failed("refused", f"base_url under [models] is no URL: {endpoint.url!r}.")
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return failures.unreachable(endpoint, f"no connection within {CONNECT_SECONDS:g} seconds")
    if isinstance(error, TimeoutError):
        return failures.broken_off(endpoint, too_slow)
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return failures.unreachable(endpoint, f"its certificate is not valid: {error.certificate_error}")
    if isinstance(error, aiohttp.ClientConnectorError):
        return failures.unreachable(endpoint, _reason(error.os_error))
    return failures.broken_off(endpoint, "the connection ended" if begun else "it gave no answer")


def _reason(error: OSError) -> str:
    """What the system said, without the address that the message names anyway."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return error.strerror or str(error) or type(error).__name__
