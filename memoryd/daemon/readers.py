"""The readers, and the finders of names, as the configuration has them."""

from __future__ import annotations

from pathlib import Path

from memoryd.daemon.config import Config
from memoryd.embedding.base import AnswerReader, ModelRefused, PairReader
from memoryd.embedding.readers import answer, change, keeping, people
from memoryd.embedding.readers.adapters import can_read, checked_values
from memoryd.entities.finders import Finder, FinderRefused, load_finders

__all__ = ["load_every_finder", "make_answer_reader", "make_change_reader", "make_keeping_reader", "reader_directory"]


def make_change_reader(config: Config) -> PairReader | None:
    """Return what reads two statements together, if anything does; ModelRefused if a directory cannot be used."""
    if config.readers.change == "none" or config.embedding.provider == "none":  # without vectors nothing is near
        return None
    directory = reader_directory(config, change.NAME)
    if directory is None:
        return change.builtin_reader()
    if (directory / f"{change.NAME}.npz").is_file():
        checked_values(change.NAME, directory, outputs=1)
    return change.directory_reader(directory)


def make_answer_reader(config: Config) -> AnswerReader | None:
    """
    Return what reads a question and a memory together, if anything does.

    It stands next to the packaged encoder alone, with whose vectors it was tuned. ModelRefused if a directory is none,
    or searches are to be read and nothing reads them.
    """
    is_off = config.readers.answer == "none" or config.embedding.provider not in {"builtin", "builtin-float"}
    if is_off and config.search.read_answers:
        raise ModelRefused(
            "search.read_answers is true, and nothing reads answers: that takes readers.answer, and embedding.provider"
            " builtin or builtin-float"
        )
    if is_off:
        return None
    directory = _directory_with_file(config, answer.NAME, outputs=1)
    return answer.answer_reader(directory) if can_read() else None


def make_keeping_reader(config: Config) -> keeping.KeepingReader | None:
    """Return what reads which sentences are worth keeping, if anything does; ModelRefused if a directory is none."""
    if config.readers.keeping == "none":
        return None
    return keeping.keeping_reader(_directory_with_file(config, keeping.NAME, outputs=keeping.OUTPUTS))


def reader_directory(config: Config, reader: str) -> Path | None:
    """Return the directory that a reader is read from, None where it is the packaged one; ModelRefused if none is."""
    wanted: str = getattr(config.readers, reader)
    if wanted == "builtin":
        return None
    if not wanted or not (directory := Path(wanted)).is_dir():
        raise ModelRefused(f"readers.{reader} is {wanted!r}; it must be builtin, none, or a directory")
    return directory


def _directory_with_file(config: Config, reader: str, *, outputs: int) -> Path | None:
    """Return the directory of a reader's file, or None; ModelRefused if the file does not fit, before it is used."""
    directory = reader_directory(config, reader)
    if directory is not None:
        checked_values(reader, directory, outputs=outputs)
    return directory


def load_every_finder(config: Config) -> tuple[list[Finder], list[Finder]]:
    """Return what finds names before an answer, and what finds them in the background; see load_finders."""
    model = config.entities.spacy_model

    def reader(_model: str) -> Finder:
        if config.readers.people == "none":
            raise FinderRefused("readers.people is none, so there is no finder people")
        if not can_read():
            raise FinderRefused("the finder people needs the packaged model, and a processor that is exact with it")
        return people.PeopleFinder(_directory_with_file(config, people.NAME, outputs=people.CASES))

    fast = load_finders(config.strategies.fast, model=model, more={people.NAME: reader})
    rest = [name for name in config.strategies.accurate if name not in config.strategies.fast]
    return fast, load_finders(rest, model=model, optional=True, more={people.NAME: reader})
