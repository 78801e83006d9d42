"""What was learnt and waits for someone to approve it, decided with one key."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from memoryd.errors import InvalidArgument, LimitExceeded
from memoryd.inspector.shown_text import in_words
from memoryd.inspector.view import View, in_words_of
from memoryd.model.learnt import Proposal

PAGE_SIZE = 50
MOST = 1000  # that are asked for
MOST_IN_WORDS = 80  # characters of what was approved


async def _shown(view: View, status: int = 0, error: str = "") -> Response:
    user_id, chat_id = view.typed("of_user"), view.typed("of_chat")
    proposals: Sequence[Proposal] = ()
    with view.asking(user_id="Of the user", chat_id="Of the chat"):
        proposals = await view.host.proposals(user_id=user_id, chat_id=chat_id, page_size=MOST)
    at = max(0, view.number("at"))
    return view.page(
        "review.html", status, error=error, count=len(proposals), most=MOST, at=at,
        proposals=proposals[at : at + PAGE_SIZE],
        page_size=PAGE_SIZE, of_user=user_id, of_chat=chat_id,
    )  # fmt: skip


async def _decide(view: View) -> Response:
    proposal_id = view.form.get("id", "")
    if view.form.get("choice") == "approve":
        try:
            result = await view.host.approve_proposal(proposal_id, content=view.form.get("content", "").strip())
        except (InvalidArgument, LimitExceeded) as error:
            return await _shown(view, 400, in_words_of(error, {"content": "In other words"}))
        what = in_words(result.memory.content, MOST_IN_WORDS) if result.memory else proposal_id[:8]
        view.say(f"approved, {result.outcome.value}: {what}" + (f" ({result.rejection})" if result.rejection else ""))
    else:
        rejected = await view.host.reject_proposal(proposal_id)
        view.say(f"rejected, and the same is not proposed again: {in_words(rejected.content, MOST_IN_WORDS)}")
    return view.to(view.came_from(view.url("review")))


ROUTES = (("GET", "review", _shown), ("POST", "review", _decide))
