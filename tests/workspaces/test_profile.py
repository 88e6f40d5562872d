"""The few lines of USER.md that the program reads and writes."""

from __future__ import annotations

from pathlib import Path

from workspaces.profile import Profile, read_profile, write_profile

BEFORE = (
    "# You\r\n\r\nI like *tea*.\r\n\r\n- Name:\r\n- Language: \r\n- Time zone:\r\n\r\n- Name of my dog: Biscuit\r\n"
)


def test_fields_are_filled_and_the_rest_stays_byte_for_byte(tmp_path: Path) -> None:
    (tmp_path / "USER.md").write_bytes(BEFORE.encode() + b"caf\xe9\n")
    assert read_profile(tmp_path) == Profile()
    write_profile(tmp_path, {"Name": "Ann\nMaria", "Time zone": "Europe/Berlin"})
    assert read_profile(tmp_path) == Profile("Ann Maria", "", "Europe/Berlin")
    after = (tmp_path / "USER.md").read_bytes()
    assert (
        after
        == BEFORE.replace("- Name:\r", "- Name: Ann Maria\r")
        .replace("- Time zone:\r", "- Time zone: Europe/Berlin\r")
        .encode()
        + b"caf\xe9\n"
    )


def test_a_missing_file_or_line_is_added(tmp_path: Path) -> None:
    write_profile(tmp_path, {"Name": "Ann"})
    assert (tmp_path / "USER.md").read_text() == "- Name: Ann\n"
    write_profile(tmp_path, {"Language": "English"})
    assert (tmp_path / "USER.md").read_text() == "- Name: Ann\n- Language: English\n"
    assert [path.name for path in tmp_path.iterdir()] == ["USER.md"], "no scratch file stays behind"


def test_a_zone_that_does_not_exist_is_no_zone(tmp_path: Path) -> None:
    for name in ("Nowhere/Atlantis", "../../etc/passwd", "/etc/passwd", ""):
        write_profile(tmp_path, {"Time zone": name})
        assert read_profile(tmp_path).zone is None
    write_profile(tmp_path, {"Time zone": "Asia/Shanghai"})
    assert str(read_profile(tmp_path).zone) == "Asia/Shanghai"
