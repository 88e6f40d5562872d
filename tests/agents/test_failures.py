"""What providers say when they fail becomes one of the few kinds that the agent acts on."""

from __future__ import annotations

import json

import pytest

from agents.failures import Endpoint, answered_with, classify, retry_after, unreachable

HOSTED = Endpoint("openai/gpt-x", "https://api.example.com/v1", "OPENAI_API_KEY", "sk-geheim-1234567890")
OLLAMA = Endpoint("ollama/qwen3:4b", "http://127.0.0.1:11434/v1")


@pytest.mark.parametrize(
    "words",
    [
        "prompt is too large for model with 8192 maximum context length",
        "The total length of all messages is too long",
        "Input is too long for requested model",
        "Input length 9000 exceeds maximum context length 8192",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "request (18031 tokens) exceeds the available context size (8192 tokens), try increasing it",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "Please reduce the length of the messages or completion.",
        # those that litellm has, and those that it hasn't
        "input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 500 `max_new_tokens`",
        "`inputs` must have less than 4095 tokens. Given: 5000",
        "Please reduce your prompt. Current length is 9000 while limit is 8192",
        "input tokens exceed the configured limit of 272000 tokens",
        "Input too long: 9000 input tokens, limit is 8192",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081",
        "Invalid request: Your request exceeded model token limit: 8192",
        "Range of input length should be [1, 30720]",
        "Prompt exceeds max length",
        "prompt token count of 130000 exceeds the limit of 128000",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "prompt too long; exceeded max context length by 812 tokens",
        "expected maxLength: 51200, actual: 60000, please reformat your input",
    ],
)
@pytest.mark.parametrize("status", [400, 413, 500, None])
def test_overflow_in_every_wording(words: str, status: int | None) -> None:
    """G-CMP-26: also the texts that litellm doesn't map."""
    assert classify(status, "", words) == "overflow"


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (429, "Rate limit reached for tokens per minute (TPM): Limit 30000, Used 29000", "rate_limit"),
        (429, "Too many tokens, please wait before trying again.", "rate_limit"),
        (
            429,
            "This request would exceed your organization's rate limit of 40,000 input tokens per minute",
            "rate_limit",
        ),
        (400, "max_tokens is too large: 99999. This model supports at most 16384 completion tokens", "refused"),
        (400, "Invalid 'user': string too long. Expected a string with maximum length 64", "refused"),
        (401, "the request is too long ago: check the clock", "auth"),
    ],
)
def test_what_only_sounds_like_an_overflow(status: int, words: str, kind: str) -> None:
    """G-CMP-26, the other way round: compacting helps none of these."""
    assert classify(status, "", words) == kind


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("[::1]", True),
        ("10.0.0.1", False),
        ("gpu", False),
    ],
)
def test_what_is_this_machine(host: str, is_local: bool) -> None:
    assert Endpoint("x", f"http://{host}:8080/v1").is_local is is_local


def test_overflow_by_code_alone() -> None:
    """G-CMP-26: code context_length_exceeded and nothing else."""
    body = json.dumps({"error": {"code": "context_length_exceeded", "message": "no"}})
    assert answered_with(HOSTED, 400, body).kind == "overflow"


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"error": {"message": "Incorrect API key provided"}}, "auth"),
        (403, {"error": {"message": "Country not supported"}}, "auth"),
        (403, {"error": {"message": "Your input was flagged", "code": 403}}, "filtered"),
        (402, {"error": {"message": "This request requires more credits"}}, "billing"),
        (429, {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}, "billing"),
        (400, {"error": {"message": "Your credit balance is too low to access the API"}}, "billing"),
        (429, {"error": {"message": "Rate limit reached"}}, "rate_limit"),
        (429, {"error": {"message": "You exceeded your current quota, retry in 20s", "status": "X"}}, "rate_limit"),
        (500, "<html>oops</html>", "overload"),
        (503, "", "overload"),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "overload"),
        (408, None, "overload"),
        (413, "", "overflow"),
        (400, {"error": {"code": "content_filter", "message": "The response was filtered"}}, "filtered"),
        (400, {"error": {"message": "Unsupported parameter"}}, "refused"),
        (404, {"error": "model 'x' not found"}, "refused"),
        (422, {"detail": [{"msg": "field required"}]}, "refused"),
        (None, {"error": {"code": 429, "message": "slow"}}, "rate_limit"),
        (None, {"error": {"type": "rate_limit_error"}}, "rate_limit"),
        (None, {"error": {"message": "Internal error"}}, "overload"),
        (None, [{"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}}], "refused"),
    ],
)
def test_kinds(status: int | None, body: object, kind: str) -> None:
    assert answered_with(HOSTED, status, body).kind == kind
    if not isinstance(body, str):
        assert answered_with(HOSTED, status, json.dumps(body).encode()).kind == kind


def test_a_message_names_the_place_of_the_key_and_never_the_key() -> None:
    body = {"error": {"message": "Incorrect API key provided: sk-geheim-1234567890 (sk-other-abcdefgh)."}}
    message = answered_with(HOSTED, 401, body).message
    assert message == (
        "api.example.com:443 refused the key from OPENAI_API_KEY "
        "(HTTP 401: Incorrect API key provided: [key] ([key])). Set a valid one there."
    )
    assert "geheim" not in repr(HOSTED)


def test_a_key_that_is_missing() -> None:
    endpoint = Endpoint("openai/x", "https://api.example.com/v1", "OPENAI_API_KEY")
    assert answered_with(endpoint, 401, "").message == "api.example.com:443 wants a key. Set OPENAI_API_KEY."


def test_a_servers_words_are_one_short_line() -> None:
    message = answered_with(HOSTED, 400, {"error": {"message": "a\n\n b" + "x" * 5000}}).message
    assert "a b" in message
    assert "\n" not in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("endpoint", "status", "words", "mend"),
    [
        (OLLAMA, 404, 'model "qwen3:4b" not found', "ollama pull qwen3:4b"),
        (HOSTED, 404, "The model does not exist", "Check the model's name"),
        (OLLAMA, 400, "registry.ollama.ai/library/gemma does not support tools", "uses_tools = false"),
    ],
)
def test_a_refusal_says_the_mend(endpoint: Endpoint, status: int, words: str, mend: str) -> None:
    message = answered_with(endpoint, status, {"error": {"message": words}}).message
    assert endpoint.model in message
    assert mend in message


def test_what_is_not_running_is_named_with_its_start() -> None:
    assert unreachable(OLLAMA, "connection refused").message == (
        "127.0.0.1:11434 can't be reached: connection refused. Is Ollama running? Start it: `ollama serve`."
    )
    assert "api.example.com:443" in unreachable(HOSTED, "timed out").message
    assert "ollama" not in unreachable(Endpoint("x", "http://10.0.0.1:11434/v1"), "no").message


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "Mon, 30 Nov 2026 10:01:00 GMT", "date": "Mon, 30 Nov 2026 10:00:00 GMT"}, 60),
        ({"retry-after": "Mon, 30 Nov 2026 09:00:00 GMT", "date": "Mon, 30 Nov 2026 10:00:00 GMT"}, 0),
        ({"retry-after": "Mon, 30 Nov 2020 09:00:00 GMT"}, 0),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_only_what_passes_may_be_tried_again() -> None:
    waits = answered_with(HOSTED, 429, "", {"Retry-After": "7"})
    assert (waits.kind, waits.retry_after, waits.may_retry) == ("rate_limit", 7, True)
    assert answered_with(HOSTED, 401, "", {"Retry-After": "7"}).retry_after is None
