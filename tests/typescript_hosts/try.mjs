// A model that needs no network plays both examples; prints "ok" at the end: node try.mjs
import assert from "node:assert/strict";
import { MockLanguageModelV3, MockLanguageModelV4 } from "ai/test";
import { MemoryClient } from "memoryd";

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** A model that first calls one tool and then says what came of it. */
function model(Mock, seen, toolName, input) {
  let step = 0;
  const parts = (prompt) => {
    seen.push(JSON.stringify(prompt));
    return step++ === 0
      ? { content: [{ type: "tool-call", toolCallId: "c1", toolName, input: JSON.stringify(input) }], finish: "tool-calls" }
      : { content: [{ type: "text", text: "Done." }], finish: "stop" };
  };
  return new Mock({
    doGenerate: async ({ prompt }) => {
      const { content, finish } = parts(prompt);
      return { content, finishReason: { unified: finish, raw: finish }, usage, warnings: [] };
    },
    doStream: async ({ prompt }) => {
      const { content, finish } = parts(prompt);
      const [part] = content;
      const chunks = part.type === "text"
        ? [{ type: "text-start", id: "t" }, { type: "text-delta", id: "t", delta: part.text }, { type: "text-end", id: "t" }]
        : [part];
      return {
        stream: new ReadableStream({
          start(controller) {
            controller.enqueue({ type: "stream-start", warnings: [] });
            for (const chunk of chunks) controller.enqueue(chunk);
            controller.enqueue({ type: "finish", finishReason: { unified: finish, raw: finish }, usage });
            controller.close();
          },
        }),
      };
    },
  });
}

for (const [name, Mock] of [["ai-sdk", MockLanguageModelV4], ["mastra", MockLanguageModelV3]]) {
  const { answer } = await import(`./${name}.mjs`);
  const userId = `${name}-${process.pid}`;
  const memory = new MemoryClient({ userId, chatId: "", agentId: "" });
  await memory.addMemory({ content: "I'm allergic to peanuts" });
  const seen = [];
  assert.equal(await answer(model(Mock, seen, "searchMemory", { query: "peanuts allergic" }), userId, "cli", "What may I eat?"), "Done.");
  assert.match(seen[0], /allergic to peanuts/); // by the context
  assert.equal(seen[1].split("allergic to peanuts").length > seen[0].split("allergic to peanuts").length, true); // by the tool
  await answer(model(Mock, [], "remember", { content: "I live in Ghent" }), userId, "cli", "I live in Ghent");
  const kept = (await memory.listMemories({})).memories.map((one) => one.content);
  assert.ok(kept.includes("I live in Ghent"), kept.join());
  const said = (await memory.listMessages({ threadId: "cli" })).messages.map((one) => one.content);
  assert.deepEqual(said, ["What may I eat?", "Done.", "I live in Ghent", "Done."]);
  memory.close();
}
console.log("ok");
process.exit(0);
