"""Markdown to formatted text: what a model writes becomes plain text and spans, once, for every channel.

CommonMark with tables and strikethrough, bent where chat differs from a web page: HTML, link reference definitions and
underlined headings stay the text they are, bare URLs are never touched, numbers of a list are kept as written, and
blank lines stay where they were. Whatever is not markup survives. Knows no platform and no length.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING

from adapters.text import FormattedText, Span, SpanKind, sanitize

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_DEEPEST = 50
"""What is nested deeper is an accident or an attack, and the parser would drop it: the text is shown as it is."""

_LONGEST_LANGUAGE = 32
_WIDEST_CELL = 40
"""Terminal columns; a longer cell is not cut, only nothing is padded to its width."""

_BULLET = "• "
_RULE = "—" * 10

_LINKABLE = re.compile(r"https?://(?:[\w-]+\.)+[\w-]+\.?(?::\d{1,5})?(?:[/?#]\S*)?", re.IGNORECASE)
"""Targets that every platform opens. Telegram refuses a whole message for a link to a host without a dot."""

_AUTOLINK = re.compile(r"<(?:https?://|mailto:|[^\s<>:/]+@)", re.IGNORECASE)
_SCHEME = re.compile(r"(?<![a-z0-9.+-])https?$", re.IGNORECASE)
_URL_BREAK = re.compile(r"[\s<>\"`\\，。、；：！？）】」』》”’]")
_CLOSERS = {")": "(", "]": "["}
_NAME = "__[a-z0-9]+(?:_[a-z0-9]+)*__"
_CODE = re.compile(rf"(?<=\d)\*+(?=\d)|(?<=/)\*+(?=[/.])|(?<=[./]){_NAME}|{_NAME}(?=\.\w|\()")
_SLACK_LINK = re.compile(r"<(https?://[^\s<>|]+)\|([^<>|\n]*[^<>|\s])>", re.IGNORECASE)

_AFTER_WORDS = frozenset("`.,:;!?…%)]}\"'”’»。，、：；！？）】」』》")
_BEFORE_WORDS = frozenset("`([{\"'“‘«（【「『《¿¡")
"""Punctuation that belongs to the words inside of ``**`` marks, though CommonMark takes it for the end of all words."""

_LINE = r"""[^\W\d][\w .,;:!?'"()%-]*+(?<! )"""
_PROSE = re.compile(f"{_LINE}(?:\\n\\n?{_LINE})*+")

_MARKS: dict[str, SpanKind] = {"em": "italic", "strong": "bold", "s": "strike"}


def parse(markdown: str) -> FormattedText:
    """The text that ``markdown`` shows and how to show it; never raises, whatever the string."""
    source = sanitize(markdown)
    return FormattedText(source) if is_prose(source) else parsed(source)


def is_prose(source: str) -> bool:
    """Whether no line of ``source`` can hold markup, as in most of what is said: it is what it shows."""
    return "_" not in source and _PROSE.fullmatch(source) is not None


def parsed(source: str) -> FormattedText:
    """What ``parse`` gives, for any text that is sanitized."""
    tokens = _parser().parse(source)
    if any(token.level >= _DEEPEST - 1 for token in tokens):
        return FormattedText(source)
    page = _Page()
    _write_blocks(page, tokens)
    text = page.text()
    return text if text else FormattedText(source)


@functools.cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": _DEEPEST})
    parser.enable(["table", "strikethrough"])
    parser.disable(["html_block", "html_inline", "reference", "lheading"])
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    parser.inline.ruler.before("escape", "bare_url", _bare_url)
    parser.inline.ruler.before("emphasis", "code", _code)
    parser.inline.ruler.at("emphasis", _emphasis)
    parser.inline.ruler.at("strikethrough", _strikethrough)
    parser.inline.ruler.at("image", _image)
    parser.inline.ruler.at("autolink", _autolink)
    # A target is shown and sent as it was written; what may become a link is decided by _LINKABLE.
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]  # markdown-it's way to set a hook
    parser.normalizeLinkText = lambda link: link  # type: ignore[method-assign]
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005  # takes what may be a link
    return parser


