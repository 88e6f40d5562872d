"""The socket: private, replaced only when it is one, reachable under a long path."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import sys
from pathlib import Path

import pytest

from adapters.terminal.endpoint import bind, to_peer, to_socket


def test_the_socket_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with bind(tmp_path / "state" / "limpet.sock"):
            assert stat.S_IMODE((tmp_path / "state" / "limpet.sock").stat().st_mode) == 0o600
            assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    finally:
        os.umask(before)


async def test_a_dead_hubs_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "limpet.sock"
    bind(path).close()
    with pytest.raises(ConnectionRefusedError):
        await to_socket(path)()
    with bind(path):
        _, writer = await to_socket(path)()
        writer.close()
        await writer.wait_closed()


def test_a_file_in_its_place_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "limpet.sock"
    path.write_text("mine")
    with pytest.raises(OSError, match="in use"):
        bind(path)
    assert path.read_text() == "mine"


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_a_path_too_long_for_a_socket_works(tmp_path: Path) -> None:
    path = tmp_path / ("deep" * 20) / ("deeper" * 10) / "limpet.sock"
    assert len(str(path)) > 140
    with bind(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        _, writer = await to_socket(path)()
        writer.close()
        await writer.wait_closed()


async def test_no_hub_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await to_socket(tmp_path / "limpet.sock")()


async def test_a_pair_can_be_dialled_once() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        dial = to_peer(ours)
        _, writer = await dial()
        writer.close()
        await writer.wait_closed()
        with pytest.raises(ConnectionResetError, match="has ended"):
            await asyncio.wait_for(dial(), 1)
