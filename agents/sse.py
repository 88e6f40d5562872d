"""Server-sent events out of bytes, as the HTML standard defines them, for any cutting of the bytes.

One leniency: what stands at the end without a closing blank line is still handed out, because some servers close the
connection right after ``[DONE]``. Only ``data`` is kept. Knows nothing of what the data means.
"""

from __future__ import annotations

_BOM = b"\xef\xbb\xbf"


class EventParser:
    """Feed it bytes; it gives the data of each event that they complete."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        """The pieces of the line that has not ended yet."""
        self._data: list[str] = []
        self._is_first_line = True
        self._after_cr = False

    def feed(self, data: bytes) -> list[str]:
        if self._after_cr and data:
            self._after_cr = False
            data = data[1:] if data.startswith(b"\n") else data  # the second half of a CRLF that was cut in two
        events: list[str] = []
        for line in data.splitlines(keepends=True):
            self._line.append(line)
            if line.endswith((b"\n", b"\r")):
                self._end_line(events)
        self._after_cr = data.endswith(b"\r") if data else self._after_cr
        return events

    def end(self) -> list[str]:
        """The data of an event that no blank line closed."""
        events: list[str] = []
        self._end_line(events)
        self._dispatch(events)
        return events

    def _end_line(self, events: list[str]) -> None:
        line = b"".join(self._line).rstrip(b"\r\n")
        self._line.clear()
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            self._dispatch(events)
            return
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" ").decode("utf-8", "replace"))

    def _dispatch(self, events: list[str]) -> None:
        if self._data:
            events.append("\n".join(self._data))
            self._data.clear()