# Rules of the parser ------------------------------------------------------------------------------------------------


def _bare_url(state: StateInline, silent: bool) -> bool:
    """``https://…`` in running text, so that nothing in it is taken for emphasis, an escape or an entity."""
    if not state.src.startswith("://", state.pos):
        return False
    # While a label is only skipped over, nothing is pending and the scheme is read from the source.
    scheme = _SCHEME.search(state.src[max(0, state.pos - 6) : state.pos])
    if scheme is None:
        return False
    start = state.pos - len(scheme[0])
    end = _url_end(state.src, state.pos + 3, state.posMax)
    if end == state.pos + 3:
        return False
    if not silent:
        url = state.src[start:end]
        state.pending = state.pending[: -len(scheme[0])]
        linked = not state.linkLevel
        if linked:
            state.push("link_open", "a", 1).attrs = {"href": url}
        state.push("text", "", 0).content = url
        if linked:
            state.push("link_close", "a", -1)
    state.pos = end
    return True


def _url_end(text: str, start: int, limit: int) -> int:
    """Where the URL ends: at white space, a quote or a bracket it didn't open, without the punctuation after it."""
    stop = _URL_BREAK.search(text, start, limit)
    end = stop.start() if stop else limit
    opened: list[str] = []
    for i in range(start, end):
        if text[i] in "([":
            opened.append(text[i])
        elif text[i] in _CLOSERS and (not opened or opened.pop() != _CLOSERS[text[i]]):
            end = i
            break
    return start + len(text[start:end].rstrip("?!.,:;*_~'|"))


def _code(state: StateInline, silent: bool) -> bool:
    """``2*3*4``, ``2**10``, ``src/**/*.py`` and ``__init__.py``: code that nobody marked as such is no emphasis."""
    code = _CODE.match(state.src, state.pos)
    if code is None:
        return False
    if not silent:
        state.pending += code[0]
    state.pos = code.end()
    return True


def _emphasis(state: StateInline, silent: bool) -> bool:
    from markdown_it.rules_inline import emphasis

    return _marked_run(state, silent, emphasis.tokenize)


def _strikethrough(state: StateInline, silent: bool) -> bool:
    from markdown_it.rules_inline import strikethrough

    return _marked_run(state, silent, strikethrough.tokenize)


def _marked_run(state: StateInline, silent: bool, tokenize: Callable[[StateInline, bool], bool]) -> bool:
    """The parser's own rule, but ``**Status:**OK`` and ``这是**“重点”**内容`` are bold, as they were meant."""
    start, known = state.pos, len(state.delimiters)
    if not tokenize(state, silent):
        return False
    if state.src[start] != "_" and state.pos - start > 1:
        before, after = state.src[start - 1 : start], state.src[state.pos : state.pos + 1]
        for delimiter in state.delimiters[known:]:
            delimiter.close = delimiter.close or (before in _AFTER_WORDS and after.isalnum())
            delimiter.open = delimiter.open or (before.isalnum() and after in _BEFORE_WORDS)
    return True


def _image(state: StateInline, silent: bool) -> bool:
    """An image is a link that is shown by its description."""
    from markdown_it.rules_inline import link

    if not state.src.startswith("![", state.pos):
        return False
    state.pos += 1
    if link(state, silent):
        return True
    state.pos -= 1
    return False


