"""
Taking credentials out of a text that is kept: what was found is replaced, the rest stays as it stands.

The detector says whether a text holds a credential, not where. So the shortest beginning of a text that holds one is
sought, then the shortest end of that. If one word alone in it can be the credential it is masked, else all of it. A
text in which something is still found after that is masked as a whole: nothing gets through for want of a place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from memoryd.model.message_draft import MASK

__all__ = ["MASK", "Find", "Given", "Looks", "mask_text"]

MOST_MASKED = 20  # credentials in one line; with more the line is masked
_KEY_BLOCK = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*-----|\Z)", re.DOTALL
)
_MADE_UP = re.compile(r"(?=.*\d)(?=.*[^\W\d_])")
LOOKS_A_MESSAGE = 10  # how often each character of a message is looked at, at the most
A_LOOK = 16  # characters that take as long as beginning to look
LOOKS, LEAST_LOOKS = 8, 1 << 15  # how often each character is looked at, at the most, to tell where a credential is
WIDTHS = (2, 4, 8)  # lines, blank ones too, over which a credential may go …
BLOCK = 2 * WIDTHS[-1]  # … among so many
LONG_LINE = 1000  # characters; what is longer is looked at in parts
_WORDS = re.compile(r"\s+|\S+")

Find = Callable[[str], object]


class Given(Exception):
    """No one waits any more for what was looked for."""


@dataclass(slots=True)
class Looks:
    """
    `find` over all texts of one message, so that the cost of a message is linear in its bytes.

    Each text is looked at once for certain. Where LOOKS_A_MESSAGE times the characters of the message were looked at,
    the place of a credential is sought no more: a text that holds one is masked whole, and so is what stands next to a
    name that may say that it is one. Given is raised once `is_gone` says that no one waits.
    """

    find: Callable[[str], object]
    characters: int
    """Of all texts of the message."""
    names_credential: Callable[[str], object] = bool
    """Whether a name may say of what stands next to it that it is a credential."""
    is_gone: Callable[[], bool] = lambda: False
    _left: int = field(init=False)
    _names: dict[str, bool] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with the whole budget."""
        self._left = LOOKS_A_MESSAGE * self.characters + LEAST_LOOKS

    def __call__(self, text: str) -> object:
        """Look at a text."""
        if self.is_gone():
            raise Given
        self._left -= len(text) + A_LOOK
        return self.find(text)

    @property
    def are_used_up(self) -> bool:
        """Whether what follows is looked at only once."""
        return self._left < 0

    def telling(self, names: Iterable[str]) -> Iterator[str]:
        """Yield of some names, of each its beginning, those that may say what stands next to them."""
        for name in names:
            known = self._names.get(name)
            if known is None:
                self._left -= len(name) + A_LOOK
                known = self._names[name] = bool(self.names_credential(name))
            if known:
                yield name


class _Counted:
    """`find`, and how many characters it may still look at: beyond that, a piece is masked as a whole."""

    def __init__(self, find: Find, text: str) -> None:
        self._find = find
        self.left = LOOKS * len(text) + LEAST_LOOKS

    def plain(self, text: str) -> object:
        """Look at a text that is looked at once for certain."""
        return self._find(text)

    def __call__(self, text: str) -> object:
        self.left -= len(text)
        return self._find(text)


def mask_text(text: str, find: Find) -> str:
    """Return a text without credentials; `find` says, by something true, that a text holds one."""
    if not text or not find(text):
        return text
    if isinstance(find, Looks) and find.are_used_up:
        return MASK
    counted = _Counted(find, text)
    pieces = [_mask_run(piece, counted) if find(piece) else piece for piece in _pieces(_KEY_BLOCK.sub(MASK, text))]
    masked = "".join(pieces)
    if find(masked):  # it goes over several pieces
        for first in range(0, len(pieces), BLOCK // 2):  # whatever goes over half as many lies within one of these
            block = pieces[first : first + BLOCK]
            if counted.plain("".join(block)):
                for width in WIDTHS:
                    block = _masked_together(block, width, counted)
                pieces[first : first + BLOCK] = block
        masked = "".join(pieces)
    return MASK if find(masked) else masked


def _masked_together(pieces: list[str], width: int, find: _Counted) -> list[str]:
    """Return pieces without the credentials that go over so many of them."""
    done = list(pieces)
    for n in range(len(done) - width + 1):
        together = "".join(done[n : n + width])
        if find.plain(together):
            done[n : n + width] = [_mask_run(together, find), *[""] * (width - 1)]
    return done


def _pieces(text: str) -> Iterator[str]:
    """Yield the lines of a text, of long ones parts that end between words."""
    for line in text.splitlines(keepends=True):
        at = 0
        while len(line) - at > LONG_LINE:
            cut = line.rfind(" ", at + 1, at + LONG_LINE)
            end = at + LONG_LINE if cut < 0 else cut
            yield line[at:end]
            at = end
        yield line[at:]


def _mask_run(text: str, find: _Counted) -> str:
    """Return a text with MASK in place of each credential, or MASK alone."""
    ending = text[len(text.rstrip("\r\n")) :]
    words = _WORDS.findall(text.rstrip("\r\n"))
    for _ in range(MOST_MASKED):
        if not find("".join(words)):
            return "".join(words) + ending
        if find.left < 0:
            break
        words = _mask_first(words, find)
    return MASK + ending


def _mask_first(words: list[str], find: Find) -> list[str]:
    """Return words with the first credential masked: of the shortest run that holds one, the word that must be it."""
    low, high = 1, len(words)
    while low < high:
        middle = (low + high) // 2
        if find("".join(words[:middle])):
            high = middle
        else:
            low = middle + 1
    end = low
    low, high = 0, end - 1
    while low < high:
        middle = (low + high + 1) // 2
        if find("".join(words[middle:end])):
            low = middle
        else:
            high = middle - 1
    run = words[low:end]
    likely = [n for n, word in enumerate(run) if _MADE_UP.search(word) and not find("".join(_without(run, n)))]
    if len(likely) == 1:
        return [*words[:low], *_without(run, likely[0]), *words[end:]]
    return [*words[:low], MASK, *words[end:]]


def _without(run: list[str], n: int) -> list[str]:
    return [*run[:n], MASK, *run[n + 1 :]]
