"""Counting tokens exactly, with tokenizers that the operator has put into a directory."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock

import tokenizers

from memoryd.errors import InvalidArgument

__all__ = ["InstalledTokenizers"]

MOST_LOADED = 8  # tokenizers in memory, of about 10 MB each
MOST_BYTES = 64 << 20  # of a file
_NAME = re.compile(r"[\w][\w.+-]{0,63}")


class InstalledTokenizers:
    """Tokenizers in the Hugging Face format: NAME.json or NAME/tokenizer.json in a directory."""

    def __init__(self, directory: Path) -> None:
        """Look there when one is asked for; the directory may be missing."""
        self._directory = directory
        self._loaded: OrderedDict[Path, tuple[int, tokenizers.Tokenizer]] = OrderedDict()
        self._lock = Lock()

    def names(self) -> list[str]:
        """Return the names of those that are there."""
        try:
            entries = sorted(self._directory.iterdir())
        except OSError:
            return []
        files = [entry.stem for entry in entries if entry.suffix == ".json"]
        return [*files, *(entry.name for entry in entries if (entry / "tokenizer.json").is_file())]

    def counter(self, name: str) -> Callable[[list[str]], list[int]]:
        """Return what counts the tokens of texts, special ones apart; InvalidArgument if it is not installed."""
        found = next((path for path in self._places(name) if path.is_file()), None)
        if found is None:
            known = ", ".join(self.names()) or "none"
            raise InvalidArgument(f"no tokenizer {name!r} is installed; there is: {known}", field="tokenizer")
        tokenizer = self._load(found, name)

        def count(texts: list[str]) -> list[int]:
            return [len(made) for made in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

        return count

    def _places(self, name: str) -> list[Path]:
        if not _NAME.fullmatch(name):
            return []
        return [self._directory / f"{name}.json", self._directory / name / "tokenizer.json"]

    def _load(self, path: Path, name: str) -> tokenizers.Tokenizer:
        with self._lock:
            state = path.stat()
            known = self._loaded.get(path)
            if known is None or known[0] != state.st_mtime_ns:
                if state.st_size > MOST_BYTES:
                    raise InvalidArgument(f"tokenizer {name!r} has more than {MOST_BYTES} bytes", field="tokenizer")
                try:
                    made = tokenizers.Tokenizer.from_str(path.read_text(encoding="utf-8"))
                except Exception as error:  # noqa: BLE001  the library raises what it likes
                    raise InvalidArgument(f"tokenizer {name!r} cannot be read: {error}", field="tokenizer") from None
                made.no_padding()
                made.no_truncation()
                known = (state.st_mtime_ns, made)
            self._loaded[path] = known
            self._loaded.move_to_end(path)
            while len(self._loaded) > MOST_LOADED:
                self._loaded.popitem(last=False)
            return known[1]