def _autolink(state: StateInline, silent: bool) -> bool:
    """``<https://…>``, ``<name@host>`` and Slack's ``<https://…|label>``, but not ``<host:port>``, which is none."""
    from markdown_it.rules_inline import autolink

    if link := _SLACK_LINK.match(state.src, state.pos, state.posMax):
        if not silent:
            state.push("link_open", "a", 1).attrs = {"href": link[1]}
            state.push("text", "", 0).content = link[2]
            state.push("link_close", "a", -1)
        state.pos = link.end()
        return True
    return _AUTOLINK.match(state.src, state.pos) is not None and autolink(state, silent)


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The parser's own rule, but the cells that a row has too many go on in its last one."""
    from markdown_it.rules_block.table import escapedSplit, getLine, table

    known = len(state.tokens)
    if not table(state, start, end, silent):
        return False
    row: list[Token] = []
    for token in state.tokens[known:]:
        if token.type == "tr_open":
            row = []
        elif token.type == "inline":
            row.append(token)
        elif token.type == "tr_close" and row:
            line = getLine(state, (row[0].map or [start])[0]).strip().removeprefix("|").removesuffix("|")
            surplus = escapedSplit(line)[len(row) :]
            row[-1].content = " | ".join([row[-1].content, *(cell.strip() for cell in surplus)])
    return True


# Writing ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Container:
    """A list item (``marker`` is "• " or "3. ") or a block quote (no marker); ``start`` is None until it is shown."""

    lines: Sequence[int]
    marker: str = ""
    start: int | None = None


@dataclass(slots=True)
class _Page:
    """The plain text as it grows; ``line`` is the source line after the last block written."""

    pieces: list[str] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    containers: list[_Container] = field(default_factory=list)
    length: int = 0
    line: int = 0

    def begin(self, lines: Sequence[int], *, alone: bool = False) -> None:
        """Start a block that the source has in ``lines`` [first, end); ``alone`` when nothing may stand before it."""
        if self.length:
            self._put("\n" if lines[0] <= self.line else "\n\n")
        self.line = lines[1]
        indented = self._indented()
        for number, container in enumerate(self.containers):
            is_alone = alone or number < len(self.containers) - len(indented)
            if container.start is None:
                self._put(f"{container.marker.rstrip()}\n" if is_alone and container.marker else container.marker)
                container.start = self.length
            elif not is_alone:
                self._put(" " * len(container.marker))

    def write(self, text: str) -> None:
        """Running text; its further lines stand under the first."""
        if "\n" in text:
            text = text.replace("\n", "\n" + " " * sum(len(c.marker) for c in self._indented()))
        self._put(text)

    def write_block(self, lines: Sequence[int], text: str, language: str = "") -> None:
        """Text that is shown letter by letter, as a ``pre`` block."""
        if text.strip():
            self.begin(lines, alone=True)
            start = self.length
            self._put(text)
            self.span("pre", start, language)

    def leave(self) -> None:
        """The innermost container ends; an item that held nothing still shows its marker."""
        container = self.containers[-1]
        if container.marker and container.start is None:
            self.begin(container.lines)
        self.containers.pop()
        if not container.marker and container.start is not None:
            self.span("quote", container.start)

    def span(self, kind: SpanKind, start: int, value: str = "") -> None:
        if start < self.length:
            self.spans.append(Span(kind, start, self.length, value))

    def text(self) -> FormattedText:
        # The outer of two spans over the same text was closed last.
        spans = self.spans[::-1]
        spans.sort(key=lambda span: (span.start, -span.end))
        return FormattedText("".join(self.pieces), tuple(spans))

    def _indented(self) -> Sequence[_Container]:
        """The containers that a line stands in by its indentation: a quote begins at the start of its lines."""
        quotes = [number for number, container in enumerate(self.containers) if not container.marker]
        return self.containers[quotes[-1] :] if quotes else self.containers

    def _put(self, text: str) -> None:
        self.pieces.append(text)
        self.length += len(text)


@dataclass(slots=True)
class _Numbering:
    """Numbers are shown as they were written, except that a list of nothing but "1." counts."""

    written: str = ""
    shown: str = ""

    def next(self, written: str) -> str:
        self.shown = str(int(self.shown) + 1) if written == self.written else written
        self.written = written
        return self.shown


