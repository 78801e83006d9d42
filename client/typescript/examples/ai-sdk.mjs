// The Vercel AI SDK with a memory: what is known goes into the instructions, and the model searches and adds by tools.
import { generateText, isStepCount, tool } from "ai";
import { z } from "zod";
import { MemoryClient } from "memoryd";

/** The memory of a user as tools of the AI SDK. */
export function memoryTools(memory) {
  return {
    searchMemory: tool({
      description: "Search what is known about the user.",
      inputSchema: z.object({ query: z.string() }),
      execute: async ({ query }) => (await memory.searchMemories({ query })).hits.map((hit) => hit.memory?.content),
    }),
    remember: tool({
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
  const { text } = await generateText({
    model,
    instructions: `You help the user.\n${known}`,
    prompt,
    tools: memoryTools(memory),
    stopWhen: isStepCount(5),
  });
  await talk.assistant(text);
  memory.close();
  return text;
}
