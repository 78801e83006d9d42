"""What was learnt and waits for someone to approve it, decided with one key."""

from __future__ import annotations

from starlette.responses import Response

from memoryd.inspector.view import View

PAGE_SIZE = 100


async def _show(view: View) -> Response:
    proposals = await view.host.proposals(page_size=PAGE_SIZE)
    return view.page("review.html", proposals=proposals, more=len(proposals) == PAGE_SIZE)


async def _decide(view: View) -> Response:
    proposal_id = view.part("id")
    if view.form.get("choice") == "approve":
        result = await view.host.approve_proposal(proposal_id, content=view.form.get("content", "").strip())
        view.say(f"approved: {result.outcome.value}" + (f", {result.rejection}" if result.rejection else ""))
    else:
        await view.host.reject_proposal(proposal_id)
        view.say("rejected; the same is not proposed again")
    return view.back("review")


ROUTES = (("GET", "review", _show), ("POST", "review/{id}", _decide))
