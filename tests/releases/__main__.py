"""
Write the database of the present schema: `python -m tests.releases`, by the last commit before a migration is added.

It is served and stopped as users do it; what must be there is what a client of the same commit was told.
"""

from __future__ import annotations

import json
import lzma
import sys
import tempfile
from pathlib import Path

from memory_client import MessageDraft

from memoryd.store.duckdb.migrations import MIGRATIONS
from tests.support import running

PLACES = ("Lyon", "Oslo", "Turin", "Ghent", "Porto", "Graz", "Bern", "Nice")
THINGS = ("tea", "boats", "maps", "bread", "songs", "birds", "clocks", "lamps")
HERE = Path(__file__).parent


def main() -> None:
    """Write both files."""
    schema = len(MIGRATIONS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(folder) as daemon:
            client = daemon.client("alice", "c1")
            texts = [f"the {thing} of {place} are worth a visit" for place in PLACES for thing in THINGS]
            ids = [client.add(f"note {n}: {text}").memory.id for n, text in enumerate(texts)]
            client.add("My sister Anna lives in Rome")
            client.add("My sister Anna lives in Paris")
            for memory_id in ids[3:5]:
                client.delete(memory_id)
            for n in range(10):
                asked = MessageDraft(content=f"question {n} of the trip to Lyon")
                client.append("trip", [asked, MessageDraft(role="assistant", content=f"answer {n}")])
            client.set_summary("trip", "They plan a trip to Lyon.")
            client.set_working_memory("ask about the boat")
            live = [{"id": m.id, "content": m.content} for m in client.page(page_size=500).memories]
            messages = client.messages("trip", page_size=100).messages
            wanted = {
                "schema": schema,
                "live": sorted(live, key=lambda memory: memory["id"]),
                "deleted": ids[3:5],
                "messages": [{"id": m.id, "role": m.role.value, "content": m.content} for m in messages],
                "memories": client.server_info().memory_count,
            }
        wanted["side_file"] = (folder / "memory.duckdb.seq").read_bytes().hex()
        packed = lzma.compress((folder / "memory.duckdb").read_bytes(), preset=9 | lzma.PRESET_EXTREME)
    (HERE / f"schema-{schema:02d}.duckdb.xz").write_bytes(packed)
    (HERE / f"schema-{schema:02d}.json").write_text(json.dumps(wanted, indent=0, ensure_ascii=False) + "\n")
    print(f"schema {schema}: {len(packed) >> 10} KiB")


if __name__ == "__main__":
    sys.exit(main())
