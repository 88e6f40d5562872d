"""What counts as a secret, and what doesn't."""

from __future__ import annotations

import pytest

from workspaces.memory.redaction import WITHHELD, redacted, redacted_within


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnop1234",
        "sk-ant-api03-abcdefghijklmnopqrst",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "xoxb-123456789012-abcdefghijkl",
        "123456:AAabcdefghijklmnop",
        "1234567890:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc",
        "AIzaSyA-abcdefghijklmnopqrstuvwxyz12345",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_123",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\ndef\n-----END OPENSSH PRIVATE KEY-----",
    ],
)
def test_keys_are_taken_out(secret: str) -> None:
    """G-MEM-35."""
    assert redacted(f"here it is: {secret} (keep it)") == (f"here it is: {WITHHELD} (keep it)", 1)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("password hunter2", f"password {WITHHELD}"),
        ("the wifi password is swordfish.", f"the wifi password is {WITHHELD}."),
        ("Password: correct-horse", f"Password: {WITHHELD}"),
        ('pin = "4411"', f'pin = "{WITHHELD}"'),
        ("api key: `abc`", f"api key: `{WITHHELD}`"),
        ("das Passwort ist geheim1", f"das Passwort ist {WITHHELD}"),
        ("postgres://ada:lovelace@db.local/x", f"postgres://ada:{WITHHELD}@db.local/x"),
    ],
)
def test_what_is_called_a_password_is_taken_out(text: str, left: str) -> None:
    assert redacted(text) == (left, 1)


@pytest.mark.parametrize(
    "text",
    [
        "my password manager is Bitwarden",
        "the password is stored in the safe",
        "the password is in the safe",
        "I forgot my password again",
        "my dog is called Biscuit",
        "the secret ingredient of the soup",
        "a token of gratitude",
        "meeting at 12:30, see https://example.org/a:b",
        "the pin on the map",
        "order 4411 arrived",
        "skating at the sk-8 park",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redacted(text) == (text, 0)


@pytest.mark.parametrize(
    ("text", "span", "left"),
    [
        ("the password is hunter2 and more", "hunter2", f"the password is {WITHHELD} and more"),
        ("password: old1x, password: new1x", "new1x", f"password: old1x, password: {WITHHELD}"),
        ("password: old1x, tea", "tea", "password: old1x, tea"),
        ("password: hunter2", "er2", f"password: hunt{WITHHELD}"),
        ("sk-test-AAAAAAAAAAAAAAAAAAAAAAAA", "AAAA", f"sk-test-{WITHHELD}AAAAAAAAAAAAAAAAAAAA"),
        ("secret sk-test-AAAAAAAAAAAAAAAAAAAAAAAA", "secret sk-test-AAAAAAAAAAAAAAAAAAAAAAAA", f"secret {WITHHELD}"),
    ],
)
def test_only_what_is_new_is_taken_out_but_all_is_looked_at(text: str, span: str, left: str) -> None:
    start = text.index(span)
    assert redacted_within(text, start, start + len(span))[0] == left
