"""What ranking looks at besides words and vectors: of each document, as small numbers."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryd.index.arrays import Pieces
from memoryd.index.columns import KIND_CODES
from memoryd.knowledge.grammar.dates import Days
from memoryd.knowledge.text_traits import SHARES, TextTraits, from_text, read_once, read_text
from memoryd.model.batch import Batch
from memoryd.model.conversation import Role
from memoryd.model.memory import AT_ONCE_US, HAPPENED, USER_WORDS, Kind, Memory
from memoryd.model.times import DAY_US, EPOCH
from memoryd.model.trust import Trust
from memoryd.model.validation import fold

__all__ = ["Loading", "Trait", "Traits", "first_name", "traits_of"]

CHARACTERS_A_PIECE = 4  # of English, in word pieces of the packaged model
MOST_PIECES = 254
NO_SPEAKER = 0
UNDATED = -(10**8)  # the day of what has none: far from all others
ROLES = frozenset(role.value for role in Role)
NO_NAMES = frozenset({*USER_WORDS, *ROLES})
DATED_KINDS = frozenset(kind.value for kind in HAPPENED)
DATED_CODES = [KIND_CODES[kind] for kind in HAPPENED]
SAID = KIND_CODES[Kind.EPISODE]
EPOCH_DAY = EPOCH.toordinal()
DTYPES = (np.int32, np.uint8, np.uint8, np.uint8, np.uint8, np.int64, np.bool_, np.bool_, np.bool_)


class Trait(NamedTuple):
    """What is read of one memory."""

    day: int
    """When it happened or was said, as an ordinal of days; UNDATED for a statement that tells no time of its own."""
    pieces: int
    """Its length in word pieces, roughly, at most MOST_PIECES."""
    text: TextTraits
    speaker: str
    """The first name of who said it, folded; "" where it is not known by name."""
    is_assistant: bool
    is_said: bool
    """Whether it is a message or another text of kind EPISODE."""
    is_trusted: bool
    """Whether it is of higher trust than a sandbox's."""


def _number_of(name: str) -> int:
    """Return the number of a name, another one in each process (Python salts it): names themselves are not kept."""
    return (hash(name) or 1) if name else NO_SPEAKER


def first_name(speaker: str) -> str:
    """Return the first name of a speaker, folded; "" for a role."""
    name = fold(speaker).split()[0] if speaker.strip() else ""
    return "" if name in NO_NAMES else name


