"""A daemon that is attacked, and a victim in a sandbox of its own."""

from __future__ import annotations

import pytest
from memory_client import Draft, GrantStatus

from tests.doors import a_world
from tests.support import short_folder


@pytest.fixture(scope="module")
def world():
    """A daemon with its model: an attack on the embedding is one too."""
    with short_folder() as place, a_world(place, config="[sandbox]\nconnections = 16\n") as made:
        yield made


@pytest.fixture(scope="module")
def victim(world) -> GrantStatus:
    sandbox = world.sandbox(user_id="victim", chat_ids=("theirs",), quota={"calls_per_second": 0})
    with world.inside(sandbox) as inside:
        inside.add_batch([Draft(content=f"{name} is a secret of mine") for name in ("violet", "indigo", "azure")])
    return sandbox
