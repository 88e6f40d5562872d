"""What a person types: a prompt on a terminal, lines from a pipe, and what a pipe brings beside a question.

The prompt owns the terminal while it is shown; ``aside`` gives it back for a moment, for what arrives meanwhile. Knows
no connection; prompt-toolkit is loaded when the first prompt is made.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, Self

from adapters.terminal.wire import LIMIT

if TYPE_CHECKING:
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.key_binding.key_processor import KeyPress

_CHUNK = 1 << 16

MOST_PIPED = 1 << 18
"""Bytes that a pipe may bring beside a question: some sixty thousand tokens, which few models take."""

_PATIENCE_SECONDS = 2.0
"""How long a pipe may be silent before its reader says what it waits for."""


class InputTooLarge(ValueError):
    """Standard input has more bytes than are taken."""


class Keyboard(Protocol):
    async def line(self) -> str | None:
        """The next message, None at the end of the input (Ctrl-D). May be cancelled."""

    def aside(self) -> AbstractAsyncContextManager[None]:
        """Inside it the screen can be written to while ``line`` is waiting."""

    def meanwhile(self, leave: Callable[[], None], /) -> AbstractContextManager[None]:
        """Inside it nobody waits for ``line``: what is typed is kept for it, and Ctrl-D alone calls ``leave``."""

    @property
    def draft(self) -> str:
        """What was typed and not yet sent when ``line`` was cancelled."""


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

    def meanwhile(self, _leave: Callable[[], None], /) -> AbstractContextManager[None]:
        return contextlib.nullcontext()

    @property
    def draft(self) -> str:
        return ""


def whole_input(stdin: BinaryIO, most: int = LIMIT) -> str:
    """Everything up to the end of ``stdin`` as one message, without its last line end. Blocks.

    Raises InputTooLarge for more than ``most`` bytes, which are read no further.
    """
    data = stdin.read(most + 1)
    if len(data) > most:
        raise InputTooLarge(f"standard input has more than {most:,} bytes")
    return data.decode("utf-8", "replace").removeprefix("\ufeff").removesuffix("\n").removesuffix("\r")


def piped_input(stdin: BinaryIO, waiting: Callable[[], None], most: int = MOST_PIPED) -> str:
    """What a pipe or a file brings beside a question; "" from a terminal and any other device, which are not read.

    Blocks; ``waiting`` is called, in another thread, when nothing has come for a while: a pipe that somebody forgot to
    close is never read to its end. Raises InputTooLarge.
    """
    mode = os.fstat(stdin.fileno()).st_mode
    if stat.S_ISCHR(mode):
        return ""
    reminder = threading.Timer(_PATIENCE_SECONDS, waiting)
    reminder.daemon = True
    reminder.start()
    try:
        return whole_input(stdin, most)
    finally:
        reminder.cancel()


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

    Enter sends, Alt-Enter starts a new line, Tab completes ``commands``, which are words with what they do.
    ``on_interrupt`` is called for Ctrl-C at an empty prompt; elsewhere Ctrl-C clears what was typed. It is used in a
    ``with`` block, in which the terminal keeps what is typed between two prompts without showing it.
    """

    def __init__(
        self, *, history: Path | None, commands: Mapping[str, str], color: bool, on_interrupt: Callable[[], None]
    ) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.output import ColorDepth
        from prompt_toolkit.renderer import CPR_Support

        self._on_interrupt = on_interrupt
        self._draft = ""
        self._session: PromptSession[str] = PromptSession(
            "> ",
            multiline=True,
            prompt_continuation="  ",
            history=_history(history),
            key_bindings=_keys(),
            completer=WordCompleter(list(commands), meta_dict=dict(commands), sentence=True),
            complete_while_typing=False,
            enable_suspend=True,
            color_depth=None if color else ColorDepth.DEPTH_1_BIT,
        )
        # Asked where its cursor is, a slow terminal answers into the next program, and some never do.
        self._session.app.renderer.cpr_support = CPR_Support.NOT_SUPPORTED

    def __enter__(self) -> Self:
        import termios

        descriptor = self._session.input.fileno()
        self._mode = termios.tcgetattr(descriptor)
        _give_each_key(descriptor)
        return self

    def __exit__(self, *_: object) -> None:
        import termios

        termios.tcsetattr(self._session.input.fileno(), termios.TCSADRAIN, self._mode)

    async def line(self) -> str | None:
        from prompt_toolkit.patch_stdout import patch_stdout

        self._draft = ""
        while True:
            try:
                with patch_stdout(raw=True):  # what others print meanwhile (a log line) goes above the prompt
                    return await self._session.prompt_async(handle_sigint=False)
            except asyncio.CancelledError:
                self._draft = self._session.default_buffer.text
                raise
            except EOFError:
                return None
            except KeyboardInterrupt:
                if not self._session.default_buffer.text:
                    self._on_interrupt()

    def aside(self) -> AbstractAsyncContextManager[None]:
        from prompt_toolkit.application import in_terminal

        return in_terminal()

    @contextlib.contextmanager
    def meanwhile(self, leave: Callable[[], None]) -> Iterator[None]:
        from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
        from prompt_toolkit.keys import Keys

        source, output = self._session.input, self._session.output
        early: list[KeyPress] = get_typeahead(source)

        def hear() -> None:
            for key in source.read_keys():
                if key.key is Keys.ControlD and not early:
                    leave()
                elif key.key is not Keys.CPRResponse:
                    early.append(key)

        _give_each_key(source.fileno())  # said anew: a shell that we were suspended to has its own mind about it
        with source.attach(hear):
            output.enable_bracketed_paste()  # else each line that is pasted would be a message
            output.flush()
            try:
                yield
            finally:
                output.disable_bracketed_paste()
                output.flush()
                store_typeahead(source, early)

    @property
    def draft(self) -> str:
        return self._draft


def _give_each_key(descriptor: int) -> None:
    """The terminal gives each key at once and shows none; Ctrl-C stays a signal."""
    import termios

    mode = termios.tcgetattr(descriptor)
    mode[0] &= ~termios.ICRNL  # else Enter would come as Ctrl-J
    mode[3] &= ~(termios.ICANON | termios.ECHO)
    mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
    termios.tcsetattr(descriptor, termios.TCSANOW, mode)


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
