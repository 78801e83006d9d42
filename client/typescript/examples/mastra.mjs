// A Mastra agent with a memory: what is known goes into its instructions, and it searches and adds by tools.
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { z } from "zod";
import { MemoryClient } from "memoryd";

/** The memory of a user as tools of Mastra. */
export function memoryTools(memory) {
  return {
    searchMemory: createTool({
      id: "searchMemory",
      description: "Search what is known about the user.",
      inputSchema: z.object({ query: z.string() }),
      execute: async ({ query }) => (await memory.searchMemories({ query })).hits.map((hit) => hit.memory?.content),
    }),
    remember: createTool({
      id: "remember",
      description: "Remember a statement about the user.",
      inputSchema: z.object({ content: z.string() }),
      execute: async ({ content }) => (await memory.addMemory({ content })).result?.memory?.content ?? "not stored",
    }),
  };
}

/** Answer a prompt in a conversation that is remembered. */
export async function answer(model, userId, threadId, prompt) {
  const memory = new MemoryClient({ userId, chatId: "", agentId: "" });
  const talk = memory.conversation(threadId);
  const { text: known } = await talk.context(prompt);
  await talk.user(prompt);
  const agent = new Agent({
    id: "helper",
    name: "helper",
    instructions: `You help the user.\n${known}`,
    model,
    tools: memoryTools(memory),
  });
  const { text } = await agent.generate(prompt, { maxSteps: 5 });
  await talk.assistant(text);
  memory.close();
  return text;
}
