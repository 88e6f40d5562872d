"""Which client speaks for which model name, and which model is taken when none is named.

A model is written ``provider/model``. One table knows each provider's address, the usual name of its key and a default
model; ``resolve`` makes a ``ModelChoice`` of the settings, ``build`` a ``Model`` of that. Imports no client until it is
built, and asks no server.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from agents.errors import MissingExtra, MissingKey, UnknownModel, WeightsError
from agents.failures import is_loopback
from agents.model import Limits, Model
from agents.prices import FREE, Prices, listed
from agents.settings import ModelSettings, ModelsSettings, in_order
from agents.weight_sources import EMBEDDED, to_get
from agents.weights import WeightsStore

LOCAL = "local"
"""The provider of the weights in the store: "local/smollm2"."""

Client: TypeAlias = Literal["lean", "litellm", "local"]
Reason: TypeAlias = Literal["configured", "key found", "embedded"]


@dataclass(frozen=True, slots=True)
class Provider:
    """One row of the table.

    ``base_url`` None: there is no OpenAI-compatible API that the lean client is meant for, litellm translates.
    ``url_variable`` names an environment variable that moves it. ``key`` is the usual variable of the key, None for
    servers that want none; ``other_keys`` are where litellm looks by itself as well. ``model`` is taken when only the
    key was found: a cheap one that can call tools, None where nothing sensible can be guessed. ``context`` and
    ``output``, in tokens, are what its models of today have at least; the settings say more.
    """

    name: str
    key: str | None = None
    other_keys: tuple[str, ...] = ()
    base_url: str | None = None
    url_variable: str | None = None
    model: str | None = None
    context: int = 128_000
    output: int = 8_192
    output_field: str = "max_tokens"
    reasoning_field: str = "reasoning_content"


PROVIDERS: Mapping[str, Provider] = {
    p.name: p
    for p in (
        # Models, windows and prices are those of the cost map in the pinned litellm; a test holds them against it.
        Provider(
            "openai",
            key="OPENAI_API_KEY",
            base_url="https://api.openai.com/v1",
            url_variable="OPENAI_BASE_URL",
            model="gpt-6.1-terra",
            output=32_768,
            output_field="max_completion_tokens",  # its newer models refuse max_tokens
        ),
        Provider(
            "anthropic",
            key="ANTHROPIC_API_KEY",
            other_keys=("ANTHROPIC_AUTH_TOKEN",),
            model="claude-haiku-5-5",
            context=200_000,
            output=32_768,
        ),
        Provider(
            "openrouter",
            key="OPENROUTER_API_KEY",
            base_url="https://openrouter.ai/api/v1",
            model="openai/gpt-oss-120b",
            reasoning_field="reasoning",
        ),
        Provider(
            "gemini",
            key="GEMINI_API_KEY",
            other_keys=("GOOGLE_API_KEY",),
            model="gemini-3.8-flash",
            context=1_000_000,
            output=32_768,
        ),
        Provider("mistral", key="MISTRAL_API_KEY", model="mistral-medium-latest"),
        Provider("groq", key="GROQ_API_KEY", model="openai/gpt-oss-120b"),
        Provider("deepseek", key="DEEPSEEK_API_KEY", model="deepseek-flash"),
        Provider("xai", key="XAI_API_KEY", model="grok-4.3"),
        Provider("cerebras", key="CEREBRAS_API_KEY", model="gpt-oss-120b", context=65_536),
        Provider(
            "together_ai",
            key="TOGETHERAI_API_KEY",
            other_keys=("TOGETHER_API_KEY", "TOGETHER_AI_API_KEY"),
            model="openai/gpt-oss-120b",
            context=32_768,
        ),
        # Servers on one's own machine. Ollama cuts a longer prompt without a word: 4,096 is its default window.
        Provider(
            "ollama",
            base_url="http://127.0.0.1:11434/v1",
            url_variable="OLLAMA_HOST",
            context=4_096,
            output=2_048,
            reasoning_field="reasoning",
        ),
        Provider("vllm", base_url="http://127.0.0.1:8000/v1", context=8_192, output=2_048),
        Provider("llamacpp", base_url="http://127.0.0.1:8080/v1", context=8_192, output=2_048),
        Provider("lmstudio", base_url="http://127.0.0.1:1234/v1", context=8_192, output=2_048),
    )
}

LOCAL_CONTEXT = 8192
"""Tokens, at most, unless the settings say more: the window is paid for in memory, 23 kB a token for SmolLM2-135M."""

LOCAL_OUTPUT = 1024
"""Tokens, at most: small models don't always find an end."""

