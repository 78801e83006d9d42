// Remember something, find it, and build the context of a prompt. In a project with the package installed: node remember.ts (Node 24)
import { MemoryClient } from "memoryd";

const memory = new MemoryClient({ userId: "alice" });

await memory.addMemory({ content: "I'm allergic to peanuts" });
const { hits } = await memory.searchMemories({ query: "What should I avoid eating?" });
for (const hit of hits) console.log(hit.score.toFixed(2), hit.memory?.content);

const talk = memory.conversation("cli:alice");
await talk.user("The oven is broken, only the stove works");
await talk.assistant("Noted: stove only.");
console.log((await talk.context("What shall I cook tonight?")).text);
memory.close();
