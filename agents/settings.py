"""The settings of the models and of what they may cost: ``[models]`` and ``[budget]`` of the configuration file.

Most people write one line of it, the default model, and perhaps its address; what is beside ``default`` belongs to
that model. A table ``[models.<name>]`` describes one more. Knows no provider and resolves nothing.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    SecretStr,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails

MODEL_FORMS = (
    "openai/gpt-6.1-terra",
    "anthropic/claude-haiku-5-5",
    "ollama/qwen3:4b",
    "local/smollm2",
    "vllm/qwen3-32b",
)
"""How a model is written: two providers that want a key, Ollama, the embedded one, a server of one's own."""


def _no_stand_in(name: str) -> str:
    """The help and the messages say PROVIDER/MODEL, which is easily pasted as it is."""
    provider, _, model = name.partition("/")
    if provider.casefold() == "provider" or model == "MODEL":
        raise ValueError(f"must name a model, and {name} only shows the form: {', '.join(MODEL_FORMS)}")
    return name


ModelName = Annotated[str, AfterValidator(_no_stand_in)]
"""A model as provider/model, or the name of a table; whether it means anything is not checked here."""


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise ValueError("must name at least one model")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"must name each model once, and {twice} is there twice")
    return names


ModelNames = Annotated[
    Annotated[ModelName, Tag("one")] | Annotated[tuple[ModelName, ...], AfterValidator(_each_once), Tag("several")],
    Discriminator(lambda value: "several" if isinstance(value, list | tuple) else "one"),
]
"""One model, or several in the order in which they are asked."""


def in_order(names: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """What a setting of the type ``ModelNames`` names; empty for None."""
    return (names,) if isinstance(names, str) else names or ()


class ModelSettings(BaseModel):
    """How one model is reached and what it can do. Everything is optional."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: str | None = Field(
        default=None,
        description="Address of an OpenAI-compatible API, usually ending in /v1. Not set: the provider's own.",
        examples=["http://127.0.0.1:8080/v1"],
    )
    api_key: SecretStr | None = Field(
        default=None,
        description="Key, best written as a variable. Not set: the provider's usual environment variable.",
        examples=["${OPENAI_API_KEY}"],
    )
    client: Literal["lean", "litellm"] | None = Field(
        default=None,
        description="'lean' speaks the OpenAI format directly, 'litellm' knows every provider. Not set: by provider.",
    )
    context: int | None = Field(
        default=None,
        ge=1024,
        description="Size of the context window in tokens. Not set: what the provider's models usually have.",
    )
    max_output: int | None = Field(
        default=None, ge=16, description="Longest answer in tokens. Not set: the model's own limit."
    )
    uses_tools: bool | None = Field(
        default=None,
        description="Whether the model can call tools; false lets the program drive the memory. Not set: yes, "
        "except for the embedded model.",
    )
    sees_images: bool | None = Field(
        default=None,
        description="Whether the model takes images; one that doesn't is told where they lie. Not set: what is known "
        "of the model, else no.",
    )
    price_input: float | None = Field(
        default=None,
        ge=0,
        examples=[0.25],
        description="USD per million tokens of input. Not set: what is known of the model, nothing for one on this "
        "machine, else unknown.",
    )
    price_output: float | None = Field(
        default=None, ge=0, examples=[2.0], description="USD per million tokens of output; belongs to price_input."
    )
    price_cached: float | None = Field(
        default=None,
        ge=0,
        examples=[0.025],
        description="USD per million tokens of input that the provider read from its cache. Not set: price_input.",
    )
    price_written: float | None = Field(
        default=None,
        ge=0,
        examples=[0.3],
        description="USD per million tokens of input that the provider wrote into its cache. Not set: price_input.",
    )
    temperature: float | None = Field(
        default=None, ge=0, le=2, description="0 (always the likeliest word) to 2. Not set: the provider's default."
    )
    timeout: float = Field(
        default=120, gt=0, description="How long the model may say nothing, in seconds, before a call counts as failed."
    )

    @field_validator("base_url")
    @classmethod
    def _check_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)  # raises ValueError itself for a port that is no number
        if parts.scheme not in ("http", "https") or not parts.hostname or (parts.port or 1) < 1:
            raise ValueError("must be an address such as http://127.0.0.1:8080/v1")
        if parts.username or parts.password:
            raise ValueError("must not hold a password: put it into api_key")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _prices_belong_together(self) -> Self:
        given = [getattr(self, f"price_{kind}") is not None for kind in ("input", "output", "cached", "written")]
        if any(given) and not all(given[:2]):
            raise ValueError("must have both price_input and price_output, or no price at all")
        return self

    @field_validator("api_key")
    @classmethod
    def _strip(cls, value: SecretStr | None) -> SecretStr | None:
        """A key that was pasted with its line end is the key."""
        return SecretStr(value.get_secret_value().strip()) if value is not None else None


class NamedModel(ModelSettings):
    """A table ``[models.<name>]``: agents and ``default`` may call the model by this name."""

    model: ModelName | None = Field(
        default=None,
        description="The model as provider/model. Not set: the table's own name.",
        examples=["vllm/qwen3-32b"],
    )


class ModelsSettings(ModelSettings):
    """The section ``[models]``."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, NamedModel] = Field(init=False)

    default: ModelNames | None = Field(
        default=None,
        description="The model to talk to, as provider/model or the name of a [models.<name>] table. A list names "
        "those too that are asked, in order, while the first can't answer. Not set: a provider whose key is in the "
        "environment, else the embedded model, else none.",
        examples=["ollama/qwen3:4b", ["anthropic/claude-haiku-5-5", "openai/gpt-6.1-terra"]],
    )
    small: ModelNames | None = Field(
        default=None,
        description="A cheaper model that can call tools, for what nobody sees: notes kept and summaries made when a "
        "conversation grows long. A list as in `default`. Where it can't answer, and where it is not set: the agent's "
        "own model.",
        examples=["openai/gpt-6-luna"],
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, data: Any) -> Any:
        """A key that is neither ours nor a table is a mistyped one, not a model."""
        if not isinstance(data, dict):
            return data
        unknown = [k for k, v in data.items() if k not in cls.model_fields and not isinstance(v, dict | NamedModel)]
        if unknown:
            errors = [InitErrorDetails(type="extra_forbidden", loc=(key,), input=data[key]) for key in unknown]
            raise ValidationError.from_exception_data(cls.__name__, errors)
        return data

    def named(self) -> dict[str, NamedModel]:
        """The ``[models.<name>]`` tables by name."""
        return dict(self.__pydantic_extra__ or {})


class BudgetSettings(BaseModel):
    """The section ``[budget]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    daily_usd: float | None = Field(
        default=None,
        gt=0,
        description="What all agents together may spend on models in a day, in USD; then they say so and ask none "
        "that costs money until midnight. Calls of unknown price are not counted. Not set: no budget.",
        examples=[2.5],
    )
