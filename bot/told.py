"""What the owner was told already: a sentence that is still true is not said a second time.

One small JSON file, the last sentence for each subject. A convenience and no state: unreadable or lost, everything is
said once more. Knows no sentence's meaning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from workspaces import files


class Told:
    """The sentences in ``file``, which is made when the first was said."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def news(self, sentences: Mapping[str, str | None]) -> tuple[str, ...]:
        """Those that were not the last on their subject; None is nothing to say on one."""
        _, known = self._read()
        return tuple(text for subject, text in sentences.items() if text and known.get(subject) != text)

    def keep(self, sentences: Mapping[str, str | None]) -> None:
        """They were said. Call it after that: better twice than never."""
        before, known = self._read()
        after = {subject: text for subject, text in {**known, **sentences}.items() if text}
        if after == known:
            return
        data = json.dumps(after, ensure_ascii=False, indent=1).encode()
        with suppress(OSError):  # then they are said again
            files.create(self._file, data) if before is None else files.replace(self._file, data, read=before)

    def _read(self) -> tuple[bytes | None, dict[str, str]]:
        try:
            data = self._file.read_bytes()
        except OSError:
            return None, {}
        try:
            found = json.loads(data)
        except ValueError:
            return data, {}
        return data, {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}
