"""A workspace is made once, completed gently, and shows each scope its own files."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from workspaces.scope import Level, Scope
from workspaces.workspace import FILE_CAP, TOTAL_CAP, BootstrapFile, Workspace

HOME = Scope.home()
TEAM = Scope.chat("team", Level.MEMBER)
NOW = datetime(2026, 11, 30, 23, 30, tzinfo=UTC)
NAMES = ["AGENTS.md", "BOOTSTRAP.md", "HEARTBEAT.md", "IDENTITY.md", "MEMORY.md", "SOUL.md", "TOOLS.md", "USER.md"]


def opened(folder: Path, zone: Callable[[], tzinfo | None] | None = None) -> Workspace:
    return Workspace.open(folder, clock=lambda: NOW, zone=zone or (lambda: UTC))


def texts(found: tuple[BootstrapFile, ...]) -> dict[str, str]:
    return {file.name: file.text for file in found}


def test_a_new_workspace_is_made_from_the_template(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "main"
    opened(folder)
    assert sorted(path.name for path in folder.iterdir()) == [*NAMES, "memory"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.glob("*.md")} == {0o600}


def test_what_is_there_stays_and_what_lacks_comes_back_but_for_the_interview(tmp_path: Path) -> None:
    workspace = opened(tmp_path)
    (tmp_path / "USER.md").write_text("- Name: Ada\n")
    (tmp_path / "TOOLS.md").unlink()
    workspace.end_interview()
    workspace.end_interview()
    opened(tmp_path)
    assert (tmp_path / "USER.md").read_text() == "- Name: Ada\n"
    assert (tmp_path / "TOOLS.md").exists()
    assert not (tmp_path / "BOOTSTRAP.md").exists()


def test_a_workspace_left_half_made_still_gets_its_interview(tmp_path: Path) -> None:
    opened(tmp_path)
    for name in NAMES:
        if name != "BOOTSTRAP.md":
            (tmp_path / name).unlink()
    opened(tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*.md")) == NAMES


def test_a_template_of_ones_own(tmp_path: Path) -> None:
    template = tmp_path / "template"
    template.mkdir()
    (template / "AGENTS.md").write_text("Speak like a pirate.\n")
    workspace = Workspace.open(tmp_path / "home", template=template)
    assert texts(workspace.bootstrap(HOME))["AGENTS.md"] == "Speak like a pirate.\n"


def test_the_default_home_is_small(tmp_path: Path) -> None:
    assert sum(len(file.text) for file in opened(tmp_path).bootstrap(HOME)) < 3_000


def test_home_has_its_files_its_memory_and_two_days(tmp_path: Path) -> None:
    workspace = opened(tmp_path)
    for day in ("2026-11-28", "2026-11-29", "2026-11-30", "2026-12-01"):
        (tmp_path / "memory" / f"{day}.md").write_text(f"- on {day}\n")
    assert list(texts(workspace.bootstrap(HOME))) == [
        "AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md", "BOOTSTRAP.md", "MEMORY.md",
        "memory/2026-11-29.md", "memory/2026-11-30.md",
    ]  # fmt: skip
    workspace.end_interview()
    assert "BOOTSTRAP.md" not in texts(workspace.bootstrap(HOME))


def test_today_is_the_zones(tmp_path: Path) -> None:
    workspace = opened(tmp_path, lambda: ZoneInfo("Asia/Shanghai"))
    (tmp_path / "memory" / "2026-12-01.md").write_text("- today there\n")
    assert "memory/2026-12-01.md" in texts(workspace.bootstrap(HOME))


def test_the_zone_is_that_of_the_user_file(tmp_path: Path) -> None:
    workspace = Workspace.open(tmp_path, clock=lambda: NOW)
    (tmp_path / "USER.md").write_text("- Time zone: Asia/Shanghai\n")
    (tmp_path / "memory" / "2026-12-01.md").write_text("- today there\n")
    assert "memory/2026-12-01.md" in texts(workspace.bootstrap(HOME))


def test_nothing_of_homes_reaches_another_scope(tmp_path: Path) -> None:
    """G-MEM-32."""
    workspace = opened(tmp_path)
    for path in (*NAMES[1:], "memory/2026-11-30.md", "memory/shared/2026-11-30.md", "memory/chats/other/MEMORY.md"):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"marker of {path}\n")
    own = tmp_path / "memory" / "chats" / "team"
    own.mkdir(parents=True)
    (own / "MEMORY.md").write_text("the team's\n")
    (own / "2026-11-30.md").write_text("the team's day\n")
    found = texts(workspace.bootstrap(TEAM))
    assert list(found) == [
        "AGENTS.md", "SOUL.md", "IDENTITY.md", "memory/chats/team/MEMORY.md", "memory/chats/team/2026-11-30.md",
    ]  # fmt: skip
    assert {text for text in found.values() if "marker" in text} == {"marker of SOUL.md\n", "marker of IDENTITY.md\n"}
    assert "team" not in "".join(texts(workspace.bootstrap(HOME)).values())


def test_a_long_file_keeps_its_head_and_tail_and_says_what_is_gone(tmp_path: Path) -> None:
    workspace = opened(tmp_path)
    (tmp_path / "MEMORY.md").write_text("HEAD" + "x" * 50_000 + "TAIL")
    (file,) = (file for file in workspace.bootstrap(HOME) if file.name == "MEMORY.md")
    assert len(file.text) <= FILE_CAP
    assert file.text.startswith("HEAD")
    assert file.text.endswith("TAIL")
    assert file.truncated
    gone = 50_008 - (len(file.text) - len(file.text[file.text.index("\n\n[") : file.text.index("]\n\n") + 3]))
    assert f"{gone:,} characters of MEMORY.md are left out here" in file.text
    assert f"{gone:,} of 50,008 characters" in file.warning


def test_all_files_together_are_cut_in_order_and_never_the_rules(tmp_path: Path) -> None:
    workspace = opened(tmp_path)
    for name in ("AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "MEMORY.md"):
        (tmp_path / name).write_text(name + "x" * 19_000)
    found = workspace.bootstrap(HOME)
    assert sum(len(file.text) for file in found) <= TOTAL_CAP
    assert {file.name for file in found if file.truncated} == {"TOOLS.md", "USER.md"}
    assert "left out" in next(file.warning for file in found if file.name == "TOOLS.md")


@pytest.mark.parametrize("data", [b"\xef\xbb\xbf# caf\xc3\xa9\r\nx", b"caf\xe9 \xff"])
def test_any_bytes_are_read(tmp_path: Path, data: bytes) -> None:
    """G-MEM-26."""
    workspace = opened(tmp_path)
    (tmp_path / "SOUL.md").write_bytes(data)
    (file,) = (file for file in workspace.bootstrap(HOME) if file.name == "SOUL.md")
    assert "caf" in file.text
    assert not {"\ufeff", "\r"} & set(file.text)
    assert bool(file.warning) == ("\ufffd" in file.text)
    assert (tmp_path / "SOUL.md").read_bytes() == data


def test_what_cannot_be_read_is_a_warning(tmp_path: Path) -> None:
    workspace = opened(tmp_path / "home")
    outside = tmp_path / "outside.md"
    outside.write_text("of another")
    (tmp_path / "home" / "SOUL.md").unlink()
    (tmp_path / "home" / "USER.md").unlink()
    (tmp_path / "home" / "USER.md").symlink_to(outside)
    (tmp_path / "home" / "TOOLS.md").unlink()
    (tmp_path / "home" / "TOOLS.md").mkdir()
    found = {file.name: file for file in workspace.bootstrap(HOME)}
    assert [(found[name].text, bool(found[name].warning)) for name in ("SOUL.md", "USER.md", "TOOLS.md")] == [
        ("", True)
    ] * 3
    assert "leads out" in found["USER.md"].warning


def test_a_workspace_that_is_a_link_works(tmp_path: Path) -> None:
    """G-MEM-24."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert "AGENTS.md" in texts(opened(tmp_path / "link").bootstrap(HOME))
