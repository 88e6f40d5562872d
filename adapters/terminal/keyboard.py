"""What a person types: a prompt on a terminal, lines from a pipe.

The prompt owns the terminal while it is shown; ``aside`` gives it back for a moment, for what arrives meanwhile. Knows
no connection; prompt-toolkit is loaded when the first prompt is made.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

if TYPE_CHECKING:
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings

_CHUNK = 1 << 16


class Keyboard(Protocol):
    async def line(self) -> str | None:
        """The next message, None at the end of the input (Ctrl-D). May be cancelled."""

    def aside(self) -> AbstractAsyncContextManager[None]:
        """Inside it the screen can be written to while ``line`` is waiting."""


class Pipe:
    """Lines of a pipe or a file, in UTF-8; bad bytes become U+FFFD, a byte order mark is dropped.

    The bytes are read by threads that the end of the process doesn't wait for: a read can't be interrupted otherwise.
    """

    def __init__(self, stdin: BinaryIO) -> None:
        self._descriptor = stdin.fileno()
        self._held = b""
        self._ended = False

    async def line(self) -> str | None:
        while b"\n" not in self._held and not self._ended:
            chunk = await _read(self._descriptor)
            self._ended = not chunk
            self._held += chunk
        if not self._held:
            return None
        line, _, self._held = self._held.partition(b"\n")
        return line.decode("utf-8", "replace").removeprefix("\ufeff").removesuffix("\r")

    def aside(self) -> AbstractAsyncContextManager[None]:
        return contextlib.nullcontext()


def whole_input(stdin: BinaryIO) -> str:
    """Everything up to the end of ``stdin`` as one message, without its last line end. Blocks."""
    text = stdin.read().decode("utf-8", "replace").removeprefix("\ufeff")
    return text.removesuffix("\n").removesuffix("\r")


async def _read(descriptor: int) -> bytes:
    """At least one byte; none at the end, or when the other side is gone."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[bytes] = loop.create_future()

    def settle(chunk: bytes) -> None:
        if not result.done():
            result.set_result(chunk)

    def read() -> None:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except OSError:
            chunk = b""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, chunk)

    threading.Thread(target=read, name="standard input", daemon=True).start()
    return await result


class Prompt:
    """A line editor with a history that is kept in ``history`` (mode 0600; None: for this session only).

    Enter sends, Alt-Enter starts a new line, Tab completes ``commands``. ``on_interrupt`` is called for Ctrl-C at an
    empty prompt; elsewhere Ctrl-C clears what was typed.
    """

    def __init__(
        self, *, history: Path | None, commands: Sequence[str], color: bool, on_interrupt: Callable[[], None]
    ) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.output import ColorDepth

        self._on_interrupt = on_interrupt
        self._session: PromptSession[str] = PromptSession(
            "> ",
            multiline=True,
            prompt_continuation="  ",
            history=_history(history),
            key_bindings=_keys(),
            completer=WordCompleter(list(commands), sentence=True),
            complete_while_typing=False,
            enable_suspend=True,
            color_depth=None if color else ColorDepth.DEPTH_1_BIT,
        )

    async def line(self) -> str | None:
        from prompt_toolkit.patch_stdout import patch_stdout

        while True:
            try:
                with patch_stdout(raw=True):  # what others print meanwhile (a log line) goes above the prompt
                    return await self._session.prompt_async(handle_sigint=False)
            except EOFError:
                return None
            except KeyboardInterrupt:
                if not self._session.default_buffer.text:
                    self._on_interrupt()

    def aside(self) -> AbstractAsyncContextManager[None]:
        from prompt_toolkit.application import in_terminal

        return in_terminal()


def _history(path: Path | None) -> History:
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        path.chmod(0o600)
    except OSError:  # a read-only home: talking works all the same
        return InMemoryHistory()
    return FileHistory(str(path))


def _keys() -> KeyBindings:
    from prompt_toolkit.enums import DEFAULT_BUFFER
    from prompt_toolkit.filters import has_focus
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    keys = KeyBindings()
    at_prompt = has_focus(DEFAULT_BUFFER)

    @keys.add("enter", filter=at_prompt)
    def send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=at_prompt)
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
