"""What a person sees of events in an order that a hub is hard to bring to."""

from __future__ import annotations

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.adapter import TurnReport
from adapters.terminal.console import _Tally
from adapters.terminal.link import ulid
from adapters.terminal.screen import NOT_SENT, Json, Live, Plain, Screen, Terminal, Turn
from adapters.terminal.wire import Answer, Failure, Ready
from adapters.terminal.wrapping import Flow, wrapped


def on_one_stream(*, tty: bool, color: bool = False) -> tuple[Terminal, io.BytesIO]:
    both = io.BytesIO()
    return Terminal(io.BytesIO(), both, both, tty, tty, tty, color), both


def test_a_notice_in_mid_line_has_its_own_line_and_the_stream_goes_on() -> None:
    terminal, both = on_one_stream(tty=True)
    live = Live(terminal)
    live.delta("Let me look.")
    live.notice("remembered: likes tea")
    live.delta("It is Biscuit")
    live.answer(Answer("It is Biscuit.", "01", "k"), ours=True)
    assert both.getvalue().decode() == ("Let me look.\nremembered: likes tea\nIt is Biscuit\nIt is Biscuit.\n"), (
        "the stream lacked its end, so the answer is shown whole"
    )


@pytest.mark.parametrize(
    ("deltas", "answer", "shown"),
    [
        (("It is ", "Biscuit"), "It is Biscuit", "It is Biscuit\n"),
        (("It is ",), "It is Biscuit", "It is Biscuit\n"),
        ((), "It is Biscuit\n", "It is Biscuit\n"),
        (("Let me look.\n\n", "Biscuit\n"), "Biscuit", "Let me look.\n\nBiscuit\n"),
        (("It was Rex",), "It is Biscuit", "It was Rex\nIt is Biscuit\n"),
    ],
)
def test_an_answer_is_never_shown_twice(deltas: tuple[str, ...], answer: str, shown: str) -> None:
    terminal, both = on_one_stream(tty=True)
    live = Live(terminal)
    for delta in deltas:
        live.delta(delta)
    live.answer(Answer(answer, "01", "k"), ours=True)
    assert both.getvalue().decode() == shown


def test_a_stream_that_a_break_cut_is_shown_afresh() -> None:
    terminal, both = on_one_stream(tty=True)
    live = Live(terminal)
    live.delta("It is Bis")
    live.notice("lost")
    live.notice("back")
    live.answer(Answer("It is Biscuit", "01", "k"), ours=True)
    assert both.getvalue().decode() == "It is Bis\nlost\nback\nIt is Biscuit\n"


def test_a_foreign_answer_says_whose_it_is() -> None:
    terminal, both = on_one_stream(tty=True)
    live = Live(terminal)
    live.waiting()
    live.answer(Answer("42", "00", "a"), ours=False)
    live.answer(Answer("43", "00", "b", late=True), ours=False)
    live.answer(Answer("Time for tea.", None, "c", late=True), ours=False)
    live.answer(Answer("44", "00", "d", late=True, question="And\x1b one more?"), ours=False)
    assert both.getvalue().decode() == (
        "…\r \rfor another terminal:\n42\nwhile you were away:\n43\nTime for tea.\n"
        'while you were away, to "And one more?":\n44\n'
    )


def test_the_dots_come_back_below_a_notice() -> None:
    terminal, both = on_one_stream(tty=True, color=True)
    live = Live(terminal)
    live.waiting()
    live.notice("retry 1/3")
    live.failure(Failure("No model.", 75))
    dots = "\x1b[2m…\x1b[0m"
    assert both.getvalue().decode() == f"{dots}\r \r\x1b[2mretry 1/3\x1b[0m\n{dots}\r \rNo model.\n"


def test_a_terminal_behind_standard_error_gets_no_control_characters() -> None:
    terminal, both = on_one_stream(tty=True, color=True)
    plain = Plain(terminal)
    plain.notice("a\x1b]0;t\x07")
    plain.failure(Failure("b\x1b[2J", 1))
    assert both.getvalue().decode() == "\x1b[2ma]0;t\x1b[0m\nb[2J\n"


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("one two three", 0, "one two three"),
        ("one two three", 7, "one two\nthree"),
        ("one  two\n\n  three", 80, "one  two\n\n  three"),
        ("我的狗 叫饼干 它很好", 14, "我的狗 叫饼干\n它很好"),
        ("see /a/very/long/path/that/fits/nowhere now", 10, "see\n/a/very/long/path/that/fits/nowhere\nnow"),
        ("Get one: limpet models pull it. Then talk.", 26, "Get one:\nlimpet models pull it.\nThen talk."),
        ("Get one: limpet models pull it", 12, "Get one:\nlimpet\nmodels pull\nit"),
        ("", 10, ""),
    ],
)
def test_lines_break_between_words(text: str, columns: int, shown: str) -> None:
    assert wrapped(text, columns) == shown


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("one two three", 0, "one two three"),
        ("one two three", 7, "one two\nthree"),
        ("one  two\n\n  three", 80, "one  two\n\n  three"),
        ("- a b c d\n- e", 5, "- a b\nc d\n- e"),
        ("我的狗叫饼干，它很好。", 10, "我的狗叫饼\n干，它很\n好。"),
        ("see /a/long/path/that/fits/nowhere now", 10, "see\n/a/long/path/that/fits/nowhere\nnow"),
        ("Get it: `limpet models pull it` now", 26, "Get it:\n`limpet models pull it`\nnow"),
        ("Say ` and go on and on", 8, "Say\n` and go\non and\non"),
        (
            "a b\n```sh\nlimpet models pull smollm2\n```\nc d e f",
            5,
            "a b\n```sh\nlimpet models pull smollm2\n```\nc d e\nf",
        ),
        ("| one | two | three |\nfour five", 8, "| one | two | three |\nfour\nfive"),
        ("👩\u200d👧 👩\u200d👧", 3, "👩\u200d👧\n👩\u200d👧"),
        ("", 10, ""),
    ],
)
def test_an_answer_breaks_between_words_however_it_comes(text: str, columns: int, shown: str) -> None:
    for size in (1, 2, 5, 1000):
        flow = Flow()
        pieces = [flow.feed(text[at : at + size], columns) for at in range(0, len(text), size)]
        assert "".join([*pieces, flow.rest(columns)]) == shown, size


