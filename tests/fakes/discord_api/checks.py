"""What the real API refuses, in its own words and with its own codes."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

TEXT_LIMIT = 2000
"""Code points."""

FILE_LIMIT = 10 << 20
FILES = 10
_KNOWN_FLAGS = (1 << 2) | (1 << 6) | (1 << 12) | (1 << 13) | (1 << 15)
_COMMAND = re.compile(r"[-_'\w]{1,32}")


class RefusalError(Exception):
    """``headers`` go with the answer."""

    def __init__(self, status: int, code: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"message": message, "code": code} | more


def invalid(field: str, code: str, message: str) -> RefusalError:
    """50035, with what is wrong with which field."""
    tree: Json = {"_errors": [{"code": code, "message": message}]}
    for name in reversed(field.split(".")):
        tree = {name: tree}
    return RefusalError(400, 50035, "Invalid Form Body", errors=tree)


def unauthorized() -> RefusalError:
    return RefusalError(401, 0, "401: Unauthorized")


def unknown(what: str, code: int) -> RefusalError:
    return RefusalError(404, code, f"Unknown {what}")


def check_message(body: Json, files: int, *, is_interaction: bool = False, is_edit: bool = False) -> None:
    content = body.get("content") or ""
    if not isinstance(content, str) or any("\ud800" <= char <= "\udfff" for char in content):
        raise invalid("content", "STRING_TYPE_CONVERT", "Could not interpret as string.")
    if len(content) > TEXT_LIMIT:
        raise invalid("content", "BASE_TYPE_MAX_LENGTH", f"Must be {TEXT_LIMIT} or fewer in length.")
    if not (content.strip() or files or is_edit):
        raise RefusalError(400, 50006, "Cannot send an empty message")
    if int(body.get("flags") or 0) & ~_KNOWN_FLAGS:
        raise invalid("flags", "BITFIELD_INVALID", "Invalid flags.")
    if int(body.get("flags") or 0) & (1 << 6) and not is_interaction:
        raise invalid("flags", "MESSAGE_FLAGS_INVALID", "Only an interaction's answer can be ephemeral.")
    nonce = body.get("nonce")
    if nonce is not None and len(str(nonce)) > 25:
        raise invalid("nonce", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
    if not set((body.get("allowed_mentions") or {}).get("parse", ())) <= {"roles", "users", "everyone"}:
        raise invalid("allowed_mentions.parse", "BASE_TYPE_CHOICES", "Value must be one of the choices.")
    _check_components(body.get("components") or [])


def check_files(sizes: list[int]) -> None:
    if len(sizes) > FILES:
        raise invalid("attachments", "BASE_TYPE_MAX_LENGTH", f"Must be {FILES} or fewer in length.")
    if any(size > FILE_LIMIT for size in sizes):
        raise RefusalError(413, 40005, "Request entity too large")


def _check_components(rows: list[Json]) -> None:
    if len(rows) > 5:
        raise invalid("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
    seen: set[str] = set()
    for number, row in enumerate(rows):
        buttons = row.get("components", [])
        if row.get("type") != 1 or not 1 <= len(buttons) <= 5:
            raise invalid(
                f"components.{number}.components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length."
            )
        for button in buttons:
            if not 1 <= len(button.get("label") or "") <= 80:
                raise invalid(
                    f"components.{number}.components.0.label", "BASE_TYPE_BAD_LENGTH", "Must be 1 to 80 long."
                )
            custom_id = button.get("custom_id") or ""
            if not 1 <= len(custom_id) <= 100:
                raise invalid("components.0.components.0.custom_id", "BASE_TYPE_BAD_LENGTH", "Must be 1 to 100 long.")
            if custom_id in seen:
                what = "Component custom id cannot be duplicated"
                raise invalid("components.0.components.0", "COMPONENT_CUSTOM_ID_DUPLICATED", what)
            seen.add(custom_id)


def check_commands(commands: list[Json]) -> None:
    if len(commands) > 100 or len({command["name"] for command in commands}) < len(commands):
        raise invalid("0", "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique")
    for number, command in enumerate(commands):
        for held, place in (
            (command, f"{number}"),
            *((one, f"{number}.options") for one in command.get("options", ())),
        ):
            if not _COMMAND.fullmatch(held["name"]) or held["name"] != held["name"].lower():
                raise invalid(f"{place}.name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
            if not 1 <= len(held["description"]) <= 100:
                raise invalid(f"{place}.description", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
