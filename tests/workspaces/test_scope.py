"""Areas of a workspace and who may enter them."""

from __future__ import annotations

import pytest

from workspaces.scope import HOME, SHARED, Level, Scope, area_of


@pytest.mark.parametrize(
    ("path", "area"),
    [
        ("MEMORY.md", HOME),
        ("AGENTS.md", HOME),
        ("memory/2026-11-30.md", HOME),
        ("memory/people/ann.md", HOME),
        ("memory/shared/rules.md", SHARED),
        ("memory/sharedx/rules.md", HOME),
        ("memory/chats/x/MEMORY.md", "chats/x"),
        ("memory/chats/x/2026-11-30.md", "chats/x"),
        ("memory/chatsx/y.md", HOME),
    ],
)
def test_every_path_lies_in_one_area(path: str, area: str) -> None:
    assert area_of(path) == area


def test_home_and_a_chat_share_only_the_shared_folder() -> None:
    home, chat, other = Scope.home(), Scope.chat("x", Level.GUEST), Scope.chat("xy", Level.OWNER)
    assert home.may_read("MEMORY.md")
    assert home.may_write("memory/shared/a.md")
    assert not home.may_read("memory/chats/x/MEMORY.md")
    assert chat.may_read("memory/shared/a.md")
    assert not chat.may_write("memory/shared/a.md")
    assert not chat.may_read("MEMORY.md")
    assert not chat.may_read("memory/2026-11-30.md")
    assert not chat.may_read(other.folder + "MEMORY.md"), "a name that begins like ours is another's"
    assert chat.may_write(chat.notes + "2026-11-30.md")
    assert (home.folder, home.notes, chat.folder) == ("", "memory/", "memory/chats/x/")
