"""The commands: one module per noun, each imported only when it is called.

A module ``bot.cli.<noun>`` has either ``app``, a ``typer.Typer`` with one function a verb, or ``command``, a function.
Its line in ``bot.cli.help.COMMANDS`` is all the registration there is. ``ctx.obj`` is the ``Home``; results go through
``bot.cli.output``; what can't be done is raised as a ``BotError``; an exit code other than 0 is returned as an int.
"""