def traits_of(memory: Memory) -> Trait:
    """Read a memory; its relative dates are seen from its own time."""
    episode = memory.kind is Kind.EPISODE
    dated = memory.kind in HAPPENED or memory.own_event_time is not None
    speaker, is_assistant = _voice(memory.source.speaker, memory.category) if episode else ("", False)
    return Trait(
        memory.event_time.toordinal() if dated else UNDATED,
        min(MOST_PIECES, len(memory.content) // CHARACTERS_A_PIECE + 2),
        _text_of(memory, read_once),
        speaker,
        is_assistant,
        episode,
        not memory.trust.is_sandbox,
    )


def _text_of(memory: Memory, read: Callable[..., TextTraits]) -> TextTraits:
    said, dated = memory.kind is Kind.EPISODE, memory.kind in HAPPENED
    return read(memory.content, memory.event_time.date(), is_said=said, is_dated=dated)


def _voice(speaker: str, category: str) -> tuple[str, bool]:
    """Return the first name of who said a text, "" if no one is known to have, and whether it was the assistant."""
    role = category if category in ROLES else fold(speaker)
    return first_name(speaker), role == Role.ASSISTANT.value


UNREAD = 0


class _Read(dict[tuple[str, str], int]):
    """Numbers what texts of the store say, by the kind of the memory and the text; each is read once."""

    def __init__(self) -> None:
        self.asking, self.signs, self.standing = array("B", [0]), array("B", [0]), array("B", [0])  # UNREAD's: replaced
        self.days: dict[int, tuple[Days, ...]] = {}
        """Of what names any, by its number."""

    def __missing__(self, key: tuple[str, str]) -> int:
        kind, text = key
        read = from_text(text, is_said=kind == Kind.EPISODE.value, is_dated=kind in DATED_KINDS)
        self[key] = UNREAD if read is None else self.number(read)
        return self[key]

    def number(self, read: TextTraits) -> int:
        """Return a number for what was read."""
        number = len(self.asking)
        self.asking.append(read.asking)
        self.signs.append(read.signs)
        self.standing.append(read.standing)
        if read.days:
            self.days[number] = read.days
        return number


class Loading:
    """What traits begin with."""

    def __init__(self) -> None:
        self.columns = Pieces(*DTYPES)
        """Days, pieces, asking, signs, standing, speakers, whether the assistant, whether said, whether trusted."""
        self.named = array("i"), array("i"), array("i")
        """The days that texts name: whose, first and last."""
        self.count = 0
        self._read = _Read()
        self._voices: dict[tuple[str, str], tuple[int, bool]] = {}

    def add(self, batch: Batch, kinds: NDArray[np.uint8]) -> None:
        """Take the next documents, of these KIND_CODES."""
        count = len(batch.kinds)
        read = self._read
        keys = zip(batch.kinds, batch.traits, strict=True)
        numbers = np.fromiter(map(read.__getitem__, keys), dtype=np.int64, count=count)
        for place in np.flatnonzero(numbers == UNREAD).tolist():
            numbers[place] = read.number(_text_of(batch.read(batch.rows[place]), read_text))
        # copies, as an array that lends its memory out cannot grow
        of_text = (read.asking, read.signs, read.standing)
        of_text_now = (np.frombuffer(one.tobytes(), dtype=np.uint8)[numbers] for one in of_text)
        speakers, assistants = np.full(count, NO_SPEAKER, dtype=np.int64), np.zeros(count, dtype=np.bool_)
        for place, provenance in batch.said:
            voice = provenance.speaker, provenance.category
            if voice not in self._voices:
                name, is_assistant = _voice(*voice)
                self._voices[voice] = _number_of(name), is_assistant
            speakers[place], assistants[place] = self._voices[voice]
        created, happened = batch.times.created, batch.times.happened
        dated = np.abs(happened - created) >= AT_ONCE_US
        happening = np.isin(kinds, DATED_CODES)
        self.columns.add(
            np.where(dated | happening, happened // DAY_US + EPOCH_DAY, UNDATED).astype(np.int32),
            np.minimum(MOST_PIECES, batch.characters // CHARACTERS_A_PIECE + 2).astype(np.uint8),
            *of_text_now,
            speakers,
            assistants,
            kinds == SAID,
            batch.trusts > Trust.SANDBOX.weight,
        )
        named_of, named_first, named_last = self.named
        for place, number in enumerate(numbers.tolist(), self.count):
            for days in read.days.get(number, ()):
                named_of.append(place)
                named_first.append(days.first)
                named_last.append(days.last)
        self.count += count


def _counts(values: NDArray[Any]) -> Counter[int]:
    known, counts = np.unique(values, return_counts=True)
    return Counter(dict(zip(known.tolist(), counts.tolist(), strict=True)))


def _years_of(days: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the years of some days, which are ordinals."""
    years = (days.astype(np.int64) - EPOCH_DAY).astype("datetime64[D]").astype("datetime64[Y]")
    return years.astype(np.int64) + EPOCH.year


class Traits:
    """
    Documents 0 … count − 1; one thread appends, others read.

    Who speaks, how long texts are and how much text there is: where anything is of higher trust than a sandbox's, as if
    that were all.
    """

    def __init__(self, loading: Loading | None = None) -> None:
        """Begin with what is loaded."""
        loading = loading or Loading()
        columns = loading.columns.joined()
        self._days, self._pieces, self._asking, self._signs, self._standing, self._speaker, self._assistant = columns[
            :7
        ]
        days, speaker, said, trusted = (one.view() for one in (self._days, self._speaker, *columns[7:]))
        self._named = loading.named
        self._all_speakers = _counts(speaker[speaker != NO_SPEAKER])
        """How many documents each speaker said, by the number of the name."""
        self._trusted_speakers = _counts(speaker[(speaker != NO_SPEAKER) & trusted])
        self._lengths = np.zeros((2, 2, MOST_PIECES + 1), dtype=np.int32)
        """How many documents have so many pieces, by whether they were said and whether they are trusted."""
        np.add.at(self._lengths, (said.astype(np.intp), trusted.astype(np.intp), self._pieces.view()), 1)
        self._years = _counts(_years_of(days[days != UNDATED]))
        """How many happened or were said in each year."""

    def append(self, document: int, trait: Trait) -> None:
        """Add the next document's."""
        speaker = _number_of(trait.speaker)
        self._days.append(trait.day)
        self._pieces.append(trait.pieces)
        self._asking.append(trait.text.asking)
        self._signs.append(trait.text.signs)
        self._standing.append(trait.text.standing)
        self._speaker.append(speaker)
        self._assistant.append(trait.is_assistant)
        for days in trait.text.days:
            for column, value in zip(self._named, (document, *days), strict=True):
                column.append(value)
        self._count_speaker(speaker, 1, is_trusted=trait.is_trusted)
        self._lengths[int(trait.is_said), int(trait.is_trusted), trait.pieces] += 1
        self._count_year(trait.day, 1)

    def remove(self, document: int, *, is_said: bool, is_trusted: bool) -> None:
        """Count a document no more, as it is dead."""
        self._count_speaker(int(self._speaker.view()[document]), -1, is_trusted=is_trusted)
        self._lengths[int(is_said), int(is_trusted), int(self._pieces.view()[document])] -= 1
        self._count_year(int(self._days.view()[document]), -1)

    def erase(self, documents: NDArray[np.int64]) -> None:
        """Forget what the words of dead documents said: the days that they name, what they ask, who spoke."""
        self._days.view()[documents] = UNDATED
        for column in (self._asking, self._signs, self._standing, self._speaker):
            column.view()[documents] = 0
        columns = [np.frombuffer(column.tobytes(), dtype=np.int32) for column in self._named]
        kept = ~np.isin(columns[0], documents)
        named_of, first, last = (array("i", column[kept].tobytes()) for column in columns)
        self._named = named_of, first, last  # at once: others may be reading

    def _count_speaker(self, speaker: int, step: int, *, is_trusted: bool) -> None:
        for counts in (self._all_speakers, self._trusted_speakers) if is_trusted else (self._all_speakers,):
            if speaker:
                counts[speaker] += step
                if not counts[speaker]:
                    del counts[speaker]

    def _count_year(self, day: int, step: int) -> None:
        if day == UNDATED:
            return
        year = date.fromordinal(day).year
        self._years[year] += step
        if not self._years[year]:
            del self._years[year]

    @property
    def years(self) -> frozenset[int]:
        """The years in which something happened or was said."""
        return frozenset(self._years)

    def text_pieces(self, *, is_said: bool, is_trusted: bool) -> int:
        """Return how much text there is of one sort, in word pieces."""
        return int(self._lengths[int(is_said), int(is_trusted)] @ np.arange(MOST_PIECES + 1))

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies, estimated."""
        return 17 * len(self._days) + 12 * len(self._named[0]) + 100 * len(self._all_speakers) + self._lengths.nbytes

    @property
    def median_pieces(self) -> int:
        """The median length of what was said, in word pieces; 0 where nothing was."""
        lengths = self._lengths[1, 1] if self._lengths[1, 1].any() else self._lengths[1, 0]
        total = int(lengths.sum())
        return int(np.searchsorted(np.cumsum(lengths), (total + 1) // 2)) if total else 0

    def pieces(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the lengths of some documents in word pieces."""
        return self._pieces.view()[rows].astype(np.float32)

    def asking(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return which shares of the sentences of some documents are questions."""
        return self._asking.view()[rows].astype(np.float32) / np.float32(SHARES)

    def have(self, signs: int, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some documents hold any of some signs."""
        held: NDArray[np.bool_] = (self._signs.view()[rows] & signs) != 0
        return held

    def standing(self, count: int) -> NDArray[np.uint8]:
        """Return of the first documents the TextTraits.standing; 0 of most."""
        return self._standing.view(count)

    @property
    def trusts_speakers(self) -> bool:
        """Whether anybody speaks in what is trusted: then no one else counts as a speaker."""
        return bool(self._trusted_speakers)

    @property
    def _speakers(self) -> Counter[int]:
        return self._trusted_speakers or self._all_speakers

    @property
    def has_speakers(self) -> bool:
        """Whether two speakers or more are known by name."""
        return len(self._speakers) > 1

    def speaks(self, name: str) -> bool:
        """Whether someone of that first name said something."""
        return _number_of(name) in self._speakers

    def said_by(self, name: str, count: int) -> NDArray[np.bool_]:
        """Return which of the first documents a speaker said, by the first name."""
        said: NDArray[np.bool_] = self._speaker.view(count) == _number_of(name)
        return said

    def said_by_others(self, name: str, count: int) -> NDArray[np.bool_]:
        """Return which of the first documents another speaker said who is known by name."""
        speakers = self._speaker.view(count)
        said: NDArray[np.bool_] = (speakers != _number_of(name)) & (speakers != NO_SPEAKER)
        return said

    def nobody_said(self, count: int) -> NDArray[np.bool_]:
        """Return which of the first documents no speaker said who is known by name, and the assistant did not."""
        unsaid: NDArray[np.bool_] = (self._speaker.view(count) == NO_SPEAKER) & ~self._assistant.view(count)
        return unsaid

    def by_assistant(self, count: int) -> NDArray[np.bool_]:
        """Return which of the first documents the assistant said."""
        return self._assistant.view(count)

    def days(self, count: int) -> NDArray[np.int32]:
        """Return the own days of the first documents."""
        return self._days.view(count)

    def named_days(self, count: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Return the intervals that the words of the first documents name: whose, first and last days."""
        columns = self._named
        # copies, as an array that lends its memory out cannot grow
        documents, first, last = (np.frombuffer(column.tobytes(), dtype=np.int32) for column in columns)
        known = min(int(np.searchsorted(documents, count)), len(first), len(last))
        return documents[:known], first[:known], last[:known]
