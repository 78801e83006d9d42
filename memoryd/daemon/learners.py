"""Who learns in the background, as the configuration has it: extractors, judge, writer, and the language model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from pathlib import Path

import structlog

from memoryd.daemon.config import Config
from memoryd.daemon.readers import make_keeping_reader
from memoryd.domain.ports import Ports
from memoryd.learning.budget import DailyBudget, Limits
from memoryd.learning.contradictions import Contradictions
from memoryd.learning.extractor import Extractor, load_extractor
from memoryd.learning.follow import Learner
from memoryd.learning.imports import ImportJudge
from memoryd.learning.language_model import LanguageModel
from memoryd.learning.llm_extractor import LlmExtractor
from memoryd.learning.plain_talk import PlainTalkExtractor
from memoryd.learning.rules import RulesExtractor
from memoryd.learning.summaries import Summaries
from memoryd.llm.endpoint import ChatEndpoint, EndpointRefused
from memoryd.model.work import EXTRACTION_JOB, LLM_EXTRACTION_JOB, WorkState

__all__ = ["Learners", "make_endpoint", "make_extractor"]

OPENAI = "openai"
log = structlog.get_logger("memoryd.daemon")


def make_extractor(config: Config) -> Extractor | None:
    """Return who learns from messages first; ExtractorRefused names those there are, ModelRefused a directory."""

    def rules() -> Extractor:
        alone, reader = RulesExtractor(config.schedule.zone), make_keeping_reader(config)
        if reader is None:
            return alone
        return PlainTalkExtractor(alone, reader, lambda fault: log.warning("talk_not_read", fault=fault))

    return load_extractor(config.learning.extractor, {"rules": rules, OPENAI: rules})


def make_endpoint(config: Config) -> ChatEndpoint | None:
    """Return the language model's endpoint, if anything uses it; EndpointRefused if it cannot be one."""
    learning, llm = config.learning, config.llm
    if OPENAI not in {learning.extractor, learning.judge, learning.writer}:
        return None
    key = ""
    if llm.api_key_file:
        try:
            key = Path(llm.api_key_file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise EndpointRefused(f"llm.api_key_file cannot be read: {error.strerror}") from None
    return ChatEndpoint(
        llm.url, llm.model, api_key=key, timeout_s=llm.timeout_s, max_output_tokens=llm.max_output_tokens
    )


class Learners:
    """All that learns by itself."""

    def __init__(self, ports: Ports, config: Config, clock: Callable[[], datetime]) -> None:
        """Wire them; nothing is read or asked yet. StartupError where the configuration names what there is not."""
        self._ports = ports
        learning, llm, endpoint = config.learning, config.llm, make_endpoint(config)
        self.model: LanguageModel | None = None
        if endpoint is not None:
            limits = Limits(llm.max_tokens_per_day, llm.max_cost_per_day, llm.input_price, llm.output_price)
            budget = DailyBudget(ports, limits, clock, config.schedule.zone)
            self.model = LanguageModel(
                endpoint, budget, clock, most_at_once=llm.max_concurrent, measures=ports.measures
            )
        self.judge = self.model if learning.judge == OPENAI else None
        self.writer = self.model if learning.writer == OPENAI else None

        def tell(fault: str) -> None:
            log.warning("messages_not_learnt_from", fault=fault)

        extractor = make_extractor(config)
        self._plain_talk = extractor if isinstance(extractor, PlainTalkExtractor) else None
        self.rules = Learner(ports, extractor, clock, tell, wait_s=learning.wait_s, most_attempts=learning.max_attempts)
        reader = LlmExtractor(self.model) if self.model is not None and learning.extractor == OPENAI else None
        self.llm = Learner(
            ports,
            reader,
            clock,
            tell,
            wait_s=learning.wait_s,
            most_attempts=learning.max_attempts,
            kind=LLM_EXTRACTION_JOB,
        )
        self.contradictions = Contradictions(
            ports,
            ports.readers.change_reader,
            clock,
            lambda fault: log.warning("contradictions_not_read", fault=fault),
            is_busy=lambda: self.rules.is_reading,
        )
        self.imports = ImportJudge(
            ports,
            clock,
            lambda fault: log.warning("imports_not_judged", fault=fault),
            judged=self.contradictions.take,
        )
        self.kinds = (EXTRACTION_JOB,) if reader is None else (EXTRACTION_JOB, LLM_EXTRACTION_JOB)
        """The kinds of extraction that a session is done after."""
        self.writes = learning.writer != "none"
        self._summaries = (
            None
            if learning.writer == "none"
            else Summaries(ports, self.writer, clock, lambda fault: log.warning("thread_not_summed_up", fault=fault))
        )

    def serve(self) -> Iterator[Awaitable[None]]:
        """Return what is to run until the daemon stops."""
        yield self.rules.serve()
        yield self.llm.serve()
        yield self.contradictions.serve()
        yield self.imports.serve()
        if self._summaries is not None:
            yield self._summaries.serve()

    async def warnings(self) -> list[str]:
        """Return what is amiss, in words, for the operator."""
        names = []
        if self.rules.fault:
            names.append(f"nothing is learnt from messages now: {self.rules.fault}")
        if self._plain_talk is not None and self._plain_talk.fault:
            names.append(f"rules alone learn from messages: {self._plain_talk.fault}")
        if self.model is not None and (fault := self.llm.fault or self.model.fault):
            names.append(f"the language model is not used now: {fault}")
        if self.contradictions.fault:
            names.append(f"no model looks for contradictions: {self.contradictions.fault}")
        counts = await self._ports.store.work.counts()
        parked = sum(count for (_, state), count in counts.items() if state is WorkState.PARKED)
        if parked:
            names.append(f"{parked} threads cannot be learnt from, and are parked; see: memoryd jobs list")
        proposals = await self._ports.store.work.proposal_count()
        if proposals:
            waits = "1 learnt fact waits" if proposals == 1 else f"{proposals} learnt facts wait"
            names.append(f"{waits} for approval; see: memoryd review list")
        return names

    async def close(self) -> None:
        """End the reader's thread, and the connections to the language model."""
        if self._plain_talk is not None:
            self._plain_talk.close()
        if self.model is not None:
            await self.model.close()
