"""What the command understands."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from memory_cli.common import SECONDS
from memory_cli.helpful_parser import Parser, Version
from memory_cli.parser_filters import KINDS, add_filters, pair
from memory_cli.parser_notes import add_notes
from memory_cli.parser_talk import add_talking
from memory_cli.parser_update import add_update

__all__ = ["make_parser", "parse_expiry", "parse_known", "parse_past", "parse_time"]

ENTITY_TYPES = ("person", "organization", "project", "location", "other")

LANGUAGES = """\
languages:
  words, names, keys and filters work in all of them; meaning, contradictions
  and what is learnt from talk in English, and parts of them elsewhere
  (docs/search.md has a table)

"""
EXIT_CODES = """\
exit codes:
  0  done                          4  not permitted, or declined by policy
  1  failed inside the daemon      5  a limit is exceeded
  2  wrong usage or a wrong value  6  the daemon cannot be reached, or is busy
  3  no such memory                7  in conflict with what is there
                                   8  the database is damaged

environment:
  MEMORY_ENDPOINT   unix:///path or host:port (unset: the default socket)
  MEMORY_USER_ID, MEMORY_CHAT_ID, MEMORY_AGENT_ID   who asks, and where
  MEMORY_TOKEN_FILE   a file with a token, for doors that ask for one
  MEMORY_TLS_CA_FILE  over TCP: the trusted certificates
"""


def parse_expiry(text: str) -> float | datetime:
    """Return days for `2w`, `3d`, `12h`, `90m`, `1y`, or the time of `2026-12-31` (local without a zone)."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdwy])", text.strip())
    if match:
        return float(match[1]) * (SECONDS[match[2]] / SECONDS["d"])
    return parse_time(text)


def parse_past(text: str) -> datetime:
    """Return the time that lies `3d` back, or that a date says."""
    given = parse_expiry(text)
    try:
        return given if isinstance(given, datetime) else datetime.now(UTC) - timedelta(days=given)
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{text!r} lies before the calendar") from None


def parse_known(text: str) -> datetime:
    """Return the time of `parse_past`; of a day its end, as far as it has come: all that was known on that day."""
    given = parse_past(text)
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", _iso(text)):
        end = (datetime.fromisoformat(_iso(text)) + timedelta(days=1)).astimezone(UTC)
        return min(end, max(given, datetime.now(UTC)))
    return given


def _iso(text: str) -> str:
    """Return a text with a day such as 31.5.2026 as ISO 8601 writes it."""
    return re.sub(r"^(\d{1,2})\.(\d{1,2})\.(\d{4})$", lambda m: f"{m[3]}-{m[2]:0>2}-{m[1]:0>2}", text.strip())


def parse_time(text: str) -> datetime:
    """Return the time of a date or of RFC 3339, local where it names no zone."""
    named = _iso(text)
    try:
        return datetime.fromisoformat(named).astimezone(UTC)
    except (ValueError, OverflowError):
        if re.match(r"\d{4}-\d{2}-\d{2}", named):
            raise argparse.ArgumentTypeError(f"there is no day or time {text!r}") from None
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither 2w, 3d, 12h or 90m nor a date such as 2026-12-31"
        ) from None


Command = Callable[[str, str, str], argparse.ArgumentParser]
"""Adds a command: its name, what it does, and examples."""


def _common() -> Parser:
    common = Parser(add_help=False)
    who = common.add_argument_group("who asks")
    user = who.add_mutually_exclusive_group()
    user.add_argument("--user", metavar="ID", help="user id (default: $MEMORY_USER_ID)")
    user.add_argument("--no-user", action="store_true", help="ask as the chat alone, without a user (host only)")
    who.add_argument("--chat", metavar="ID", help="chat id (default: $MEMORY_CHAT_ID)")
    who.add_argument("--agent", metavar="ID", help="agent id (default: $MEMORY_AGENT_ID, else 'default')")
    how = common.add_argument_group("how")
    how.add_argument("--endpoint", metavar="ADDRESS", help="unix:///path or host:port (default: $MEMORY_ENDPOINT)")
    how.add_argument("--timeout", metavar="SECONDS", type=float, default=10.0, help="give up after so long (10)")
    how.add_argument("--json", action="store_true", help="print JSON with the field names of the contract")
    return common


