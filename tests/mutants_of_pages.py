"""Bugs of the inspector and of the HTTP door that the suite must kill; see `mutants`."""

from __future__ import annotations

SITE, PARTS, PAGES = (
    "tests/test_inspector.py",
    "tests/test_inspector_parts.py",
    "tests/test_inspector_memory.py tests/test_inspector_talk.py",
)
DOOR, BODIES, TURNS = "tests/test_http_door.py", "tests/test_http_bodies.py", "tests/test_http_turns.py"
SERVER = "tests/test_web_server.py"
TERMS = "tests/test_filter_terms.py tests/conformance/test_knowledge.py"

MUTANTS_OF_PAGES = [
    ("memoryd/inspector/entry.py", '        self._link = ""\n', "", SITE),
    (
        "memoryd/inspector/entry.py",
        "return hmac.compare_digest(token.encode(), self.csrf.encode())",
        "return True",
        SITE,
    ),
    ("memoryd/inspector/entry.py", 'return "" if self.knows(request) else', 'return "" if True else', SITE),
    ("memoryd/inspector/entry.py", "return name in self._names and (", "return (", PARTS),
    ("memoryd/inspector/entry.py", "request.cookies.get(self.cookie_name", 'request.cookies.get("memoryd"', SITE),
    (
        "memoryd/inspector/app.py",
        "    app.router.redirect_slashes = False",
        "    app.router.redirect_slashes = True",
        SITE,
    ),
    ("memoryd/inspector/app.py", "            made.headers.update(HEADERS)\n", "", SITE),
    ("memoryd/inspector/app.py", "path=entry.base", 'path="/"', SITE),
    ("memoryd/inspector/view.py", "        autoescape=True,", "        autoescape=False,", SITE),
    ("memoryd/inspector/view.py", "if not self.entry.is_form_ours(", "if False and not self.entry.is_form_ours(", SITE),
    (
        "memoryd/inspector/view.py",
        "return self.request.query_params.get(name, default)",
        "return self.request.query_params.get(name, default).strip()",
        PAGES,
    ),
    (
        "memoryd/inspector/view.py",
        'self.session.said.pop(self.asked("said"), [])',
        'self.session.said.get(self.asked("said"), [])',
        PAGES,
    ),
    ("memoryd/inspector/shown_text.py", "        elif left <= 0:", "        elif False:", PARTS),
    ("memoryd/inspector/shown_text.py", "        or combining > MOST_COMBINING\n", "", PARTS),
    (
        "memoryd/inspector/shown_text.py",
        "            parts.append(escape(piece))",
        "            parts.append(Markup(piece))",
        SITE,
    ),
    ("memoryd/inspector/shown_text.py", "        or letter in _STRIKES\n", "", PARTS),
    (
        "memoryd/inspector/graph.py",
        "                in_words(person.name, MOST_IN_NAME),",
        "                Markup(person.name),",
        PARTS,
    ),
    (
        "memoryd/inspector/figures.py",
        "        if self._looked is None or self._now() - self._looked < ATTENTION:",
        "        if True:",
        PARTS,
    ),
    (
        "memoryd/inspector/pages/memory.py",
        "    for one in former:\n        await view.client.restore(one)\n",
        "",
        PAGES,
    ),
    (
        "memoryd/inspector/pages/memory.py",
        'tags.splitlines() if view.form.get("a_line")',
        'tags.split(",") if view.form.get("a_line")',
        PAGES,
    ),
    ("memoryd/inspector/pages/notes.py", '"is_searched": kept.is_searched, ', "", PAGES),
    ("memoryd/inspector/pages/notes.py", "    if wanted != str(kept.revision):", "    if False:", PAGES),
    ("memoryd/inspector/pages/search.py", "ask(min_score=0.0)", "ask()", PAGES),
    (
        "memoryd/inspector/view.py",
        "        except (InvalidArgument, LimitExceeded, NotFound) as error:",
        "        except ZeroDivisionError as error:",
        SITE,
    ),
    ("memoryd/inspector/times.py", 'else " %H:%M" if length < WITH_HOURS else ""', 'else ""', PARTS),
    ("memoryd/inspector/drawing.py", "times.span(first, last)", "times.span(first, first)", PAGES),
    ("memoryd/inspector/pages/contested.py", "            known[found.id] = found\n", "            pass\n", PAGES),
    (
        "memoryd/web/listen.py",
        "            if self.path and _inode(self.path) == inode:",
        "            if self.path:",
        SERVER,
    ),
    (
        "memoryd/http/door.py",
        "if self._names and (name not in self._names",
        "if False and (name not in self._names",
        DOOR,
    ),
    ("memoryd/http/door.py", "if origin is not None and origin not in", "if False and origin not in", DOOR),
    ("memoryd/http/door.py", "return min(int(given), LONGEST_MS) / 1e3", "return int(given) / 1e3", TURNS),
    ("memoryd/http/reading.py", '        if not text.startswith("{"):', "        if False:", BODIES),
    ("memoryd/http/door.py", "        if name in headers and name in ONCE:", "        if False:", TURNS),
    ("memoryd/http/failures.py", "    if isinstance(known, TimedOut) and", "    if False and", TURNS),
    ("memoryd/cli/http.py", "            asks.whoami()\n", "            return target\n", DOOR),
    ("memoryd/model/filter_terms.py", "    if memory.contested_with:\n        terms.append(CONTESTED)\n", "", TERMS),
    ("memoryd/model/query.py", "self.contested and not memory.contested_with", "False", TERMS),
    ("memoryd/domain/retrieval/recall.py", "    if not query.without_recall:", "    if True:", "tests/test_daemon.py"),
    ("memoryd/http/lines.py", "MOST_OF_CALLER = 16", "MOST_OF_CALLER = 1600", TURNS),
    (
        "memoryd/http/lines.py",
        "self._lines[shown.digest[0] % LINES] if is_known else self._strangers",
        "self._strangers",
        TURNS,
    ),
    ("memoryd/http/lines.py", "            elif failure.is_the_daemons:", "            else:", TURNS),
    ("memoryd/http/door.py", "    leaving.add_done_callback(lambda _: calling.cancel())", "", TURNS),
    ("memoryd/http/lines.py", "self._large[shown.grant_id] >= MOST_LARGE_OF_ONE", "False", TURNS),
    ("memoryd/http/reading.py", "        self._count += 1 + len(pairs)", "        self._count += 0", BODIES),
    (
        "memoryd/web/server.py",
        "        super().on_response_complete()\n        self._watch()",
        "        super().on_response_complete()",
        SERVER,
    ),
    ("memoryd/web/server.py", "                oldest.cancel()", "                pass", SERVER),
]
