"""What `memoryd` does to look after the store: decay, enrich, reembed, compact, verify."""

from __future__ import annotations

import argparse
import math
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from memory_cli.output import as_json, moment, size

from memoryd.cli.command import Client, add_command
from memoryd.model import limits
from memoryd.model.reports import Reembedding

__all__ = ["add_upkeep_commands", "working"]

TICK_S = 0.5
BAR = 40  # characters
NEVER_WAS = 3  # exit code: no memory ever had that id


def add_upkeep_commands(commands: Any, common: argparse.ArgumentParser, client: Client) -> None:
    """Add the commands to a parser; `client` opens a client of the running daemon."""
    command = partial(add_command, commands, common=common, client=client)
    decay = command(
        "decay", "forget what has faded; it can be restored until it is purged",
        "  memoryd decay --dry-run\n  memoryd decay\n", _decay,
    )  # fmt: skip
    decay.add_argument("--dry-run", action="store_true", help="only show what would go")
    enrich = command(
        "enrich", "look again for the people and things that facts name, until all are looked at",
        "  memoryd enrich --dry-run\n  memoryd enrich\n", _enrich,
    )  # fmt: skip
    enrich.add_argument("--dry-run", action="store_true", help="only tell how many wait")
    reembed = command(
        "reembed", "give every memory a vector of the model in use; it goes on if you stop watching",
        "  memoryd reembed --dry-run\n  memoryd reembed\n  memoryd reembed --no-wait\n", _reembed,
    )  # fmt: skip
    reembed.add_argument("--dry-run", action="store_true", help="only tell how many have none, and how far it is")
    reembed.add_argument("--no-wait", action="store_true", help="begin, and return at once")
    command("compact", "rewrite the database without the bytes of what was purged", "  memoryd compact\n", _compact)
    command(
        "metrics", "print figures of the running daemon for Prometheus (metrics.enabled)",
        "  memoryd metrics\n"
        "  memoryd metrics > /var/lib/node_exporter/memoryd.prom.tmp"
        " && mv /var/lib/node_exporter/memoryd.prom.tmp /var/lib/node_exporter/memoryd.prom\n",
        _metrics,
    )  # fmt: skip
    verify = command(
        "verify", "prove that nothing is left of a purged memory",
        "  memoryd verify --forgotten k3j5x2abcdefghijklmnopqrst\n"
        '  memoryd verify --forgotten k3j5x2abcdefghijklmnopqrst --text "her old address"\n',
        _verify,
    )  # fmt: skip
    verify.add_argument("--forgotten", metavar="ID", required=True, help="the whole id of the memory")
    verify.add_argument("--text", metavar="TEXT", default="", help="words of it to look for too")