_CLAUDE_TOO = ("bedrock", "openrouter", "vertex_ai")
"""Where Claude is to be had beside Anthropic, which caches nothing that isn't marked."""

_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104  # what a server listens on; a client has to connect to itself

MOST_THREADS = 8
"""More don't make a small model faster, and a container may show more processors than it gives."""

_ANY = Provider("")
"""A provider that only litellm knows, or a bare address."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model that can be built. ``name`` is how people write it, ``model`` what its client or server calls it.

    ``key_place`` says where ``api_key`` comes from, or where one would be looked for; "" where none is needed. ``why``
    "key found" means that nobody asked for this model: tell the person which key is used and how to pin another.
    ``prices`` None means that what it costs is not known.
    """

    name: str
    client: Client
    model: str
    limits: Limits
    why: Reason
    settings: ModelSettings
    provider: Provider
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    key_place: str = ""
    path: Path | None = None
    uses_tools: bool = True
    sees_images: bool = False
    marks_cache: bool = False
    prices: Prices | None = None


def found_keys(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the providers' variables that are set in ``environ``, in the order of the table."""
    return tuple(p.key for p in PROVIDERS.values() if p.key and environ.get(p.key, "").strip())


def resolve(
    settings: ModelsSettings, environ: Mapping[str, str], weights: WeightsStore, name: str | None = None
) -> ModelChoice | None:
    """The model called ``name`` (None: the default one); None when there is no model at all.

    Without any configuration: the default model of the first provider whose key is in ``environ``, else the embedded
    model if its weights are here. Raises UnknownModel for a name that means nothing.
    """
    wanted = name or _first(settings)
    if wanted is not None:
        return _named(wanted, settings, environ, weights)
    for key in ("base_url", "api_key"):
        if getattr(settings, key) is not None:
            raise UnknownModel(f"{key} under [models] belongs to the default model, and there is none", "set default")
    for provider in PROVIDERS.values():
        if provider.key and provider.model and environ.get(provider.key, "").strip():
            choice = _hosted(f"{provider.name}/{provider.model}", settings, environ, "key found")
            if choice.client != "litellm" or importlib.util.find_spec("litellm") is not None:
                return choice  # a key that nobody asked us to use must not stop us where its client is missing
    stored = weights.preferred()
    return _embedded(stored, settings, weights, "embedded") if stored else None


def resolve_all(
    settings: ModelsSettings, environ: Mapping[str, str], weights: WeightsStore, names: tuple[str, ...] = ()
) -> tuple[ModelChoice, ...]:
    """The models called ``names`` (none: the default ones), in the order in which they are asked; empty for no model.

    One whose weights are damaged is left out as long as another is left. Raises UnknownModel for a name that means
    nothing.
    """
    wanted = names or in_order(settings.default)
    if not wanted:
        found = resolve(settings, environ, weights)
        return (found,) if found is not None else ()
    choices: list[ModelChoice] = []
    damaged: list[WeightsError] = []
    for name in wanted:
        try:
            choices.append(_named(name, settings, environ, weights))
        except WeightsError as error:
            damaged.append(error)
    if not choices:
        raise damaged[0]
    return tuple(choices)


def _first(settings: ModelsSettings) -> str | None:
    """The default model, to which belongs what stands beside ``default``."""
    return next(iter(in_order(settings.default)), None)


def misnamed(wanted: str, models: ModelsSettings, weights: WeightsStore) -> UnknownModel | None:
    """What is wrong with the way in which a model is written; None where it may mean one.

    It names a provider and its model, weights that are here or not, or a table of ``models``; behind an address of
    one's own any name may stand.
    """
    own = models.named().get(wanted)
    settings: ModelSettings = own or (models if wanted == _first(models) else ModelSettings())
    name = (own.model if own else None) or wanted
    provider, slash, rest = name.partition("/")
    if (slash and provider and rest) or settings.base_url is not None:
        return None
    what = f"model {name!r} is not written as provider/model, and no [models] table has that name"
    return UnknownModel(what, _meant(name, models, weights))


def _meant(name: str, models: ModelsSettings, weights: WeightsStore) -> str:
    """The mend for a name without a provider: the whole name it stands for where one is likely, else what there is."""
    bare = name.strip("/").lower()
    embedded = [EMBEDDED, *(w.name for w in weights.list())]
    hosted = [f"{p.name}/{p.model}" for p in PROVIDERS.values() if p.model and p.model.lower() == bare]
    if bare in embedded:
        return f"did you mean {f'{LOCAL}/{bare}'!r}?"
    if hosted:
        return f"did you mean {hosted[0]!r}?"
    if bare in PROVIDERS or bare == LOCAL:
        example = embedded[-1] if bare == LOCAL else PROVIDERS[bare].model or "MODEL"
        return f"name its model too, such as {bare}/{example}"
    if ":" in bare:  # as Ollama writes its models
        return f"did you mean {f'ollama/{name}'!r}?"
    fits = ", ".join([*PROVIDERS, f"{LOCAL} (with {' or '.join(dict.fromkeys(embedded))})", *models.named()])
    return f"write it as openai/{PROVIDERS['openai'].model} or ollama/qwen3:4b; there are: {fits}"


def check(choice: ModelChoice, environ: Mapping[str, str], weights: WeightsStore) -> None:
    """Raise ModelError where ``choice`` can't answer, as far as that can be told without asking a server.

    It can't when its package is not installed, its weights have the wrong size, or its provider wants a key and none is
    set; a server at an address of one's own may do without.
    """
    _require(choice)
    if choice.client == "local":
        weights.check(choice.model)
    provider = choice.provider
    if provider.key is None or choice.api_key or choice.base_url != provider.base_url:
        return
    if not any(environ.get(name, "").strip() for name in provider.other_keys):
        raise MissingKey(choice.name, provider.key)


def build(choice: ModelChoice) -> Model:
    """The model itself; no connection is made and no weights are read yet. Raises MissingExtra."""
    _require(choice)
    if choice.client == "local":
        return _build_local(choice)
    common: dict[str, Any] = {
        "limits": choice.limits,
        "api_key": choice.api_key,
        "key_place": choice.key_place,
        "uses_tools": choice.uses_tools,
        "sees_images": choice.sees_images,
        "marks_cache": choice.marks_cache,
        "temperature": choice.settings.temperature,
        "max_output": choice.settings.max_output,
        "silence": choice.settings.timeout,
    }
    if choice.client == "litellm":
        from agents.litellm_model import LiteLLMModel

        return LiteLLMModel(choice.name, model=choice.model, base_url=choice.base_url, **common)
    from agents.openai_model import OpenAIModel

    assert choice.base_url is not None, "the lean client is chosen only where there is an address"
    return OpenAIModel(
        choice.name,
        model=choice.model,
        base_url=choice.base_url,
        output_field=choice.provider.output_field if choice.settings.base_url is None else "max_tokens",
        reasoning_field=choice.provider.reasoning_field,
        **common,
    )


def _build_local(choice: ModelChoice) -> Model:
    from agents.local_model import LocalModel

    assert choice.path is not None, "the local client is chosen only where there are weights"
    return LocalModel(
        choice.name,
        choice.path,
        limits=choice.limits,
        threads=min(os.cpu_count() or 1, MOST_THREADS),
        uses_tools=choice.uses_tools,
        temperature=choice.settings.temperature,
    )


_PACKAGES: Mapping[Client, tuple[str, str]] = {"litellm": ("litellm", "litellm"), "local": ("xllamacpp", "local")}
"""The module that a client needs, and the extra that it comes with."""


def _require(choice: ModelChoice) -> None:
    module, extra = _PACKAGES.get(choice.client, ("", ""))
    if module and importlib.util.find_spec(module) is None:
        raise MissingExtra(choice.name, extra)


def _named(wanted: str, models: ModelsSettings, environ: Mapping[str, str], weights: WeightsStore) -> ModelChoice:
    own = models.named().get(wanted)
    settings: ModelSettings = own or (models if wanted == _first(models) else ModelSettings())
    name = (own.model if own else None) or wanted
    provider, _, rest = name.partition("/")
    if provider == LOCAL and rest:
        return _embedded(rest, settings, weights, "configured")
    if error := misnamed(wanted, models, weights):
        raise error
    return _hosted(name, settings, environ, "configured")


def _hosted(name: str, settings: ModelSettings, environ: Mapping[str, str], why: Reason) -> ModelChoice:
    prefix, _, rest = name.partition("/")
    provider = PROVIDERS.get(prefix, _ANY)
    model = rest if provider is not _ANY else name  # with an address of one's own, "Qwen/Qwen3-8B" is the whole name
    base_url = settings.base_url or _moved(provider, environ) or provider.base_url
    client: Client = settings.client or ("lean" if base_url else "litellm")
    if client == "litellm":  # whatever has such an address is "openai" to it
        model = f"openai/{model}" if base_url else name
    key, place = _key(provider, settings, environ)
    known = listed(provider.name, rest) if base_url == provider.base_url else None
    return ModelChoice(
        name=name,
        client=client,
        model=model,
        limits=_limits(settings, provider.context, provider.output),
        why=why,
        settings=settings,
        provider=provider,
        base_url=base_url,
        api_key=key,
        key_place=place,
        uses_tools=settings.uses_tools if settings.uses_tools is not None else True,
        sees_images=settings.sees_images
        if settings.sees_images is not None
        else known is not None and known.sees_images,
        marks_cache=prefix == "anthropic" or (prefix in _CLAUDE_TOO and "claude" in rest),
        prices=_own_prices(settings) or (FREE if _is_here(base_url) else known.prices if known else None),
    )


def _embedded(name: str, settings: ModelSettings, weights: WeightsStore, why: Reason) -> ModelChoice:
    path = weights.path(name)
    if path is None:
        here = ", ".join(w.name for w in weights.list()) or "none"
        raise UnknownModel(f"{LOCAL}/{name}: there are no weights of that name (here: {here})", to_get(name))
    context = min(weights.context(name), LOCAL_CONTEXT)
    return ModelChoice(
        name=f"{LOCAL}/{name}",
        client="local",
        model=name,
        limits=_limits(settings, context, min(LOCAL_OUTPUT, context // 4)),
        why=why,
        settings=settings,
        provider=_ANY,
        path=path,
        uses_tools=bool(settings.uses_tools),
        prices=_own_prices(settings) or FREE,
    )


def _own_prices(settings: ModelSettings) -> Prices | None:
    """The prices that the settings give."""
    plain, output = settings.price_input, settings.price_output
    if plain is None or output is None:
        return None
    cached, written = settings.price_cached, settings.price_written
    return Prices(plain, output, plain if cached is None else cached, plain if written is None else written)


def _is_here(base_url: str | None) -> bool:
    """Whether the server is on this machine, and costs what the machine costs."""
    return base_url is not None and is_loopback(urlsplit(base_url).hostname)


def _limits(settings: ModelSettings, context: int, output: int) -> Limits:
    context = settings.context or context
    return Limits(context=context, output=settings.max_output or min(output, context // 2))


def _key(provider: Provider, settings: ModelSettings, environ: Mapping[str, str]) -> tuple[str | None, str]:
    """The key and its place. A provider's own key is never sent to an address that the settings name."""
    if settings.api_key is not None:
        return settings.api_key.get_secret_value() or None, "api_key under [models]"
    if settings.base_url is not None:
        return None, "api_key under [models]"
    if provider.key is None:
        return None, ""
    return environ.get(provider.key, "").strip() or None, provider.key


def _moved(provider: Provider, environ: Mapping[str, str]) -> str | None:
    """Where the provider's own environment variable puts it: a whole address, or a mere host as Ollama has it."""
    value = environ.get(provider.url_variable or "", "").strip()
    if not value:
        return None
    has_scheme = "://" in value
    try:
        parts = urlsplit(value if has_scheme else f"http://{value}")
        port = parts.port or (None if has_scheme else 11434)
    except ValueError:
        port, parts = None, urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UnknownModel(f"{provider.url_variable} is no address: {value!r}", "mend or unset it")
    if parts.path.strip("/"):
        return value.rstrip("/")
    host = "127.0.0.1" if parts.hostname in _EVERYWHERE else parts.hostname
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}/v1"