@given(st.text(alphabet="ab \n`|-我👧", max_size=80), st.integers(1, 12))
def test_breaking_changes_nothing_but_spaces(text: str, columns: int) -> None:
    flow = Flow()
    shown = flow.feed(text, columns) + flow.rest(columns)
    assert "".join(shown.split()) == "".join(text.split())
    assert shown.count("\n") >= text.count("\n")


def test_words_that_were_not_sent_are_given_back_as_they_were() -> None:
    terminal, both = on_one_stream(tty=True)
    live = Live(terminal)
    live.waiting()
    live.given_back("a  b\n\tc\x1b[2J " + "d" * 200)
    assert both.getvalue().decode() == f"…\r \r{NOT_SENT}\na  b\n\tc[2J {'d' * 200}\n"
    terminal, both = on_one_stream(tty=False)
    Json(terminal).given_back("a\nb")
    assert both.getvalue() == b'{"schema": 1, "not_sent": "a\\nb"}\n'


@pytest.mark.parametrize("screen", [Plain, Json])
def test_only_whole_answers_reach_a_pipe(screen: type[Plain] | type[Json]) -> None:
    terminal, both = on_one_stream(tty=False)
    shown: Screen = screen(terminal)
    shown.waiting()
    shown.delta("It is ")
    assert both.getvalue() == b""


def test_json_has_the_error_beside_an_answer_and_the_model_that_was_meant() -> None:
    terminal, both = on_one_stream(tty=False)
    turn = Turn("01", 0.0, answers=["half", "of it"], failure=Failure("cut", 75))
    Json(terminal).finish(turn, Ready("main", "fake-1"))
    assert both.getvalue().decode() == (
        '{"schema": 1, "answer": "half\\nof it", "agent": "main", "model": "fake-1", "session": null, '
        '"tokens": {"input": null, "output": null}, "cost": null, "memories": [], '
        '"error": {"message": "cut", "code": 75}}\n'
    )


@pytest.mark.parametrize(
    ("environ", "color"), [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)]
)
def test_colour_follows_the_environment(environ: dict[str, str], color: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(io.BytesIO()))
    terminal = Terminal.of_process(environ=environ)
    assert (terminal.color, terminal.stdout_is_tty) == (color, False)
    assert Terminal.of_process(color=False, environ={}).color is False


def test_the_last_line_counts_what_is_known() -> None:
    tally = _Tally()
    tally.add(Turn("01", 0.0, report=TurnReport(1, remembered=1)), 3.6)
    assert str(tally) == "1 turn · 4 s · 1 thing remembered"
    tally.add(Turn("02", 0.0, report=TurnReport(1, cost=0.0041)), 70.0)
    tally.add(Turn("03", 0.0), 0.0)
    assert str(tally) == "3 turns · 1 min 14 s · $0.004 · 1 thing remembered"
    tally.add(Turn("04", 0.0, report=TurnReport(1, remembered=-1)), 9.0, counts=False)
    assert str(tally) == "3 turns · 1 min 14 s · $0.004", "what was taken back is remembered no more"
    tally.add(Turn("05", 0.0, report=TurnReport(1, remembered=-1)), 9.0, counts=False)
    tally.add(Turn("06", 0.0, report=TurnReport(1, remembered=1)), 0.0)
    assert str(tally) == "4 turns · 1 min 14 s · $0.004 · 1 thing remembered", "what was taken back is older than this"


def test_ids_sort_by_time_and_are_as_long_as_ulids() -> None:
    assert ulid(1_469_918_176_385, 0) == "01ARYZ6S410000000000000000"  # the time of the specification's example
    assert ulid(1, (1 << 80) - 1) < ulid(2, 0)
    assert ulid(1 << 48, 1 << 80) == "0" * 26
