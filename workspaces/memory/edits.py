"""What an edit of a Markdown file is, and where in a text it belongs. Pure: knows no disk and no scope.

The text of a file is kept exactly: line ends, byte order mark and bytes that are no text come out as they went in. A
text is looked for as it is shown, with any line ends and indentation; an edit replaces whole lines, so that it can be
found again, and taken back, after a person has edited the lines around it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from workspaces import files
from workspaces.memory.errors import NotOnePlace, WriteRefused
from workspaces.memory.history import Write

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_END = re.compile(r"\r\n|\r|\n")
_ITEM = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_LABEL = re.compile(_ITEM.pattern + r"(?:\[[ xX]\][ \t]+)?(?:\d\d:\d\d[ \t]+)?")
"""What comes before the words of a bullet: its marker, a box, the time of a note."""

_BETWEEN_LINES = r"[ \t]*(?:\r\n|\r|\n)[ \t]*"
_UNREADABLE = "[\ufffd\0\udc80-\udcff]{1,3}"
"""What is shown as one U+FFFD: a NUL, or up to three bytes that are no UTF-8."""

_CONTEXT = 3
"""Lines on each side by which an edit is found again."""

_LONGEST_CONTEXT = 200
"""Characters of each that are compared."""

_SHOWN = 120
"""Characters of a line in a message."""


@dataclass(frozen=True, slots=True)
class Content:
    """A file as text. ``tail`` is the odd byte at the end of broken UTF-16; ``new``: there is no such file."""

    text: str = ""
    encoding: str = "utf-8"
    mark: bytes = b""
    tail: bytes = b""
    new: bool = False

    @classmethod
    def decoded(cls, data: bytes) -> Content:
        encoding = files.encoding(data)
        if encoding == "utf-8":
            mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
            return cls(data[len(mark) :].decode("utf-8", "surrogateescape"), encoding, mark)
        whole = len(data) - len(data) % 2
        return cls(data[2:whole].decode(encoding, "surrogatepass"), encoding, data[:2], data[whole:])

    def encoded(self) -> bytes:
        return self.mark + self.encode(self.text) + self.tail

    def encode(self, text: str) -> bytes:
        """A part of the text as the bytes it is in the file."""
        return text.encode(self.encoding, "surrogateescape" if self.encoding == "utf-8" else "surrogatepass")

    @property
    def line_end(self) -> str:
        """The one that most lines have."""
        return max(Counter(_END.findall(self.text)).items(), key=lambda found: found[1], default=("\n", 0))[0]

    @property
    def lines(self) -> list[str]:
        """With their ends."""
        return _LINE.findall(self.text)


@dataclass(frozen=True, slots=True)
class Edit:
    """Behind ``at`` characters ``removed`` gives way to ``start`` and ``added``.

    ``start`` is what an addition needs before it: a heading, the end of an unfinished line. ``unlinks``: what is left
    then is nobody's, and the file goes.
    """

    at: int
    removed: str
    added: str
    start: str = ""
    unlinks: bool = False

    def applied(self, content: Content) -> Content:
        text = content.text
        return replace(content, text=text[: self.at] + self.start + self.added + text[self.at + len(self.removed) :])

    def is_addition(self, content: Content) -> bool:
        """Whether nothing but the end of the file changes."""
        return not self.removed and self.at == len(content.text) and not content.tail

    def lines(self, content: Content) -> tuple[int, int]:
        """The first and the last line of what was added, from 1; where it was taken out the last is one less."""
        first = len(_END.findall(content.text[: self.at] + self.start)) + 1
        return first, first + len(_LINE.findall(self.added)) - 1

    def context(self, content: Content) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The lines before and after, without their ends."""
        before = _bare(_LINE.findall(content.text[: self.at] + self.start)[-_CONTEXT:])
        after = _bare(_LINE.findall(content.text[self.at + len(self.removed) :])[:_CONTEXT])
        return tuple(line[:_LONGEST_CONTEXT] for line in before), tuple(line[:_LONGEST_CONTEXT] for line in after)


def shown(text: str) -> str:
    """A part of a file as a reader gets it: LF line ends, U+FFFD for what is no text."""
    return re.sub("[\0\ud800-\udfff]", "\ufffd", _END.sub("\n", text))


def addition(content: Content, heading: str, lines: str) -> Edit:
    """``lines`` at the end, below ``heading`` where there is nothing yet. Both have LF line ends."""
    end = content.line_end
    if content.text:
        last = content.lines[-1]
        start = end if _bare([last]) == [last] else ""
        if last.strip() and not _ITEM.match(last) and not last.startswith((" ", "\t")):
            start += end  # a list is set off from a heading and from prose
    else:
        start = heading
    return Edit(len(content.text), "", lines.replace("\n", end), start)


