// What the types of the package allow, and what they refuse; it is compiled, and not run.
import { MemoryClient, timestampFromDate } from "memoryd";
import { MemoryKind } from "memoryd/contract";

export async function uses(memory: MemoryClient): Promise<number> {
  const expireTime = timestampFromDate(new Date());
  await memory.addMemory({ content: "x", kind: MemoryKind.PREFERENCE, eventTime: new Date(), expireTime, tags: ["a"] });
  await memory.batchAddMemories({ requests: [{ content: "x", eventTime: new Date(), metadata: { a: "b" } }] });
  await memory.listMemories({ filter: { eventTimeFrom: new Date(), tags: ["a"] } }, { timeoutMs: 1_000 });
  await memory.putNote({ path: "a", content: { case: "text", value: "x" } });
  await memory.conversation("t").say({ content: "x", createTime: new Date() });
  await memory.whoAmI();
  const tags: readonly string[] = ["a"];
  const when: Date | string = Math.random() > 0.5 ? new Date() : "2026-05-03T12:00:00Z";
  await memory.addMemory({ content: "x", tags, eventTime: when });
  let length = 0;
  for await (const one of memory.each(memory.listMemories, { pageSize: 3 }, (page) => page.memories)) length += one.content.length;

  // @ts-expect-error  there is no such field
  await memory.addMemory({ contents: "x" });
  // @ts-expect-error  of another type
  await memory.addMemory({ content: 5 });
  // @ts-expect-error  no time
  await memory.addMemory({ content: "x", eventTime: 5 });
  // @ts-expect-error  its answers have no pages
  memory.each(memory.searchMemories, { query: "x" }, (answer) => answer.hits);
  return length;
}
