"""
`make eval`: what the daemon does with the texts of people who have not read its rules, through the real client.

Judged with the voices that nothing is tuned with. `everyday`: questions to a whole store. `noted`: those that it did
not answer, once what answers them is stored too. `answers`: contexts for questions, also of the store of somebody else.
`prompts`: contexts for what people type that is no question. `changes`: what becomes of an older statement when a newer
one comes, and of those of a whole store, all of which hold. `worth`: which sentences of a conversation are learnt.
`plain`: the same of single sentences. `people`: who is found in sentences with hard names. `odds`: fits what scores
say that the answer reader has read. `curves`: no daemon; draws what each reader finds by threshold.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from pathlib import Path

from memory_client import Draft, Filter, MemoryClient, MessageDraft, Role

from memoryd.model import limits
from tests.readers.curves import draw
from tests.readers.odds import odds
from tests.readers.people.found import people
from tests.readers.voices import Kept, Turn, Voice, voices
from tests.support import Daemon, running

FOLDER = Path(__file__).parent
STRONG = "strong"
FIRST = 5
EVERY_ELSEWHERE = 4  # question is asked of another's store too
MOST = 0.7  # of the words of what was learnt


def _when(day: date) -> datetime:
    return datetime.combine(day, clock(12), tzinfo=UTC)


def _share(some: float, of: float) -> str:
    return f"{some / of:.3f} of {of:.0f}" if of else "none"


def _run(memory: MemoryClient, job: str) -> None:
    run = memory.run_job(job)
    while memory.job_run(run.id).end_time is None:
        time.sleep(0.1)


Stores = Mapping[str, Sequence[str]]
"""By voice, the ids of its store by place; "" for what was refused."""


def _fill(daemon: Daemon, voice: Voice, user: str = "e") -> list[str]:
    """Add the store of a voice in order; return the ids by place."""
    drafts = [Draft(content=one.text, event_time=_when(one.day)) for one in voice.store]
    with daemon.client(f"{user}-{voice.id}") as memory:
        return [result.memory.id if result.memory else "" for result in memory.add_batch(drafts)]


def everyday(daemon: Daemon, some: Sequence[Voice], stores: Stores) -> None:
    """Print how many questions find what answers first, and how many of those without an answer find nothing."""
    told: Counter[str] = Counter()
    kinds: Counter[tuple[str, bool]] = Counter()
    for voice in some:
        with daemon.client(f"e-{voice.id}") as memory:
            ids = stores[voice.id]
            for question in voice.questions:
                found = memory.search(question.text, limit=10)
                right = {ids[place] for place in question.answers}
                strong = bool(found.hits) and found.hits[0].strength == STRONG
                if not right:
                    told["unanswerable"] += 1
                    told["empty"] += not found.hits
                    told["strong"] += strong
                    continue
                places = [n for n, hit in enumerate(found.hits) if right & {hit.memory.id, *hit.same_ids}]
                is_first = bool(places) and places[0] == 0
                told["asked"] += 1
                told["first"] += is_first
                told["among five"] += bool(places) and places[0] < FIRST
                told["nothing"] += not found.hits
                told["strong"] += strong
                told["strong and right"] += strong and is_first
                kinds[question.kind, is_first] += 1
    print(
        f"everyday: right first {_share(told['first'], told['asked'])}, among five"
        f" {_share(told['among five'], told['asked'])}, nothing found {_share(told['nothing'], told['asked'])};"
        f" without an answer empty {_share(told['empty'], told['unanswerable'])};"
        f" 'strong' is right {_share(told['strong and right'], told['strong'])}"
    )
    for kind in sorted({kind for kind, _ in kinds}):
        print(f"  {kind}: right first {_share(kinds[kind, True], kinds[kind, True] + kinds[kind, False])}")


def noted(daemon: Daemon, some: Sequence[Voice], _: Stores) -> None:
    """Print how many questions without an answer find one, once notes are stored; and what they find beside others."""
    for n, name in enumerate(("noted", "noted in passing")):
        told: Counter[str] = Counter()
        for voice in some:
            asked = [question for question in voice.questions if question.notes]
            with _with_notes(daemon, voice, f"n{n}", [question.notes[n] for question in asked]) as (memory, ids):
                for question, right in zip(asked, ids, strict=True):
                    hits = memory.search(question.text, limit=FIRST).hits
                    places = [n for n, hit in enumerate(hits) if right in (hit.memory.id, *hit.same_ids)]
                    told["first"] += places[:1] == [0]
                    told["among five"] += bool(places)
                    told["shown"] += right in _shown(memory, question.text)
            told["asked"] += len(asked)
        print(
            f"{name}: right first {_share(told['first'], told['asked'])}, among five"
            f" {_share(told['among five'], told['asked'])}, shown in contexts {_share(told['shown'], told['asked'])}"
        )
    told = Counter()
    for voice in some:
        asked = [question for question in voice.questions if question.beside]
        with _with_notes(daemon, voice, "b", [question.beside for question in asked]) as (memory, _ids):
            for question in asked:
                hits = memory.search(question.text, limit=FIRST).hits
                told["strong"] += bool(hits) and hits[0].strength == STRONG
                told["empty"] += not _shown(memory, question.text)
        told["asked"] += len(asked)
    print(
        f"beside: contexts empty {_share(told['empty'], told['asked'])}, 'strong' at first"
        f" {_share(told['strong'], told['asked'])}"
    )


@contextmanager
def _with_notes(
    daemon: Daemon, voice: Voice, prefix: str, notes: Sequence[str]
) -> Iterator[tuple[MemoryClient, list[str]]]:
    """Yield a client of a store with notes, and the ids of these."""
    _fill(daemon, voice, prefix)
    with daemon.client(f"{prefix}-{voice.id}") as memory:
        added = memory.add_batch([Draft(content=note) for note in notes])
        yield memory, [one.memory.id if one.memory else "" for one in added]


def answers(daemon: Daemon, some: Sequence[Voice], stores: Stores) -> None:
    """Print of how many questions the context shows what answers, how much else, and how many show nothing."""
    told: Counter[str] = Counter()
    for n, voice in enumerate(some):
        with daemon.client(f"e-{voice.id}") as memory, daemon.client(f"e-{some[n - 1].id}") as another:
            for question in voice.questions:
                _note_shown(
                    told, _shown(memory, question.text), {stores[voice.id][place] for place in question.answers}
                )
            for question in voice.questions[::EVERY_ELSEWHERE]:
                told["elsewhere"] += 1
                told["elsewhere empty"] += not _shown(another, question.text)
    print(
        f"answers: {_shown_share(told)}; without an answer empty {_share(told['empty'], told['unanswerable'])}; of"
        f" another's store empty {_share(told['elsewhere empty'], told['elsewhere'])}"
    )


def prompts(daemon: Daemon, some: Sequence[Voice], stores: Stores) -> None:
    """Print of how many texts that are no questions the context shows what helps, how much else, and how many none."""
    told: Counter[str] = Counter()
    for voice in some:
        with daemon.client(f"e-{voice.id}") as memory:
            for prompt in voice.prompts:
                _note_shown(told, _shown(memory, prompt.text), {stores[voice.id][place] for place in prompt.useful})
    print(f"prompts: {_shown_share(told)}; where nothing helps empty {_share(told['empty'], told['unanswerable'])}")


def _shown(memory: MemoryClient, prompt: str) -> list[str]:
    built = memory.context(prompt, sections=("relevant_memory",))
    return [item.id for section in built.sections for item in section.items]


def _note_shown(told: Counter[str], shown: list[str], right: set[str]) -> None:
    if not right:
        told["unanswerable"] += 1
        told["empty"] += not shown
        return
    told["asked"] += 1
    told["right"] += len(right)
    told["shown"] += len(shown)
    told["right shown"] += len(right.intersection(shown))
    told["first"] += bool(shown) and shown[0] in right
    told["met"] += bool(right.intersection(shown))
    told["nothing"] += not shown


def _shown_share(told: Mapping[str, int]) -> str:
    return (
        f"contexts show one that is right {_share(told['met'], told['asked'])}, first"
        f" {_share(told['first'], told['asked'])}, nothing {_share(told['nothing'], told['asked'])}; of what is right"
        f" shown {_share(told['right shown'], told['right'])}, of what is shown right"
        f" {_share(told['right shown'], told['shown'])}"
    )


def changes(daemon: Daemon, some: Sequence[Voice], stores: Stores) -> None:
    """Print what becomes of an older statement, by what a newer one does to it; and of whole stores that all hold."""
    told: Counter[tuple[str, str]] = Counter()
    wanted = Filter(include_superseded=True)
    pairs = [
        (voice, later.effect, voice.store[place], later)
        for voice in some
        for later in voice.later
        for place in later.old
    ]
    for n, (_, _, old, later) in enumerate(pairs):
        with daemon.client(f"c-{n}") as memory:
            memory.add(old.text, event_time=_when(old.day))
            memory.add(later.text, event_time=_when(later.day))
    with daemon.client() as host:
        _run(host, "contradictions")
    for n, (_, effect, old, _) in enumerate(pairs):
        with daemon.client(f"c-{n}") as memory:
            stored = next((one for one in memory.pages(page_size=10, filter=wanted) if one.content == old.text), None)
            told[effect, "all"] += 1
            if stored is None or stored.supersede_time is not None:
                told[effect, "replaced"] += 1
            elif stored.contested_with:
                told[effect, "contested"] += 1
    for effect in ("replaces", "contests", "both_hold"):
        count = told[effect, "all"]
        print(
            f"changes, {effect}: replaced {_share(told[effect, 'replaced'], count)},"
            f" contested {_share(told[effect, 'contested'], count)}"
        )
    marks: Counter[str] = Counter()
    for voice in some:
        with daemon.client(f"e-{voice.id}") as memory:
            for one in memory.pages(page_size=1000, filter=wanted):
                marks["all"] += 1
                marks["replaced"] += one.supersede_time is not None
                marks["contested"] += bool(one.contested_with)
    print(
        f"changes, whole stores that all hold: replaced {_share(marks['replaced'], marks['all'])},"
        f" contested {_share(marks['contested'], marks['all'])}"
    )


def _drafts(turns: Sequence[Turn]) -> list[MessageDraft]:
    begun = datetime(2026, 8, 1, 9, tzinfo=UTC)
    return [
        MessageDraft(
            content=turn.text,
            role=Role.ASSISTANT if turn.who == "assistant" else Role.USER,
            name="" if turn.who in {"assistant", "user"} else turn.who,
            create_time=begun + timedelta(minutes=n),
        )
        for n, turn in enumerate(turns)
    ]


def worth(daemon: Daemon, some: Sequence[Voice], stores: Stores) -> None:
    """Print how much is learnt of what is worth keeping, and how much of what is learnt is."""
    told: Counter[str] = Counter()
    labels: Counter[tuple[str, bool]] = Counter()
    appended: dict[str, dict[str, Turn]] = {}
    for voice in some:
        with daemon.client(f"w-{voice.id}") as memory:
            drafts = _drafts(voice.dialogue)
            said = [
                one
                for first in range(0, len(drafts), limits.MAX_BATCH)
                for one in memory.append("talk", drafts[first : first + limits.MAX_BATCH]).messages
            ]
            appended[voice.id] = {one.id: turn for one, turn in zip(said, voice.dialogue, strict=True)}
    with daemon.client() as host:
        _run(host, "extraction")
    for voice in some:
        with daemon.client(f"w-{voice.id}") as memory:
            learnt = list(memory.pages(page_size=1000))
        found: set[tuple[str, str]] = set()
        for one in learnt:
            turns = [appended[voice.id][place] for place in one.source.message_ids if place in appended[voice.id]]
            meant = [(turn.text, kept.sentence) for turn in turns for kept in turn.kept if _is_of(one.content, kept)]
            told["learnt"] += 1
            told["right"] += bool(meant)
            found.update(meant)
        for turn in voice.dialogue:
            for kept in turn.kept:
                told["kept"] += 1
                is_found = (turn.text, kept.sentence) in found
                told["found"] += is_found
                labels[kept.label, is_found] += 1
    print(
        f"worth: of what is worth keeping learnt {_share(told['found'], told['kept'])};"
        f" of what is learnt worth keeping {_share(told['right'], told['learnt'])}"
    )
    for label in sorted({label for label, _ in labels}):
        print(f"  {label}: learnt {_share(labels[label, True], labels[label, True] + labels[label, False])}")


def _is_of(content: str, kept: Kept) -> bool:
    """Whether what was learnt says a sentence: most of its words stand in it, or in it as it stands alone."""
    words, told = _words(content), _words(f"{kept.sentence} {kept.alone}")
    return len(words & told) >= MOST * len(words)


def _words(text: str) -> set[str]:
    return {word.strip(".,;:!?()'\"").lower() for word in text.split()}


def plain(daemon: Daemon, _some: Sequence[Voice], _stores: Stores) -> None:
    """Print how many of some plain sentences are learnt that are worth keeping, and how many that are not."""
    cases = [line.split("\t") for line in (FOLDER / "keeping" / "plain.tsv").read_text(encoding="utf-8").splitlines()]
    begun = datetime(2026, 8, 1, 9, tzinfo=UTC)
    for n, (_, sentence) in enumerate(cases):
        with daemon.client(f"p-{n}") as memory:
            memory.append("talk", [MessageDraft(content=sentence, role=Role.USER, create_time=begun)])
    with daemon.client() as host:
        _run(host, "extraction")
    told: Counter[tuple[str, bool]] = Counter()
    for n, (label, _) in enumerate(cases):
        with daemon.client(f"p-{n}") as memory:
            told[label, any(True for _ in memory.pages(page_size=10))] += 1
    for label in sorted({label for label, _ in told}):
        print(f"plain, {label}: learnt {_share(told[label, True], told[label, True] + told[label, False])}")
    worth_keeping = Counter({key: count for key, count in told.items() if key[0] != "none"})
    learnt = sum(count for (_, is_learnt), count in worth_keeping.items() if is_learnt)
    print(f"plain, all that is worth keeping: learnt {_share(learnt, worth_keeping.total())}")


SETS = {
    "everyday": everyday,
    "noted": noted,
    "answers": answers,
    "prompts": prompts,
    "changes": changes,
    "worth": worth,
    "plain": plain,
    "people": people,
    "odds": odds,
}
CURVES = "curves"
STORED = frozenset({"everyday", "answers", "prompts", "changes", "odds"})
"""The sets that ask of the stores of the voices."""


def main() -> int:
    """Print the figures of some sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = ", ".join((*SETS, CURVES))
    parser.add_argument(
        "--sets", default=",".join([*SETS][:-1]), help=f"comma-separated: {known}; all but the last two by default"
    )
    parser.add_argument("--tuned", action="store_true", help="with the voices that the readers are tuned with, instead")
    parser.add_argument("--config", default="", help="lines for the daemon: $'[readers]\\nkeeping = \"none\"'")
    args = parser.parse_args()
    names = args.sets.split(",")
    unknown = [name for name in names if name not in {*SETS, CURVES}]
    if unknown:
        parser.error(f"there is no set {unknown[0]!r}; there are: {known}; with DATA=folder also those of it")
    some = [voice for voice in voices() if voice.is_apart is not args.tuned]
    print(f"{len(some)} voices")
    if CURVES in names:
        names.remove(CURVES)
        draw(some, to_docs=not args.tuned)
    if names:
        _judge(names, some, args.config)
    return 0


def _judge(names: Sequence[str], some: Sequence[Voice], config: str) -> None:
    with tempfile.TemporaryDirectory(prefix="memoryd-voices-") as folder:
        place = Path(folder)
        place.chmod(0o700)
        with running(place, config=f"[learning]\nwait_s = 86400\n{config}\n") as daemon:
            stores = {voice.id: _fill(daemon, voice) for voice in some} if STORED.intersection(names) else {}
            for name in names:
                SETS[name](daemon, some, stores)


if __name__ == "__main__":
    sys.exit(main())