def replacement(content: Content, path: str, old: str, new: str) -> tuple[Edit, int, int]:
    """The lines around the one place of ``old``, with ``new`` in it; and from where to where in them it differs.

    Raises NotOnePlace.
    """
    places = _places(content.text, old)
    if len(places) != 1:
        raise _not_one(content, path, old, [_line_of(content.text, start) for start, _ in places])
    start, end = places[0]
    starts = _starts(content.lines)
    first = max(at for at in starts[:-1] if at <= start)
    last = min(at for at in starts if at >= end)
    inner = _inside_a_bullet(content.text[first:last], start - first, end - first, new.strip("\n"))
    start, end, inner = _narrowed(content.text, start, end, inner.replace("\n", content.line_end))
    text = content.text[first:start] + inner + content.text[end:last]
    if text == content.text[first:last]:
        raise WriteRefused(f"{path} says that already.")
    return Edit(first, content.text[first:last], text), start - first, start - first + len(inner)


def deletion(content: Content, path: str, text: str) -> Edit:
    """Take out the one line, bullet or run of lines that ``text`` names. Raises NotOnePlace."""
    lines = content.lines
    starts = _starts(lines)
    found = _places(content.text, text)
    runs = {_run(lines, _index(starts, start), _index(starts, max(end - 1, start))) for start, end in found}
    if len(runs) > 1:  # "milk" names "- milk" before "- milk and honey"
        whole = {run for run in runs if _words(_bare(lines[run[0] : run[1]])) == _words(text.split("\n"))}
        runs = whole if len(whole) == 1 else runs
    if len(runs) != 1:
        raise _not_one(content, path, text, [first + 1 for first, _ in runs])
    ((first, last),) = runs
    return Edit(starts[first], content.text[starts[first] : starts[last]], "")


def undone(content: Content, digest: str, write: Write) -> tuple[Edit | None, str]:
    """How ``write`` is taken back from a file with this ``digest``; None, and why, where a person's edit stands."""
    if content.new:
        return None, "The file is gone."
    if write.left == digest:
        return Edit(write.offset, write.start + write.text, write.removed, unlinks=write.new), ""
    return _put_back(content, write) if not write.text else _taken_out(content, write)


def _taken_out(content: Content, write: Write) -> tuple[Edit | None, str]:
    lines, wanted = content.lines, _bare(_LINE.findall(write.text))
    bare, starts = _bare(lines), _starts(lines)
    places = [n for n in range(len(bare) - len(wanted) + 1) if bare[n : n + len(wanted)] == wanted]
    if not places:
        return None, "These lines were changed or removed since."
    first = max(places, key=lambda n: (_fit(bare, n, n + len(wanted), write), -abs(starts[n] - write.offset)))
    last = first + len(wanted)
    if not write.removed and last < len(lines) and lines[last].startswith((" ", "\t")) and bare[last].strip():
        return None, "Something was added to these lines since."
    removed, added = content.text[starts[first] : starts[last]], _ended(content, write.removed)
    if added and last == len(lines) and _bare(lines[-1:]) == lines[-1:]:
        added = _bare([added])[0]
    edit = Edit(starts[first], removed, added)
    left = shown(edit.applied(content).text)
    return replace(edit, unlinks=write.new and left in ("", shown(write.start))), ""


def _put_back(content: Content, write: Write) -> tuple[Edit | None, str]:
    lines, gone = content.lines, _bare(_LINE.findall(write.removed))
    bare, starts = _bare(lines), _starts(lines)
    if any(bare[n : n + len(gone)] == gone for n in range(len(bare))):
        return None, "These lines are there again already."
    fits = [(_fit(bare, n, n, write), -abs(starts[n] - write.offset), n) for n in range(len(bare) + 1)]
    (words, _), _, at = max(fits)
    if not words and any(line.strip() for line in write.before + write.after):
        return None, "The lines around them were changed or removed since."
    added, start = _ended(content, write.removed), ""
    if at == len(lines) and lines and _bare(lines[-1:]) == lines[-1:]:
        added, start = _bare([added])[0], content.line_end
    elif at < len(lines) and _bare([added])[0] == added:
        added += content.line_end
    return Edit(starts[at], "", added, start), ""


def _fit(bare: Sequence[str], first: int, last: int, write: Write) -> tuple[bool, int]:
    """Whether lines with words around a place are as they were around ``write``; how many, an end of the file too."""
    score, words = 0, False
    for here, then in (
        (list(reversed(bare[max(first - _CONTEXT, 0) : first])), list(reversed(write.before))),
        (list(bare[last : last + _CONTEXT]), list(write.after)),
    ):
        same = 0
        for line, was in zip(here, then, strict=False):
            if line[:_LONGEST_CONTEXT] != was:
                break
            same += 1
            words = words or bool(was.strip())
        score += same + (same == len(here) == len(then) < _CONTEXT)
    return words, score


def _ended(content: Content, text: str) -> str:
    """With the line ends of the file, where it has been given others since."""
    ends = set(_END.findall(content.text))
    return text if not ends or ends.issuperset(_END.findall(text)) else _END.sub(content.line_end, text)


def _bare(lines: Sequence[str]) -> list[str]:
    return [line.rstrip("\r\n") for line in lines]