def make_parser(first: str = "") -> argparse.ArgumentParser:
    """Return the parser of the whole command; or, for a first word that is a command, of that one and its like."""
    parser = Parser(
        prog="memory",
        description="Remember, recall and forget, as the user and in the chat that the environment names.",
        epilog='examples:\n  memory add "I\'m allergic to peanuts"\n  memory search "What should I avoid eating?"\n'
        '  memory context "Plan a dinner for Sarah"\n\n' + LANGUAGES + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=Parser, prog=parser.prog
    )
    common = _common()

    def command(name: str, summary: str, examples: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            parents=[common],
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=f"examples:\n{examples}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    like = [add for names, add in _COMMANDS.items() if first in names.split()]
    for add in like or _COMMANDS.values():
        add(command)
    if like:
        return parser
    completion = commands.add_parser(
        "completion",
        help="print the completion script of a shell",
        description="Print the completion script of a shell.",
        epilog='examples:\n  eval "$(memory completion bash)"\n  memory completion fish | source\n',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))
    return parser


def _add_add(command: Command) -> None:
    add = command(
        "add",
        "remember a statement",
        '  memory add "I\'m allergic to peanuts"\n  memory add --about Sarah "my wife Sarah likes Italian food"\n'
        '  memory add --expires 2w "the car is at the garage"\n  echo "a long note" | memory add -\n'
        '  memory add --shared "our standup is at 9am"\n  memory add --key color "my favorite color is blue"\n',
    )
    add.add_argument("text", nargs="+", help="the statement; - reads it from standard input")
    add.add_argument("--shared", action="store_true", help="for everyone in the chat, not for the user alone")
    add.add_argument(
        "--about", metavar="NAME", action="append", default=[], help="a person or thing that it is about (repeatable)"
    )
    add.add_argument("--tag", metavar="TAG", action="append", default=[], help="a label (repeatable)")
    add.add_argument("--kind", choices=KINDS, default="fact", help="what sort of statement (fact)")
    add.add_argument("--category", metavar="NAME", default="", help="a category of your own")
    add.add_argument(
        "--meta", metavar="KEY=TEXT", type=pair, action="append", default=[], help="data of your own (or KEY:=JSON)"
    )
    add.add_argument("--key", default="", help="your name for it: replaces what was stored under that name")
    add.add_argument("--expires", metavar="WHEN", type=parse_expiry, help="2w, 3d, 12h, 90m, or 2026-12-31")
    add.add_argument(
        "--at", metavar="TIME", type=parse_past, help="when it happened or was said: 3d (ago), or a date (now)"
    )
    add.add_argument("--confidence", metavar="SHARE", type=float, default=1.0, help="how sure, 0 to 1 (1)")
    add.add_argument("--speaker", metavar="NAME", default="", help="who said it")
    add.add_argument(
        "--request-id", metavar="UUID", default="", help="repeat a call with the same id, and it counts once"
    )


def _add_looking(command: Command) -> None:
    search = command(
        "search",
        "find what answers a question, best first",
        '  memory search "What should I avoid eating?"\n  memory search --about Sarah food\n'
        '  memory search --limit 3 --json "favorite color"\n  memory search --explain dinner\n'
        "  memory search --as-of 2026-05-01 address\n  memory search --why-not 3z7rg3dn food\n",
    )
    search.add_argument("query", nargs="+", help="the question or some words; - reads them from standard input")
    search.add_argument("-n", "--limit", metavar="N", type=int, default=0, help="how many at the most (10)")
    search.add_argument(
        "--min-score",
        metavar="SCORE",
        type=float,
        help="leave out what scores lower; 0 leaves out nothing (unset: what is no answer is left out)",
    )
    search.add_argument("--explain", action="store_true", help="draw what each leg of the search added")
    search.add_argument(
        "--as-of",
        metavar="TIME",
        type=parse_known,
        help="as things were known then (3d ago, or at the end of a day): without what came later, with what was"
        " replaced since",
    )
    search.add_argument(
        "--why-not", metavar="ID", default="", help="also say why this memory is not found, or at which place it is"
    )
    add_filters(search, parse_past)
    search.add_argument("--below", metavar="PATH", default="", help="of notes: only this path and what lies below it")

    listing = command(
        "list",
        "list what is remembered, newest first",
        "  memory list\n  memory list --limit 100 --about Sarah\n  memory list --all --json\n  memory list --deleted\n",
    )
    listing.add_argument("-n", "--limit", metavar="N", type=int, default=20, help="how many at the most (20)")
    listing.add_argument("--all", action="store_true", help="everything, however much")
    listing.add_argument(
        "--deleted", action="store_true", help="what was deleted and can be taken back (undelete); for the host alone"
    )
    add_filters(listing, parse_past)

    command("get", "show one memory with all its fields", "  memory get k3j5x2ab\n").add_argument(
        "id", help="the id, or at least 8 characters of it"
    )


