"""
Who is meant: from the words of a statement to the entities that it names.

Names are compared as wholes. A nickname or a first name means an entity only where it fits exactly one. Where it fits
two, a new entity is made: a duplicate is better than a wrong merge, and can be merged by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from memoryd.entities.directory import Directory
from memoryd.entities.finders import Find, Finder, find_entities
from memoryd.entities.known_names import KnownNames
from memoryd.knowledge.grammar.names import is_formal, is_plain, may_be_one, short_forms, straight
from memoryd.knowledge.grammar.relations import KIN, RELATIONS, relation_of
from memoryd.knowledge.lexicon.spelling import APOSTROPHES
from memoryd.model import limits
from memoryd.model.entity import EntityType, Form, Mention

__all__ = ["mentions_among", "mentions_of"]


def mentions_of(
    text: str,
    subjects: Iterable[str],
    directory: Directory,
    finders: Sequence[Finder],
    new_id: Callable[[], str],
    *,
    weight: int = 0,
) -> tuple[Mention, ...]:
    """Return the entities that a statement and its subjects name; see `mentions_among`."""
    finds = find_entities(text, [*finders, KnownNames([directory], weight=weight)])
    return mentions_among(finds, subjects, directory, new_id, weight=weight)


def mentions_among(
    finds: Sequence[Find],
    subjects: Iterable[str],
    directory: Directory,
    new_id: Callable[[], str],
    *,
    weight: int = 0,
) -> tuple[Mention, ...]:
    """
    Return the entities that the finds in a statement and its subjects name; new entities get new ids.

    `weight` is the weight of the statement's trust. Where several entities fit, those that this trust has named come
    first, so that a namesake from a sandbox does not attract the host's statements.
    """
    groups = _groups(finds, subjects)
    if not groups:
        return ()
    taken: set[str] = set()
    mentions: list[Mention] = []
    if len(groups) > limits.MAX_MENTIONS:  # those that the caller names are not left out for those in the text
        extra = groups[len(_groups(finds, ())) :][: limits.MAX_MENTIONS]
        groups = [*groups[: limits.MAX_MENTIONS - len(extra)], *extra]
    for group in groups:
        resolved = _resolve(group, directory, taken, weight)
        if resolved is None:
            continue
        entity_id, same_as = resolved
        entity_id = entity_id or _of_this_text(group, mentions) or new_id()
        taken.add(entity_id)
        for n, find in enumerate(group.finds):
            mention = Mention(
                entity_id, find.text, find.form, group.type, group.about, same_as=same_as if n == 0 else ""
            )
            if mention not in mentions:
                mentions.append(mention)
    return tuple(mentions)


@dataclass(slots=True)
class _Group:
    """Finds that name one and the same."""

    finds: list[Find]

    @property
    def about(self) -> bool:
        return any(find.about for find in self.finds)

    @property
    def type(self) -> EntityType:
        kinds = [find.type for find in self.finds]
        return EntityType.PERSON if EntityType.PERSON in kinds else kinds[0]

    def of(self, *forms: Form) -> list[str]:
        return [find.text for find in self.finds if find.form in forms]


def _groups(finds: Sequence[Find], subjects: Iterable[str]) -> list[_Group]:
    numbered: dict[int, _Group] = {}
    groups: list[_Group] = []
    for find in finds:
        if not straight(find.text):
            continue  # a finder's find of nothing but spaces or marks
        if find.group and find.group in numbered:
            numbered[find.group].finds.append(find)
            continue
        group = _Group([find])
        groups.append(group)
        if find.group:
            numbered[find.group] = group
    for subject in subjects:
        if not is_plain(subject):
            continue  # it labels the memory and names no one
        find = _of_subject(subject)
        known = next((g for g in groups if any(straight(f.text) == straight(find.text) for f in g.finds)), None)
        if known is None:
            groups.append(_Group([find]))
        else:
            known.finds = [
                Find(f.start, f.end, f.text, f.form, f.type, f.confidence, True, f.group) for f in known.finds
            ]
    return groups


def _of_subject(subject: str) -> Find:
    """Return a subject that the caller names as if it stood in the text."""
    subject = subject.translate(APOSTROPHES)
    words = straight(subject).removeprefix("my ").removeprefix("the user's ")
    if words in RELATIONS:
        return Find(0, 0, relation_of(words), Form.RELATION, EntityType.PERSON, 1.0, about=True)
    if subject.startswith("@"):
        return Find(0, 0, subject, Form.HANDLE, EntityType.PERSON, 1.0, about=True)
    if "@" in subject and "." in subject:
        return Find(0, 0, subject, Form.EMAIL, EntityType.EMAIL, 1.0, about=True)
    person = len(short_forms(words.split()[0])) > 1 or (subject[:1].isupper() and len(subject.split()) == 2)  # noqa: PLR2004  a full name
    return Find(0, 0, subject, Form.NAME, EntityType.PERSON if person else EntityType.OTHER, 1.0, about=True)


def _of_this_text(group: _Group, mentions: Sequence[Mention]) -> str:
    """Return the entity that the same statement has named by the same name already."""
    names = {straight(name) for name in group.of(Form.NAME, Form.HANDLE, Form.EMAIL)}
    return next((m.entity_id for m in mentions if m.form is not Form.RELATION and straight(m.text) in names), "")


def _resolve(group: _Group, directory: Directory, taken: set[str], weight: int) -> tuple[str, str] | None:
    """
    Return the known entity that a group means ("": a new one) and another that it shows to be the same.

    None: it may mean several, and says nothing by which a new one could be told from them. `taken` are those that the
    same statement names by other words: two names in one sentence are two people.
    """
    addressed = _all(directory.called(text) for text in group.of(Form.HANDLE, Form.EMAIL, Form.URL, Form.HASHTAG))
    found = _only(addressed)
    if found and (not directory.names(found) or all(_fits(n, directory.names(found)) for n in group.of(Form.NAME))):
        unnamed = _named(group, directory, taken - {found}, weight) if group.of(Form.NAME) else ""
        return found, unnamed if unnamed != found else ""
    names, relations = group.of(Form.NAME), [relation_of(text) for text in group.of(Form.RELATION)]
    if relations:
        return _related(names, relations[0], directory, taken, weight)
    if not names:
        handle = (group.of(Form.HANDLE) or [""])[0].lstrip("@")
        return (_only(directory.called(handle) - taken) if handle else ""), ""
    return _named(group, directory, taken, weight), ""


def _named(group: _Group, directory: Directory, taken: set[str], weight: int) -> str:
    """Return who is meant by the names of a group alone."""
    return _by_names(group.of(Form.NAME), directory, taken, weight, relation="")


def _vouched(ids: set[str], directory: Directory, weight: int) -> set[str]:
    """Return the ids that trust of at least this weight has named; all of them where there are none."""
    return {one for one in ids if directory.weight(one) >= weight} or ids


def _by_names(names: Sequence[str], directory: Directory, taken: set[str], weight: int, *, relation: str) -> str:
    exact = _all(directory.called(name) for name in names) - taken
    exact = {one for one in exact if _may_have(relation, directory, one)}
    exact = _vouched(exact, directory, weight)
    if exact:
        unrelated = {one for one in exact if not directory.ever_related(one)}
        return _only(exact) or _only(unrelated)
    firsts = {first for name in names for first in short_forms(straight(name).split()[0])}
    alike = {
        one
        for one in directory.first_named(firsts) - taken
        if _may_have(relation, directory, one)
        and all(_fits(name, directory.names(one)) for name in names)
        and not (relation and directory.ever_related(one) - {relation})  # Sally, a colleague, is not Sarah, the wife
        and not (_fuller(names, directory.names(one)) and directory.ever_related(one) and not relation)
    }
    return _only(_vouched(alike, directory, weight))


def _fits(name: str, known: Sequence[str]) -> bool:
    """
    Whether a name may be that of someone: it goes with one of the known ones, and against none that tells more.

    Chris may be Christina or Christopher; once she is the one, she is not the other.
    """
    telling = [one for one in known if len(one.split()) > 1 or (is_formal(one) and is_formal(name))]
    return any(may_be_one(name, one) for one in known) and all(may_be_one(name, one) for one in telling)


def _fuller(names: Sequence[str], known: Sequence[str]) -> bool:
    """Whether a name says more than any known one, so that it may be someone else's."""
    return max(len(name.split()) for name in names) > 1 == max((len(name.split()) for name in known), default=1)


