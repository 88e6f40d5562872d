"""The settings of a memory, each with the reason for its default. Read by the hub from ``[memory]``."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator

Preset: TypeAlias = Literal["best", "semantic", "keyword"]
Finds: TypeAlias = Literal["lines", "chunks"]


class MemorySettings(BaseModel):
    """How text is cut, ranked and handed out. All have defaults; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    embedder: str = Field(
        default="static",
        description="What finds by meaning: 'static' is the embedded English one, 'local' a stronger one for about a"
        " hundred languages (the extra 'embedder'), 'PROVIDER/MODEL' a server's; 'none' finds by words only.",
    )
    preset: Preset = Field(
        default="best",
        description="Weights of the two legs (meaning/words): 'best' 0.4/0.6, 'semantic' 0.7/0.3, 'keyword' 0.4/0.6.",
    )
    vector_weight: float | None = Field(
        default=None,
        description="Weight of the leg that finds by meaning, in place of the preset's.",
    )
    keyword_weight: float | None = Field(
        default=None,
        description="Weight of the leg that finds by words, in place of the preset's.",
    )
    min_score: float = Field(
        default=0.3,
        ge=0,
        le=1,
        description="Share of a question's telling words, the rare ones counting more, that one piece has to have for a"
        " find; below it, and below min_cosine, nothing is handed out.",
    )
    min_cosine: float = Field(
        default=0.3,
        ge=-1,
        le=1,
        description="Cosine from which on a piece is a find though it has none of the words; it depends on the"
        " embedder.",
    )
    tail: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description="Once there is a find, others are handed out down to this share of the best score.",
    )
    label_boost: float = Field(
        default=0.8,
        ge=0,
        le=10,
        description="How much more a line counts that begins with a name from the question ('- Ada: ...').",
    )
    finds: Finds = Field(
        default="lines",
        description="What is handed out: 'lines' that fit, within max_characters, or the whole 'chunks' they are in.",
    )
    limit: int = Field(
        default=6,
        ge=1,
        le=50,
        description="How many finds a search hands out.",
    )
    max_characters: int = Field(
        default=1000,
        ge=100,
        le=4000,
        description="Longest text of one find, in characters.",
    )
    candidates: int = Field(
        default=60,
        ge=10,
        le=4096,
        description="How many pieces are ranked, beside those around them.",
    )
    half_life_days: float = Field(
        default=30,
        gt=0,
        description="After this many days a dated note has lost half of the score it can lose to age.",
    )
    decay_floor: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="The share of its score that a note keeps at any age.",
    )
    chunk_tokens: int = Field(
        default=400,
        ge=50,
        le=2000,
        description="Longest passage kept together, about, in tokens.",
    )
    chunk_overlap: int = Field(
        default=80,
        ge=0,
        le=500,
        description="Tokens that two neighbouring passages share.",
    )
    unit_tokens: int = Field(
        default=100,
        ge=20,
        le=400,
        description="Longest piece that is ranked by itself (a bullet, a paragraph), in tokens.",
    )
    extra: tuple[str, ...] = Field(
        default=(),
        description="Other files that the owner's home recalls, as patterns: ['projects/**/*.md', '~/Notes/**/*.md'].",
    )

    @field_validator("extra")
    @classmethod
    def _check_extra(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            if ".." in pattern.split("/"):
                raise ValueError(f"{pattern!r} climbs with '..': write the whole path, beginning with / or ~")
        return value

    postings: int = Field(
        default=4000,
        ge=500,
        description="How many pieces with one of the words are looked at; of a word that more have, the newest and"
        " those that have a rarer word too.",
    )
    debounce_seconds: float = Field(
        default=1.5,
        ge=0,
        description="How long the files have to be quiet before they are read.",
    )
    reconcile_seconds: float = Field(
        default=300,
        gt=0,
        description="How often a watched folder is compared as a whole, in case an event was lost.",
    )
