"""What a person is told who asks what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from adapters.errors import AuthFailed
from adapters.whatsapp import WhatsAppAdapter
from adapters.whatsapp.findings import inspect
from adapters.whatsapp.settings import WhatsAppSettings
from tests.fakes.whatsapp_events import GROUP
from tests.fakes.whatsapp_seam import Seam


async def test_each_finding_has_its_mend(seam: Seam, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    (folder / "session.db").chmod(0o644)
    found = await inspect(WhatsAppSettings(write_first=True), [GROUP, "+15550000002", "friends"], folder)
    told = {finding.what: finding.mend for finding in found}
    assert [what for what in told if "is no group" in what] == [
        "'+15550000002' is no group of WhatsApp",
        "'friends' is no group of WhatsApp",
    ]
    assert any("be the account" in what and mend.startswith("chmod 600") for what, mend in told.items())
    assert any("banned" in what and "write_first" in mend for what, mend in told.items())
    assert any("ffmpeg" in what for what in told)
    assert not seam.starts, "nobody is asked: a hub may be running"


async def test_an_account_in_order_has_none(seam: Seam, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    assert await inspect(WhatsAppSettings(), [GROUP], folder) == []
    seam.unlink(folder)
    with pytest.raises(AuthFailed, match="limpet channels login"):
        await inspect(WhatsAppSettings(), [], folder)


def test_every_setting_is_described_and_an_unknown_one_refused() -> None:
    assert all(field.description for field in WhatsAppSettings.model_fields.values())
    with pytest.raises(ValidationError):
        WhatsAppSettings(token="x")  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="proxy_url"):
        WhatsAppSettings(proxy_url="127.0.0.1:1080")


async def test_the_mend_names_the_account_as_the_settings_call_it(tmp_path: Path) -> None:
    """Several accounts, and each has a name of its own."""
    settings, folder = WhatsAppSettings(), tmp_path / "work"
    adapter = WhatsAppAdapter("work", settings, folder)
    for tried in (WhatsAppAdapter.check(settings, folder), WhatsAppAdapter.inspect(settings, (), folder)):
        with pytest.raises(AuthFailed, match=r"limpet channels login work$"):
            await tried

    async def accept(event: object) -> None:
        raise AssertionError(event)

    with pytest.raises(AuthFailed, match=r"limpet channels login work$"):
        await adapter.run(accept)
    assert adapter.health.detail.endswith("limpet channels login work")