def _add_deleting(command: Command) -> None:
    undelete = command("undelete", "take back a delete, or a replacement", "  memory undelete k3j5x2ab\n")
    undelete.add_argument("id", nargs="+", help="the ids, or at least 8 characters of each")

    delete = command(
        "delete",
        "forget memories; they can be taken back for some days",
        "  memory delete k3j5x2ab\n  memory delete --now k3j5x2ab\n  memory delete --dry-run k3j5x2ab\n"
        '  memory delete --matching "old address" --dry-run\n  memory delete --about Bob --until 2026-01-01\n',
    )
    delete.add_argument("id", nargs="*", help="the ids, or at least 8 characters of each; or say which below")
    delete.add_argument("--matching", metavar="TEXT", default="", help="whose text holds this, literally")
    delete.add_argument("--speaker", metavar="NAME", default="", help="that this speaker stated")
    delete.add_argument("--channel", metavar="NAME", default="", help="that came in by this channel")
    delete.add_argument("--thread", metavar="ID", default="", help="that were said in this thread")
    delete.add_argument("--session", metavar="ID", default="", help="that were said in this session")
    delete.add_argument("--grant", metavar="ID", default="", help="that came through this grant")
    where = delete.add_mutually_exclusive_group()
    where.add_argument("--shared", action="store_const", const=True, default=None, help="only those of the chat")
    where.add_argument("--personal", dest="shared", action="store_const", const=False, help="only one's own")
    add_filters(delete, parse_past, all_states=True)
    delete.add_argument("--now", action="store_true", help="erase for good, at once")
    delete.add_argument("--allow-missing", action="store_true", help="what is not there is fine")
    delete.add_argument("--dry-run", action="store_true", help="only show what would go")


def _add_deciding(command: Command) -> None:
    correct = command(
        "correct",
        "replace what a memory says",
        '  memory correct k3j5x2ab "my wife\'s name is Sara, without an h"\n',
    )
    correct.add_argument("id", help="the id, or at least 8 characters of it")
    correct.add_argument("text", nargs="+", help="what it should say; - reads it from standard input")
    confirm = command(
        "confirm",
        "say that a memory is true; what contests it is replaced",
        "  memory confirm k3j5x2ab\n  memory confirm --no-protect k3j5x2ab\n",
    )
    confirm.add_argument("id", nargs="+", help="the ids, or at least 8 characters of each")
    confirm.add_argument("--no-protect", action="store_true", help="let it fade and be evicted as before")
    command(
        "why",
        "show where a memory comes from: the messages that say so",
        "  memory why k3j5x2ab\n  memory why k3j5x2ab --json\n",
    ).add_argument("id", help="the id, or at least 8 characters of it")
    command(
        "history", "show what a memory replaced, what replaced it, and why", "  memory history k3j5x2ab\n"
    ).add_argument("id", help="the id, or at least 8 characters of it")


