"""Markdown to formatted text: what is shown, how, and that nothing is lost."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.markdown import is_prose, parse, parsed
from adapters.text import FormattedText, sanitize

_SOUP = st.text(
    st.one_of(st.sampled_from("ab1 \n\t*_~#->|[]()!.:<>\\+=`&;\"'/@x日👋"), st.characters(codec=None)), max_size=120
)


def spans(text: FormattedText) -> list[tuple[str, str, str]]:
    return [(span.kind, text.plain[span.start : span.end], span.value) for span in text.spans]


@pytest.mark.parametrize(
    ("markdown", "plain", "expected"),
    [
        ("plain", "plain", []),
        ("__b__ _i_", "b i", [("bold", "b", ""), ("italic", "i", "")]),
        ("**b** *i*", "b i", [("bold", "b", ""), ("italic", "i", "")]),
        ("~~s~~ `c*d*`", "s c*d*", [("strike", "s", ""), ("code", "c*d*", "")]),
        ("a\nb  \nc\\\nd", "a\nb\nc\nd", []),
        ("one\n\n\n\ntwo", "one\n\ntwo", []),
        ("# Title **x**\ntext", "Title x\ntext", [("heading", "Title x", "1"), ("bold", "x", "")]),
        ("a\n---\nb", "a\n——————————\nb", []),
        ("- a\n- b\n  - c\n    d\n\n+ e", "• a\n• b\n  • c\n    d\n\n• e", []),
        ("1. a\n1. b\n1. c", "1. a\n2. b\n3. c", []),
        ("10. a\n9. b", "10. a\n9. b", []),
        ("2) a\n5) b", "2) a\n5) b", []),
        ("- a\n\n  para\n- \n- c", "• a\n\n  para\n• \n• c", []),
        ("```python\nx = 1\n```", "x = 1", [("pre", "x = 1", "python")]),
        ("- a\n  ```\n  code\n    x\n  ```", "• a\ncode\n  x", [("pre", "code\n  x", "")]),
        ("    indented\n      more", "indented\n  more", [("pre", "indented\n  more", "")]),
        ("[l](https://ex.test/a \"t\")", "l", [("link", "l", "https://ex.test/a")]),
        ("![alt](https://ex.test/i.png)", "alt", [("link", "alt", "https://ex.test/i.png")]),
        ("![](https://ex.test/i.png)", "https://ex.test/i.png", [("link",) + ("https://ex.test/i.png",) * 2]),
        ("<https://ex.test/_a_>", "https://ex.test/_a_", [("link",) + ("https://ex.test/_a_",) * 2]),
        ("> q\n> > deep\n\nafter", "q\ndeep\n\nafter", [("quote", "q\ndeep", ""), ("quote", "deep", "")]),
        ("- a\n  > q\n  > - b\n  >   c\n\n  d", "• a\nq\n• b\n  c\n\n  d", [("quote", "q\n• b\n  c", "")]),
        ("1. > q\n2. b", "1.\nq\n2. b", [("quote", "q", "")]),
        ("[![alt](https://i.test/i.png)](https://ex.test)", "alt", [("link", "alt", "https://ex.test")]),
        ("> # H\n> - i", "H\n• i", [("quote", "H\n• i", ""), ("heading", "H", "1")]),
        ("<b>x</b> <!-- c --> <br>", "<b>x</b> <!-- c --> <br>", []),
        ("&lt;b&gt; &copy;", "<b> ©", []),
        (r"\*not\*", "*not*", []),
        ("~~~\ncode\n~~~", "code", [("pre", "code", "")]),
        ("```\nunclosed", "unclosed", [("pre", "unclosed", "")]),
    ],
)  # fmt: skip
def test_shows_what_a_reader_expects(markdown: str, plain: str, expected: list[tuple[str, str, str]]) -> None:
    text = parse(markdown)
    assert text.plain == plain
    assert spans(text) == expected


@pytest.mark.parametrize(
    "markdown",
    [
        "https://ex.test/a_b/x and https://ex.test/c_d/y",
        "https://ex.test/_a_/*b*/~~c~~?x=1&amp;y=2",
        "see (https://en.wikipedia.org/wiki/Foo_(bar)).",
        "http://localhost:8080/_x_ and https://[::1]/_y_",
    ],
)
def test_a_bare_url_is_left_alone(markdown: str) -> None:
    """G-FMT-01"""
    text = parse(markdown)
    assert text.plain == markdown
    assert {kind for kind, _, _ in spans(text)} <= {"link"}
    assert all(shown == target for _, shown, target in spans(text))


def test_a_bare_url_ends_where_the_sentence_goes_on() -> None:
    text = parse("**https://ex.test/a_b**, (https://ex.test/w_(x)) https://ex.test/c。然后 https://ex.test/d?")
    links = [target for kind, _, target in spans(text) if kind == "link"]
    assert links == ["https://ex.test/a_b", "https://ex.test/w_(x)", "https://ex.test/c", "https://ex.test/d"]


@pytest.mark.parametrize(
    "text",
    [
        "light.bedroom_lamp state changed",
        "test_1:beta done",
        "std::vector<int:x>",
        "<host:port>",
        "2*3*4 = 24, 2**10",
        "src/**/*.py and lib/**/*.js, a/*.py b/*.js",
        "f(**kwargs) and g(**kw)",
        "foo.*bar and x.*y",
        "__init__.py, a.__dict__, __import__(x), pkg/__main__",
    ],
)
def test_identifiers_are_no_markup(text: str) -> None:
    """G-FMT-02"""
    assert parse(text) == FormattedText(text)


def test_bold_identifier() -> None:
    """G-FMT-03"""
    text = parse("**antique_identifier**")
    assert (text.plain, spans(text)) == ("antique_identifier", [("bold", "antique_identifier", "")])


def test_list_item_and_code_block() -> None:
    """G-FMT-04"""
    text = parse("1. Foo:\n\n```\nBar\n```")
    assert (text.plain, spans(text)) == ("1. Foo:\n\nBar", [("pre", "Bar", "")])


@pytest.mark.parametrize("markdown", ["**bold *both** italic*", "***x***", "*a **b* c**", "~~a *b~~ c*"])
def test_marks_never_cross(markdown: str) -> None:
    """G-FMT-05"""
    assert_nested(parse(markdown))


@given(st.text(st.sampled_from("ab *_~:.“”重"), max_size=40))
@settings(max_examples=500, deadline=None)
def test_no_marks_cross_whatever_the_emphasis(source: str) -> None:
    """G-FMT-05"""
    text = parse(source)
    assert_nested(text)
    assert [char for char in text.plain if char.isalpha()] == [char for char in source if char.isalpha()]


@pytest.mark.parametrize(
    ("markdown", "plain", "bold"),
    [
        ("**Status:**OK", "Status:OK", ["Status:"]),
        ("**你好。**你 **a,**b", "你好。你 a,b", ["你好。", "a,"]),
        ("这是**“重点”**内容", "这是“重点”内容", ["“重点”"]),
        ("see**(this)**now", "see(this)now", ["(this)"]),
        ("run**`x`**now", "runxnow", ["x"]),
        ("***x:***y", "x:y", ["x:"]),
        ("**a:** x:**no**", "a: x:no", ["a:", "no"]),
        ("foo **bar **baz", "foo **bar **baz", []),
    ],
)
def test_bold_beside_a_word_is_bold(markdown: str, plain: str, bold: list[str]) -> None:
    """G-FMT-09: CommonMark takes it for text, and people see stars."""
    text = parse(markdown)
    assert text.plain == plain
    assert [shown for kind, shown, _ in spans(text) if kind == "bold"] == bold


def test_struck_out_beside_a_word() -> None:
    """G-FMT-09"""
    assert spans(parse("~~重点。~~你")) == [("strike", "重点。", "")]


@pytest.mark.parametrize("entity", ["a &amp; b", "a & b"])
def test_an_entity_is_its_character(entity: str) -> None:
    """G-FMT-10"""
    assert parse(entity).plain == "a & b"


def test_a_target_with_brackets() -> None:
    """G-FMT-10"""
    text = parse("[w](https://en.wikipedia.org/wiki/Foo_(bar))")
    assert spans(text) == [("link", "w", "https://en.wikipedia.org/wiki/Foo_(bar)")]


def test_a_link_as_slack_writes_it() -> None:
    """G-FMT-11: models write it in any chat."""
    text = parse("See <https://ex.test/a_b|the *document*> now <a|b>")
    assert text.plain == "See the *document* now <a|b>"
    assert spans(text)[0] == ("link", "the *document*", "https://ex.test/a_b")


def test_commands_of_a_platform_are_text() -> None:
    """G-FMT-12, G-FMT-13: what a platform would make of them is for its renderer to prevent; none is a link."""
    words = "<!channel> hi <@U0001> @everyone <@&123>"
    assert parse(f"{words} [x](!channel)") == FormattedText(f"{words} x (!channel)")


def test_block_quote() -> None:
    """G-FMT-06"""
    text = parse("> a\n> **b**")
    assert (text.plain, spans(text)) == ("a\nb", [("quote", "a\nb", ""), ("bold", "b", "")])


@pytest.mark.parametrize(
    ("markdown", "plain"),
    [
        ("[read me](docs/_a_.md)", "read me (docs/_a_.md)"),
        ("[x](javascript:alert(1))", "x (javascript:alert(1))"),
        ("[dash](http://localhost:3000/a_b)", "dash (http://localhost:3000/a_b)"),
        ("[Ann](tg://user?id=7)", "Ann (tg://user?id=7)"),
        ("[write](mailto:a@ex.test) <b@ex.test>", "write (a@ex.test) b@ex.test"),
        ("[](notes.md)", "notes.md"),
        ("[1]: https://ex.test/a\n[1]", "[1]: https://ex.test/a\n[1]"),
    ],
)
def test_what_no_platform_opens_is_written_out(markdown: str, plain: str) -> None:
    assert parse(markdown).plain == plain


def test_table_is_aligned_by_display_width() -> None:
    table = parse("|Name|Qty|\n|-|-:|\n|**日本**|1|\n|[l](https://ex.test)|10|surplus|\n|x|")
    assert table.plain.split("\n") == [
        "Name                |          Qty",
        "--------------------+-------------",
        "日本                |            1",
        "l (https://ex.test) | 10 | surplus",
        "x                   |",
    ]
    assert spans(table) == [("pre", table.plain, "")]


def test_a_long_cell_does_not_pad_the_others() -> None:
    rows = "".join("|a|\n" for _ in range(500))
    assert len(parse(f"|h|\n|-|\n|{'x' * 20_000}|\n{rows}").plain) < 60_000


@pytest.mark.parametrize(
    ("info", "language"), [("py", "py"), ("python title=x", "python"), ("z" * 33, ""), ("z" * 3000, ""), ("", "")]
)
def test_the_info_string_is_capped(info: str, language: str) -> None:
    """G-SPL-04"""
    assert spans(parse(f"```{info}\ncode\n```")) == [("pre", "code", language)]


def test_nesting_without_end_is_shown_as_it_is() -> None:
    for deep in (">" * 3000 + " end", "- " * 3000 + "end"):
        assert parse(deep).plain == deep


@pytest.mark.parametrize("nothing", [">", "#", "```", "****", "* * *"])
def test_an_answer_that_is_only_markup_is_not_blank(nothing: str) -> None:
    assert parse(nothing)


def test_surrogates_are_mended() -> None:
    """G-SPL-03"""
    assert parse("ok \ud83c\udfa9 **end**").plain == "ok \U0001f3a9 end"
    assert parse("ok \ud83c end").plain == "ok \ufffd end"


@pytest.mark.parametrize(
    "hostile",
    ["[", "![", "*a ", "`a", "<a", "[a](", "a_", "> ", "https://x(", "**a:", "a**“", "<https://a|", "__a", "__a_"],
)
def test_hostile_text_takes_linear_time(hostile: str) -> None:
    began = time.process_time()
    assert parse(hostile * 10_000).plain
    assert time.process_time() - began < 5


def assert_nested(text: FormattedText) -> None:
    ends: list[int] = []
    for span in sorted(text.spans, key=lambda span: (span.start, -span.end)):
        assert 0 <= span.start < span.end <= len(text.plain)
        ends = [end for end in ends if end > span.start]
        assert not ends or span.end <= ends[-1], f"{span} crosses another"
        ends.append(span.end)
        if span.kind in ("pre", "quote"):
            assert span.start == 0 or text.plain[span.start - 1] == "\n", f"{span} begins within a line"
            assert text.plain[span.end : span.end + 1] in ("", "\n"), f"{span} ends within a line"


@given(_SOUP)
@settings(max_examples=300, deadline=None)
def test_any_string_gives_clean_text_and_nested_spans(source: str) -> None:
    text = parse(source)
    assert text.plain == sanitize(text.plain)
    text.plain.encode()
    assert bool(text) == bool(sanitize(source).strip())
    assert_nested(text)


_SAFE, _UNSAFE = "ab1é重٣ .,;:!?'\"()%-", "*_`~[]<>\\&|/#=+\u00a0"
_LINES = st.sampled_from(["", "a", "-", "1", " ", ".", *_UNSAFE]).flatmap(
    lambda mark: st.lists(
        st.tuples(
            st.sampled_from(f"aaa{_SAFE[2:]}{mark}"), st.text(st.sampled_from(_SAFE + mark * 12), max_size=9)
        ).map("".join),
        min_size=1,
        max_size=3,
    )
)


@given(_LINES, st.sampled_from(["\n", "\n\n", "\n\n\n", "  \n"]))
@settings(max_examples=1000, deadline=None)
def test_prose_is_what_the_parser_makes_of_it(lines: list[str], between: str) -> None:
    """It is told apart only to spare the parser: nothing may be shown otherwise than by it."""
    source = sanitize(between.join(lines))
    if is_prose(source):
        assert parsed(source) == FormattedText(source)


@pytest.mark.parametrize("source", ["Yes.", "Settled, then: it is 5 %.", "Eine Zeile\nund (noch) eine.\n\nÄh?"])
def test_what_people_say_is_prose(source: str) -> None:
    assert is_prose(source)


@pytest.mark.parametrize(
    "source", ["1. one", "- one", "a_b_c", "(c)", "a\n- b", "a \nb", " a", "a\n\n\nb", "x://y.zz", "a|b"]
)
def test_what_may_be_markup_is_not(source: str) -> None:
    assert not is_prose(source)


_NO_FENCES = st.one_of(st.sampled_from("ab \n*_#->|!.:<\\+=()日é"), st.characters(exclude_characters="`~&["))


@given(st.text(_NO_FENCES, max_size=120))
@settings(max_examples=300, deadline=None)
def test_every_letter_outside_of_markup_survives(source: str) -> None:
    """Code fences, entities and links, which hide letters on purpose, are left out of the alphabet."""
    letters = [char for char in sanitize(source) if char.isalpha()]
    assert [char for char in parse(source).plain if char.isalpha()] == letters
