// Times searches: a query on each line of standard input, its milliseconds on each line of standard output.
import { MemoryClient } from "memoryd";

const client = new MemoryClient({ userId: "k1", chatId: "", agentId: "" });
await client.searchMemories({ query: "warm up" });
process.stdout.write("ready\n");
for await (const line of (await import("node:readline")).createInterface({ input: process.stdin })) {
  const began = performance.now();
  await client.searchMemories({ query: line });
  process.stdout.write(`${performance.now() - began}\n`);
}
client.close();
