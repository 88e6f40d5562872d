"""The command tree and what every command has in common: it is loaded by name, run, and its failures are told.

Only the command that is called is imported. Knows no command's content.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

import typer

from bot.cli import output
from bot.cli.dispatch import CommandLine
from bot.errors import BotError, UsageError
from bot.home import Home
from bot.refusals import refusal

_OURS = frozenset({"adapters", "agents", "workspaces"})


def load(name: str) -> Any:
    """The command ``name`` as click sees it: ``app`` or ``command`` of ``bot.cli.<name>``."""
    module = importlib.import_module(f"bot.cli.{name}")
    group: typer.Typer | None = getattr(module, "app", None)
    if group is None:
        single = _typer()
        single.command(name)(module.command)
        return typer.main.get_command(single)
    group.info.name = name
    group.rich_markup_mode = None
    return typer.main.get_group(group)


def run_command(line: CommandLine) -> int:
    """Run one command in this process; returns its exit code, having told whatever went wrong."""
    home = Home.locate()
    if line.config is not None:
        home = home.with_config(line.config)
    _set_colour(line.colour)
    name, *args = line.words
    try:
        command = load(name)
        command.context_settings = {**command.context_settings, "help_option_names": ["-h", "--help"]}
        code = command.main(args, prog_name=f"limpet {name}", standalone_mode=False, obj=home)
        if code == 130:
            output.note("Interrupted.")
        return code if isinstance(code, int) else 0
    except BrokenPipeError:  # told where the streams are closed: nobody reads any more
        raise
    except typer.Abort:
        output.note("Aborted.")
        return 1
    except Exception as error:
        told = _told(error, home)
        output.report(told, as_json=line.as_json)
        return told.exit_code


def _typer() -> typer.Typer:
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def _told(error: Exception, home: Home) -> BotError:
    """``error`` as what a person is told. One that nobody foresaw leaves its traceback in the log."""
    if isinstance(error, BotError):
        return error
    if told := refusal(error, home):
        return told
    if isinstance(error, typer.TyperException):
        context: Any = getattr(error, "ctx", None)  # only usage errors have one
        mend = f"see: {context.command_path} --help" if context is not None else None
        return UsageError(error.format_message().rstrip("."), mend)
    if type(error).__module__.partition(".")[0] in _OURS:  # their messages name what failed and the mend
        return BotError(str(error))
    from bot.logs import record_crash

    crash = record_crash(home, error)
    if os.environ.get("LIMPET_DEBUG"):
        output.note(crash.trace.rstrip())
    kept = f"the traceback is in {crash.file}" if crash.file else "set LIMPET_DEBUG=1 to see the traceback"
    return BotError(f"unexpected {crash.summary}", kept)


def _set_colour(colour: str) -> None:
    """For this process and what it starts: the one switch that every library knows is the environment."""
    if colour == "never":
        os.environ["NO_COLOR"] = "1"
    elif colour == "always":
        os.environ.pop("NO_COLOR", None)
        os.environ["FORCE_COLOR"] = "1"
