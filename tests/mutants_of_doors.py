"""Bugs of memory-mcp, of adapters, and of what is asked by id alone, that the suite must kill; see `mutants`."""

from __future__ import annotations

MCP, ACCESS = "tests/test_mcp.py tests/test_mcp_command.py", "tests/test_mcp_access.py"
UPDATES, BY_ID = "tests/conformance/test_updates.py tests/test_update.py", "tests/test_by_id.py"
LANGGRAPH, CLAUDE = "tests/adapters/test_langgraph.py", "tests/adapters/test_claude.py"
OPENAI, MEM0 = "tests/adapters/test_openai_agents.py tests/adapters/test_provider.py", "tests/adapters/test_mem0.py"

MUTANTS_OF_DOORS = [
    ("client/memory_mcp/arguments.py", 'ConfigDict(extra="forbid")', 'ConfigDict(extra="ignore")', MCP),
    ("client/memory_mcp/server.py", "without(given, error)", "error.message", MCP),
    ("client/memory_mcp/server.py", "if tool.needs is None or tool.needs in may", "if True", ACCESS),
    ("client/memory_mcp/server.py", "as_json(plain, indent=None)", "str(answer.model_dump_json())", MCP),
    ("client/memory_mcp/callers.py", "self._known[name] = _Known(", "_Known(", ACCESS),
    ("client/memory_mcp/callers.py", "if who.door not in {Door.SHARED, Door.TCP}:", "if False:", ACCESS),
    ("client/memory_mcp/callers.py", "_established.get() == token", "True", ACCESS),
    ("client/memory_mcp/callers.py", "            raise DaemonAway from None", "            return True", MCP),
    ("client/memory_mcp/callers.py", "        if known.uses >= MOST_WAITING:", "        if False:", ACCESS),
    ("client/memory_mcp/callers.py", "    if not known.uses:\n", "    if True:\n", ACCESS),
    ("memoryd/web/listen.py", "loops = ip_address(host).is_loopback", "loops = True", MCP),
    ("memoryd/web/listen.py", "before = os.umask(0o177)", "before = os.umask(0)", MCP),
    ("client/memory_mcp/http.py", 'scope["method"] != "POST"', "False", MCP),
    ("client/memory_mcp/http.py", "        token_verifier=callers,\n", "", ACCESS),
    ("memoryd/domain/writing/update.py", "        if not caller.may_erase(memory):", "        if False:", UPDATES),
    ("memoryd/domain/writing/update.py", "        check_changeable(memory, caller, now)\n", "", UPDATES),
    ("memoryd/domain/writing/update.py", "    if held:\n", "    if False:\n", UPDATES),
    ("memoryd/model/memory_update.py", "for name in self.mask}", 'for name in ("tags", "category", "metadata", "expire_time")}', UPDATES),
    ("memoryd/service/memory.py", "            call.session.require(Permission.DELETE)\n", "            pass\n", UPDATES),
    ("memoryd/service/memory.py", 'if request.agent_id not in {"", owner.agent_id}:', "if False:", BY_ID),
    ("memoryd/service/gate.py", "return self.session.grant is None and not any(self.identity[1:])", "return not any(self.identity[1:])", BY_ID),
    ("memoryd/service/gate.py", "if identity[0] == EVERY_AGENT and (", "if False and (", BY_ID),
    ("memoryd/model/grant.py", "        if self.agent_id == EVERY_AGENT:", "        if False:", BY_ID),
    ("memoryd/domain/retrieval/browse.py", "    if len(known) != limits.ID_LENGTH:", "    if False:", BY_ID),
    ("client/memory_client/adapters/langgraph.py", "puts[op.namespace, str(op.key)] = op", "puts.setdefault((op.namespace, str(op.key)), op)", LANGGRAPH),
    ("client/memory_client/adapters/langgraph.py", "notes.sort(key=", "sorted(notes, key=", LANGGRAPH),
    ("client/memory_client/adapters/langgraph.py", "path_prefix=self._prefix(op.namespace_prefix)", 'path_prefix=""', LANGGRAPH),
    ("client/memory_client/adapters/items.py", "return kept if is_same else None", "return kept", OPENAI),
    ("client/memory_client/adapters/langgraph_items.py", "or len(encoded) > NAME_BYTES", "", LANGGRAPH),
    ("client/memory_client/adapters/claude.py", "expected_revision=note.revision)\n    line =", ")\n    line =", CLAUDE),
    ("client/memory_client/adapters/claude.py", 'if path != ROOT and not path.startswith(f"{ROOT}/"):', "if False:", CLAUDE),
    ("client/memory_client/adapters/items.py", "found[:0] = page.messages", "found += page.messages", OPENAI),
    ("client/memory_client/adapters/away.py", "            if self._strict:", "            if True:", OPENAI),
    ("client/memory_client/adapters/away.py", "now - self._told_time >= AGAIN_S", "True", OPENAI),
    ("client/memory_client/adapters/mem0_plans.py", "            sought = memory.superseded_by\n", "            return memory\n", MEM0),
    ("client/memory_client/adapters/mem0_values.py", 'if key not in {*IDS, "actor_id"}', "", MEM0),
    ("client/memory_client/adapters/mem0_filters.py", "return lambda payload: not any(part(payload) for part in parts)", "return lambda payload: any(part(payload) for part in parts)", MEM0),
]  # fmt: skip