def _write_blocks(page: _Page, tokens: Iterable[Token]) -> None:
    numbering: list[_Numbering] = []
    tokens = iter(tokens)
    for token in tokens:
        lines = token.map or (page.line, page.line)
        match token.type:
            case "paragraph_open":
                page.begin(lines)
            case "inline":
                _write_inline(page, token.children or ())
            case "heading_open":
                page.begin(lines)
                start = page.length
                _write_inline(page, next(tokens).children or ())
                page.span("heading", start, token.tag.removeprefix("h"))
            case "fence" | "code_block":
                page.write_block(lines, token.content.removesuffix("\n"), _language(token.info))
            case "table_open":
                page.write_block(lines, _table_text(takewhile(lambda t: t.type != "table_close", tokens)))
            case "hr":
                page.begin(lines)
                page.write(_RULE)
            case "ordered_list_open":
                numbering.append(_Numbering())
            case "ordered_list_close":
                numbering.pop()
            case "list_item_open":
                number = numbering[-1].next(token.info) + token.markup if token.info else ""
                page.containers.append(_Container(lines, f"{number} " if number else _BULLET))
            case "blockquote_open":
                page.containers.append(_Container(lines))
            case "list_item_close" | "blockquote_close":
                page.leave()


def _language(info: str) -> str:
    language = (info.split(maxsplit=1) or [""])[0]
    return language if len(language) <= _LONGEST_LANGUAGE else ""


def _write_inline(page: _Page, tokens: Iterable[Token]) -> None:
    opened: list[tuple[int, int]] = []  # where each open mark began: the length, and the number of pieces
    targets: list[str] = []
    for token in tokens:
        match token.type:
            case "text":
                page.write(token.content)
            case "softbreak" | "hardbreak":
                page.write("\n")
            case "code_inline":
                start = page.length
                page.write(token.content)
                page.span("code", start)
            case "em_open" | "strong_open" | "s_open":
                opened.append((page.length, len(page.pieces)))
            case "em_close" | "strong_close" | "s_close":
                page.span(_MARKS[token.type.removesuffix("_close")], opened.pop()[0])
            case "link_open":
                opened.append((page.length, len(page.pieces)))
                targets.append(str(token.attrs["href"]))
            case "link_close":
                start, first = opened.pop()
                target = targets.pop()
                is_inner = any(map(_LINKABLE.fullmatch, targets))
                _write_target(page, start, "".join(page.pieces[first:]), target, is_inner=is_inner)


def _write_target(page: _Page, start: int, label: str, target: str, *, is_inner: bool) -> None:
    """End a link; the target is shown where there is no label, or nothing that a platform would open.

    One inside another (a picture that is a link) is none: no platform nests them.
    """
    linkable = _LINKABLE.fullmatch(target)
    shown = target.removeprefix("mailto:")
    if not label.strip():
        page.write(shown)
    elif shown and not linkable and label not in (shown, target):
        page.write(f" ({shown})")
    if linkable and not is_inner:
        page.span("link", start, target)


def _table_text(tokens: Iterable[Token]) -> str:
    """The rows of a table as lines of aligned columns; a row has as many cells as the header."""
    import wcwidth

    pad = {"text-align:right": wcwidth.rjust, "text-align:center": wcwidth.center}
    rows: list[list[str]] = []
    columns = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "th_open":
            columns.append(pad.get(str(token.attrs.get("style")), wcwidth.ljust))
        elif token.type == "inline":
            rows[-1].append(_cell(token))
    widths = [min(max(map(wcwidth.width, cells)), _WIDEST_CELL) for cells in zip(*rows, strict=True)]
    lines = [
        " | ".join(justify(cell, width) for justify, cell, width in zip(columns, row, widths, strict=True)).rstrip()
        for row in rows
    ]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join(lines)


def _cell(token: Token) -> str:
    """The text of a cell, its links spelled out: a ``pre`` block can hold none."""
    page = _Page()
    _write_inline(page, token.children or ())
    text = page.text()
    plain = text.plain
    for span in sorted(text.spans, key=lambda span: span.end, reverse=True):
        if span.kind == "link" and text.plain[span.start : span.end] != span.value:
            plain = f"{plain[: span.end]} ({span.value}){plain[span.end :]}"
    return plain
