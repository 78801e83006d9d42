"""
Write the database of the present schema: `python -m tests.releases`, by the last commit before a migration is added.

It is served and stopped as users do it; what must be there is what a client of the same commit was told.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import sys
import tempfile
from pathlib import Path

from memory_client import MessageDraft, ToolCall

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
            long_text = "The ferry to Öland leaves at nine ⛴. " * 800
            call = ToolCall(
                "timetable", json.dumps({"stops": ["Kalmar", "Färjestaden"] * 800}, ensure_ascii=False), "1"
            )
            trace = json.dumps({"steps": [f"step {n} – done" for n in range(4000)]}, ensure_ascii=False)
            client.append("trip", [MessageDraft(content=long_text, tool_calls=(call,), metadata=trace)])
            client.set_summary("trip", "They plan a trip to Lyon.")
            client.set_working_memory("ask about the boat")
            for n in range(12):
                client.put_note("plans/boat", f"version {n}: " + "the boat leaves at nine. " * 400 * (n % 3))
            client.put_note("settings", {"theme": "dark", "since": ["Öland", 3]})
            client.move_note("settings", "old/settings")
            live = [{"id": m.id, "content": m.content} for m in client.page(page_size=500).memories]
            *messages, last = client.messages("trip", page_size=100).messages
            wanted = {
                "schema": schema,
                "live": sorted(live, key=lambda memory: memory["id"]),
                "deleted": ids[3:5],
                "messages": [{"id": m.id, "role": m.role.value, "content": m.content} for m in messages],
                "long": {
                    "content": hashlib.sha256(last.content.encode()).hexdigest(),
                    "arguments": hashlib.sha256(last.tool_calls[0].arguments.encode()).hexdigest(),
                    "metadata": hashlib.sha256(last.metadata.encode()).hexdigest(),
                },
                "notes": {
                    note.path: [
                        hashlib.sha256(client.note(note.path, revision=version.revision).text.encode()).hexdigest()
                        for version in client.note(note.path).versions
                    ]
                    for note in client.all_notes()
                },
                "memories": client.server_info().memory_count,
            }
        wanted["side_file"] = (folder / "memory.duckdb.seq").read_bytes().hex()
        packed = lzma.compress((folder / "memory.duckdb").read_bytes(), preset=9 | lzma.PRESET_EXTREME)
    (HERE / f"schema-{schema:02d}.duckdb.xz").write_bytes(packed)
    (HERE / f"schema-{schema:02d}.json").write_text(json.dumps(wanted, indent=0, ensure_ascii=False) + "\n")
    print(f"schema {schema}: {len(packed) >> 10} KiB")


if __name__ == "__main__":
    sys.exit(main())
