"""``limpet agents``: who there is, one more, and a made one that stands on its own."""

from __future__ import annotations

from tests.bot.cli.conftest import Limpet, Outcome
from workspaces.workspace import Workspace, furnished

SETTINGS = """
[templates.support]
[channels.telegram]
token = "123456:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
[[bindings]]
template = "support"
channel = "telegram"
"""
MADE = "support/telegram/telegram/direct/5"


def make(limpet: Limpet) -> None:
    limpet.home.config.write_text(SETTINGS, "utf-8")
    Workspace.made_from(furnished(limpet.home.templates / "support"), limpet.home.workspace(MADE))


def checked(limpet: Limpet, binding: str) -> Outcome:
    """What is said of the settings with ``binding`` in the place of theirs."""
    limpet.home.config.write_text(SETTINGS.partition("[[bindings]]")[0] + f"[[bindings]]\n{binding}\n", "utf-8")
    return limpet("config", "check")


def test_all_are_shown_with_where_they_come_from(limpet: Limpet) -> None:
    make(limpet)
    listed = limpet("agents", "list", "--json").data
    assert [(row["agent"], row["origin"]) for row in listed["agents"]] == [
        ("main", "settings"),
        (MADE, "made from support"),
    ]
    assert MADE in limpet("agents", "list").out
    limpet.home.config.write_text("", "utf-8")
    assert "which is no template any more" in limpet("agents", "list").out


def test_one_more_is_declared_and_an_old_name_is_refused(limpet: Limpet) -> None:
    said = limpet("agents", "add", "garden", "--model", "ollama/qwen3:4b")
    assert said.code == 0
    assert "limpet chat --agent garden" in said.out
    assert limpet("config", "get", "agents.garden.model").out == "ollama/qwen3:4b\n"
    again = limpet("agents", "add", "garden")
    assert again.code == 2
    assert "is an agent already" in again.err
    assert limpet("agents", "add", "Garden Shed").code == 2
    assert limpet("agents", "add", "shed").code == 0
    assert [row["agent"] for row in limpet("agents", "list", "--json").data["agents"]] == ["main", "garden", "shed"]


def test_what_is_ejected_has_its_own_files(limpet: Limpet) -> None:
    make(limpet)
    folder = limpet.home.workspace(MADE)
    (limpet.home.templates / "support" / "SOUL.md").write_text("the template's soul", "utf-8")
    assert limpet("agents", "eject", MADE, "--json").data["copied"] == [
        "AGENTS.md",
        "SOUL.md",
        "IDENTITY.md",
        "USER.md",
        "TOOLS.md",
    ]
    assert (folder / "SOUL.md").read_text("utf-8") == "the template's soul"
    assert "already" in limpet("agents", "eject", MADE).out
    assert "made from no template" in limpet("agents", "eject", "main").err
    unknown = limpet("agents", "eject", MADE[:-1] + "6")
    assert unknown.code == 2
    assert MADE in unknown.err


def test_the_memory_of_a_made_one_can_be_read_and_no_folder_is_made_for_a_typo(limpet: Limpet) -> None:
    make(limpet)
    folder = limpet.home.workspace(MADE)
    assert limpet("memory", "path", "--agent", MADE).out == f"{folder}\n"
    typo = limpet("memory", "path", "--agent", f"{MADE}0")
    assert typo.code == 2
    assert not limpet.home.workspace(f"{MADE}0").exists()


def test_a_binding_that_is_wrong_says_so(limpet: Limpet) -> None:
    wrong = {
        'template = "support"': "template says nothing without channel",
        'agent = "main"\ntemplate = "support"\nchannel = "telegram"': "only one can answer",
        'agent = "main"\nper = "sender"': "per says nothing without template",
        'channel = "telegram"': "says nobody who answers",
        'template = "suport"\nchannel = "telegram"': "did you mean",
    }
    for binding, word in wrong.items():
        said = checked(limpet, binding)
        assert said.code == 2, binding
        assert word in said.err, binding


def test_a_binding_that_can_never_match_is_found(limpet: Limpet) -> None:
    hopeless = {
        'agent = "main"\nchannel = "webhook"\nchat = "1"': "nothing connects webhook",
        'agent = "main"\naccount = "telegram"\nchannel = "webhook"': "channels.telegram is telegram",
    }
    for binding, word in hopeless.items():
        said = checked(limpet, binding)
        assert said.code == 1, binding
        assert f"can never match: {word}" in said.out, binding
        assert word in limpet("status").out, binding