def _starts(lines: Sequence[str]) -> list[int]:
    """Where each line starts, and where the last one ends."""
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    return starts


def _index(starts: Sequence[int], at: int) -> int:
    """The number, from 0, of the line that holds a character."""
    return bisect_right(starts, at) - 1


def _line_of(text: str, at: int) -> int:
    return len(_END.findall(text[:at])) + 1


def _places(text: str, wanted: str) -> list[tuple[int, int]]:
    """Where ``wanted`` stands, overlaps too. Line ends, indentation and unreadable bytes are as a reader sees them."""
    lines = _END.sub("\n", wanted).strip("\n").split("\n")
    if not any(line.strip() for line in lines):
        return []
    parts = [line if n == 0 else line.lstrip(" \t") for n, line in enumerate(lines)]
    parts = [part if n == len(parts) - 1 else part.rstrip(" \t") for n, part in enumerate(parts)]
    pattern = _BETWEEN_LINES.join(re.escape(part).replace("\ufffd", _UNREADABLE) for part in parts)
    return [match.span(1) for match in re.finditer(f"(?=({pattern}))", text)]


def _inside_a_bullet(lines: str, start: int, end: int, new: str) -> str:
    """``new``, its further lines indented where one line of a bullet's words gives way to several."""
    item = _ITEM.match(lines)
    depth = item.end() if item else len(lines) - len(lines.lstrip(" \t"))
    if not depth or start < depth or _END.search(lines[start:end]):
        return new
    indent = " " * depth if item else lines[:depth]
    return re.sub(rf"\n(?=.)(?!{re.escape(indent)})", "\n" + indent, new)


def _narrowed(text: str, start: int, end: int, new: str) -> tuple[int, int, str]:
    """Without what stays as it is at both ends: of that not even the unreadable bytes are touched."""
    while start < end and new and _alike(text[start], new[0]):
        start, new = start + 1, new[1:]
    while start < end and new and _alike(text[end - 1], new[-1]):
        end, new = end - 1, new[:-1]
    return start, end, new


def _alike(there: str, given: str) -> bool:
    return there == given or (given == "\ufffd" and (there == "\0" or "\udc80" <= there <= "\udcff"))


def _run(lines: Sequence[str], first: int, last: int) -> tuple[int, int]:
    """The lines from ``first`` to ``last`` (from 0), with the rest of a bullet they begin or end in; last excluded."""
    if lines[first][0] in " \t" and not _ITEM.match(lines[first]):
        for n in range(first - 1, -1, -1):
            if _ITEM.match(lines[n]) and _indent(lines[n]) < _indent(lines[first]):
                first = n
                break
            if lines[n].strip() and lines[n][0] not in " \t" and not _ITEM.match(lines[n]):
                break
    end = last + 1
    depth = min((_indent(line) for line in lines[first:end] if _ITEM.match(line)), default=None)
    for n in range(end, len(lines)):
        if depth is None or (lines[n].strip() and _indent(lines[n]) <= depth):
            break
        if lines[n].strip():
            end = n + 1
    return first, end


def _indent(line: str) -> int:
    line = line.expandtabs(4)
    return len(line) - len(line.lstrip(" "))


def _words(lines: Sequence[str]) -> str:
    """What a bullet says, without its marker, time and indentation."""
    return _LABEL.sub("", " ".join(line.strip() for line in lines), count=1).strip()


def _not_one(content: Content, path: str, wanted: str, lines: list[int]) -> NotOnePlace:
    """Says which lines hold the text, or are nearest to it."""
    name = repr(wanted if len(wanted) <= _SHOWN else wanted[: _SHOWN - 1] + "…")
    every = _bare(content.lines)
    if content.new:
        return NotOnePlace(f"There is no file {path} yet, so {name} is not in it.", ())
    lines = sorted(set(lines))
    if lines:
        what = f"{name} is in {path} more than once; give more of the text around the one that is meant."
    else:
        lines = _nearest(every, wanted)
        what = f"{name} is not in {path}." + (" The nearest lines:" if lines else "")
    listed = "".join(f"\nL{n}: {shown(every[n - 1])[:_SHOWN]}" for n in lines[:10])
    return NotOnePlace(what + listed, tuple(lines))


def _nearest(lines: Sequence[str], wanted: str) -> list[int]:
    """Up to three lines, from 1, that share most pairs of characters with ``wanted``; none that shares few."""
    pairs = _pairs(wanted)
    found = []
    for n, line in enumerate(lines, 1):
        own = _pairs(line[:1000])
        alike = 2 * len(own & pairs) / (len(own) + len(pairs)) if own and pairs else 0.0
        if alike > 0.25:
            found.append((-alike, n))
    return sorted(n for _, n in sorted(found)[:3])


def _pairs(text: str) -> set[str]:
    words = _LABEL.sub("", text.strip(), count=1).casefold()
    return {words[n : n + 2] for n in range(len(words) - 1)}