def _add_people(command: Command) -> None:
    people = command("people", "list who is known", "  memory people\n  memory people --all --json\n")
    people.add_argument("-n", "--limit", metavar="N", type=int, default=20, help="how many at the most (20)")
    people.add_argument("--all", action="store_true", help="everybody, however many")
    person = command(
        "person",
        "show what is known of someone or something",
        '  memory person Sarah\n  memory person "my wife"\n  memory person Sara --rename Sarah\n'
        "  memory person Luna --type other\n"
        "  memory person Sally --merge-into Sarah\n  memory person --unmerge k3j5x2abcdefghijklmnopqrst\n"
        "  memory person --unmerge Christina\n",
    )
    person.add_argument("name", nargs="+", help="a name, nickname, handle, relation, or entity id")
    person.add_argument("-n", "--limit", metavar="N", type=int, default=20, help="how many memories (20)")
    change = person.add_mutually_exclusive_group()
    change.add_argument("--rename", metavar="NAME", help="call them so from now on")
    change.add_argument("--type", choices=ENTITY_TYPES, help='what it is; a pet is "other"')
    change.add_argument("--merge-into", metavar="NAME", help="say that the two are one")
    change.add_argument("--unmerge", action="store_true", help="split this entity id, or alias, off again")
    forget = command(
        "forget",
        "erase all that is known about a person, or about the user, for good",
        "  memory forget Bob --dry-run\n  memory forget 'Sarah Connor' Bob --with-messages --yes\n"
        "  memory forget --everything --dry-run\n",
    )
    forget.add_argument("name", nargs="*", help="an exact name, an alias, or a whole entity id; one name an argument")
    forget.add_argument("--with-messages", action="store_true", help="and the messages that name them")
    forget.add_argument(
        "--everything", action="store_true", help="all that the user has with this agent: memories and conversations"
    )
    forget.add_argument("--dry-run", action="store_true", help="only show what would go")
    forget.add_argument("--yes", action="store_true", help="do not ask")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _add_telling(command: Command) -> None:
    context = command(
        "context",
        "write the block of text that a prompt needs",
        '  memory context "Plan a dinner for Sarah"\n  memory context --max-tokens 500 - < prompt.txt\n'
        '  memory context --thread cli:alice "And for how many?"\n'
        "  memory context --thread cli:alice --section working_memory,thread_summary,recent_messages\n",
    )
    context.add_argument(
        "prompt",
        nargs="*",
        help="what the user said; - reads it from standard input; none, with --thread: what is latest",
    )
    context.add_argument("--thread", metavar="THREAD", default="", help="with what belongs to this conversation")
    context.add_argument("--shared", action="store_true", help="it is one of the chat")
    context.add_argument("--max-tokens", metavar="N", type=int, default=0, help="how long (2000)")
    context.add_argument("--max-memories", metavar="N", type=int, default=0, help="how many memories (10)")
    context.add_argument("--recent", metavar="N", type=int, default=0, help="how many of its last messages (10)")
    context.add_argument("--recalled", metavar="N", type=int, default=0, help="how many earlier ones (5)")
    context.add_argument(
        "--min-score",
        metavar="SCORE",
        type=float,
        help="leave out what scores lower; 0 leaves out nothing (unset: what is no answer is left out)",
    )
    context.add_argument(
        "--section",
        metavar="NAME",
        type=_names,
        action="extend",
        default=[],
        help="only these, in this order; with commas between, or repeated",
    )
    context.add_argument(
        "--exclude-thread", metavar="THREAD", action="append", default=[], help="without its messages; may be repeated"
    )
    context.add_argument(
        "--exclude-session", metavar="KEY", action="append", default=[], help="without its messages; may be repeated"
    )
    context.add_argument(
        "--tokenizer", metavar="NAME", default="", help="what counts the tokens; installed at the host"
    )

    command(
        "profile",
        "show what is always true of the user: every context begins with it",
        "  memory profile\n  memory profile --json\n",
    )
    command("stats", "count what is remembered", "  memory stats\n")
    command("whoami", "show which identity and which daemon this is", "  memory whoami\n")


_COMMANDS = {
    "add": _add_add,
    "search list get": _add_looking,
    "undelete delete": _add_deleting,
    "correct confirm history why": _add_deciding,
    "update": lambda command: add_update(command, pair, parse_expiry),
    "people person forget": _add_people,
    "threads log summary working-memory": add_talking,
    "note notes": add_notes,
    "context profile stats whoami": _add_telling,
}
"""What adds which commands: making all of them takes 5 ms, and one is wanted."""
