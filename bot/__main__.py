"""The entry of `limpet` and `python -m bot`: answers what needs no machinery at once, and hands over the rest."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress

MANY = 3_000
"""New objects until cycles among them are looked for. With the usual 700 all that was imported is gone through again
and again, which takes a twentieth of a start's CPU. With 10,000 a start is no cheaper, and what lies about until then
makes a hub with litellm grow by 5 % in a thousand turns instead of 2."""


_ARENA_MAX = -8
"""The setting of glibc's ``mallopt`` for how many arenas there are."""


def use_one_arena() -> None:
    """Have all threads take memory from one place, as they do on other systems.

    glibc gives several an arena of their own, and what one of them gave back no other takes: 4 MiB of a running hub,
    and over a thousand turns 5 % instead of 3. Python's lock lets one thread run at a time anyway.
    """
    import ctypes

    with suppress(AttributeError, OSError, TypeError):  # no glibc
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def use_one_core() -> None:
    """Have numpy's OpenBLAS begin no threads: there are no products of matrices for them here, and where it is imported
    they spin, for 0.1 s of CPU on two cores."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main() -> None:
    """Run the command line of this process and exit with its code."""
    os.umask(0o077)  # whatever this program makes is its owner's alone
    gc.set_threshold(MANY)
    if sys.stdin is None:  # whoever started us has closed it
        sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115 - it is open for as long as the process is
    try:
        code = run(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:  # while a command was being imported
        print("Interrupted.", file=sys.stderr)  # noqa: T201 - the frame that would say it is not there yet
        code = 130
    except OSError as error:
        from bot.cli.output import note, silence_stdout

        silence_stdout()
        code = 1
        if not isinstance(error, BrokenPipeError):  # `limpet … | head`: nobody wants to hear that nobody reads any more
            note(f"limpet: standard output can't be written: {error.strerror}")
            code = 75
    sys.exit(code)


def run(args: list[str]) -> int:
    """Run one command line (without the program's name); returns the exit code."""
    if args in (["--version"], ["-V"]):  # the two that a person waits for, before anything is read into the words
        return _version()
    if args in (["--help"], ["-h"], ["help"]):
        return _help()
    if args[:2] == ["completion", "--words"]:
        from bot.cli.words import complete

        return _say("\n".join(complete(args[2:])))
    from bot.cli.dispatch import parse, wants_json
    from bot.errors import UsageError

    try:
        line = parse(args, piped=not sys.stdin.isatty())
    except UsageError as error:
        from bot.cli.output import report

        report(error, as_json=wants_json(args))
        return error.exit_code
    if line.words == ["--version"]:
        return _version()
    if line.words == ["--help"]:
        return _help()
    from bot.cli.app import run_command

    use_one_arena()
    use_one_core()
    return run_command(line)


def _version() -> int:
    from bot.version import VERSION

    return _say(f"limpet {VERSION}")


def _help() -> int:
    from bot.cli.help import text

    return _say(text())


def _say(text: str) -> int:
    print(text)  # noqa: T201 - stdout is the product
    return 0


if __name__ == "__main__":
    main()