def _related(
    names: Sequence[str], relation: str, directory: Directory, taken: set[str], weight: int
) -> tuple[str, str] | None:
    holders = directory.related(relation) - taken
    if not names:
        if len(holders) > 1:
            return None
        return _only(holders), ""
    exact = _all(directory.called(name) for name in names) & holders
    named = _holders_called(names, directory, holders)
    only = _only(holders)
    unnamed = only if only and not directory.names(only) else ""
    holder = _only(exact) or _only(named) or ("" if named else unnamed)
    others = _by_names(names, directory, taken | ({holder} if holder else set()), weight, relation=relation)
    if holder and others and holder == unnamed:
        return others, holder  # "my wife's name is Sarah", and both were known apart
    return holder or others, ""


def _holders_called(names: Sequence[str], directory: Directory, holders: set[str]) -> set[str]:
    """Return those of some who may be called by all of these names."""
    firsts = {first for name in names for first in short_forms(straight(name).split()[0])}
    return {
        one
        for one in directory.first_named(firsts) & holders
        if any(
            may_be_one(name, known, nicknames=_casual(name, known)) for name in names for known in directory.names(one)
        )
        and all(_fits(name, directory.names(one)) for name in names)
    }


def _casual(name: str, known: str) -> bool:
    """Whether one of two names is a nickname and no full name: two brothers may be Ron and Aaron."""
    return straight(name) == straight(known) or not (is_formal(name) and is_formal(known))


def _may_have(relation: str, directory: Directory, entity_id: str) -> bool:
    """Whether an entity may have a relation besides those that it has: no sister is a wife, nor what is no person."""
    if not relation:
        return True
    if directory.given_type(entity_id) not in {None, EntityType.PERSON}:
        return False
    known = directory.ever_related(entity_id) - {relation}
    if relation in KIN:
        return not known
    return not known & KIN


def _all(sets: Iterable[set[str]]) -> set[str]:
    return {one for some in sets for one in some}


def _only(ids: set[str]) -> str:
    """Return the one id, or "" where there are none or several."""
    return next(iter(ids)) if len(ids) == 1 else ""