@contextmanager
def working(what: str) -> Any:
    """Show on a terminal that something goes on, and for how long."""
    if not sys.stderr.isatty():
        yield
        return
    done, began = threading.Event(), time.monotonic()

    def show() -> None:
        while not done.wait(TICK_S):
            print(f"\r{what} … {time.monotonic() - began:.0f} s", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _json(value: Any) -> int:
    print(as_json(value))
    return 0


def _metrics(client: Client, args: argparse.Namespace) -> int:
    with client(args) as memory:
        text = memory.metrics()
    if args.json:
        return _json({"text": text})
    print(text, end="")
    return 0


def _decay(client: Client, args: argparse.Namespace) -> int:
    with client(args) as memory, working("decaying"):
        done = memory.run_decay(dry_run=args.dry_run)
    if args.json:
        return _json(done)
    if done.held:
        print(f"{'would be held back' if done.dry_run else 'nothing was forgotten'}: {done.held}", file=sys.stderr)
        if not done.dry_run:
            return 1
    verb = "would forget" if done.dry_run else "forgot"
    print(f"looked at {done.examined_count} memories, {verb} {done.decayed_count}")
    for faded in done.faded:
        print(f"  {faded.id}  {faded.confidence:.4f}  {faded.owner}")
    return 0


def _enrich(client: Client, args: argparse.Namespace) -> int:
    with client(args) as memory:
        done = memory.run_enrichment(dry_run=args.dry_run)
        runs = 0 if args.dry_run else math.ceil(done.remaining_count / limits.MAX_ENRICHED)
        for _ in range(runs):  # what comes meanwhile is left to the next night
            if done.skipped or not done.remaining_count:
                break
            _draw(done.examined_count, done.examined_count + done.remaining_count)
            more = memory.run_enrichment()
            done = replace(
                more,
                examined_count=done.examined_count + more.examined_count,
                linked_count=done.linked_count + more.linked_count,
                denied_count=done.denied_count + more.denied_count,
            )
    _end_drawing()
    if args.json:
        return _json(done)
    if done.skipped:
        print(f"skipped: {done.skipped}")
    elif args.dry_run:
        print(f"would look at {done.remaining_count} facts")
    else:
        print(
            f"looked at {done.examined_count} facts, linked {done.linked_count} entities, took back {done.denied_count}"
            + (f"; {done.remaining_count} more came" if done.remaining_count else "")
        )
    return 0


def _reembed(client: Client, args: argparse.Namespace) -> int:
    text = ""
    with client(args) as memory:
        has_model = bool(memory.server_info().embedding_fingerprint)
        known = memory.run_reembedding(dry_run=args.dry_run)
        while known.running and not args.no_wait and not args.dry_run:
            _show_share(known)
            if known.fault != text and known.fault and not sys.stderr.isatty():
                print(f"pauses: {known.fault}; it tries again until you stop it", file=sys.stderr, flush=True)
            text = known.fault
            time.sleep(TICK_S)
            known = memory.run_reembedding(dry_run=True)
    _end_drawing()
    if args.json:
        _json(known)
    elif not has_model:
        print("nothing to do: embedding.provider is none, so nothing gets a vector; builtin needs no network")
    elif not known.embedded_count and not known.pending_count:
        print("nothing to do: no memory waits for a vector of the model in use")
    else:
        print(f"{known.embedded_count} memories embedded, {known.pending_count} to go"
              + (", goes on in the background" if known.running else ""))  # fmt: skip
    if known.fault:
        print(f"pauses: {known.fault}", file=sys.stderr)
    if known.failed_count:
        why = "the model could not embed their texts; the next pass tries again"
        print(f"{known.failed_count} failed: {why}", file=sys.stderr)
    return 1 if known.failed_count or known.fault else 0


def _show_share(known: Reembedding) -> None:
    """Draw how far the re-embedding is."""
    why = f"  pauses: {known.fault}" if known.fault else ""
    _draw(known.embedded_count, known.embedded_count + known.pending_count, why)


def _draw(done: int, total: int, why: str = "") -> None:
    """Draw a bar on a terminal; elsewhere nothing."""
    if sys.stderr.isatty():
        bar = "#" * round(BAR * (done / total if total else 1.0))
        print(f"\r\033[K[{bar:<{BAR}}] {done}/{total}{why}", end="", file=sys.stderr, flush=True)


def _end_drawing() -> None:
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _compact(client: Client, args: argparse.Namespace) -> int:
    with client(args) as memory, working("compacting"):
        done = memory.compact_store()
    if args.json:
        return _json(done)
    waited = done.pause.total_seconds()
    has_grown = done.after_bytes > done.before_bytes
    why = ", the least that the tables take" if has_grown else ", as there was nothing to give back"
    shrunk = "" if done.after_bytes < done.before_bytes else why
    print(f"{size(done.before_bytes)} before, {size(done.after_bytes)} after{shrunk}; writes waited {waited:.3f} s")
    if done.purged_meanwhile:
        print("something was purged meanwhile, whose bytes are in the file until the next one; run: memoryd compact")
    for backup in done.backups:
        print(f"may still hold what was purged: {backup}")
    return 0


def _verify(client: Client, args: argparse.Namespace) -> int:
    with client(args) as memory, working("searching"):
        proof = memory.verify_forgotten(args.forgotten, text=args.text)
    stands_elsewhere = any(trace.place != "database" for trace in proof.traces)
    known = proof.purge_time or proof.seen_time or proof.log_start_time is None or stands_elsewhere
    code = (1 if proof.traces else 0) if known else NEVER_WAS
    if args.json:
        _json(proof)
        return code
    for trace in proof.traces if known or args.text else ():
        print(f"{trace.place}: {trace.detail}")
    read = f"{proof.file_count} files, {size(proof.byte_count)}, the tables and the indexes"
    left = "traces are left" if proof.traces else "nothing is left"
    if not known:
        left = f"the id is not known, and of the text {left}" if args.text else "the id is not known"
    print(f"{left}; read {read}")
    if proof.purge_time is not None:
        print(f"purged {moment(proof.purge_time)}, by the audit log, which names ids by design")
    elif proof.seen_time is not None:
        print(f"the audit log, which names ids by design, knows the id since {moment(proof.seen_time)}")
    elif proof.log_start_time is None:
        print(
            "whether there ever was a memory of this id is not known: there is no audit log, or it is empty",
            file=sys.stderr,
        )
    elif not known:
        print(
            f"no memory ever had this id, as far as the audit log goes back ({moment(proof.log_start_time)});"
            " is it written right?",
            file=sys.stderr,
        )
    for backup in proof.backups:
        print(f"may still hold it: {backup}")
    return code
