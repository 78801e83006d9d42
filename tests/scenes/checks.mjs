// What a user of the package meets beyond the scenes; prints "ok" at the end.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import {
  InvalidArgument, MemoryClient, MemorydError, NotFound, RequestIdReused, ScopeMismatch, ThreadNotFound, Unauthenticated,
  Unavailable,
} from "memoryd";

const client = new MemoryClient({ userId: "checks", chatId: "", agentId: "" });

// identity from the environment, the arguments first
process.env.MEMORY_USER_ID = "from-env";
assert.equal(new MemoryClient().identity.userId, "from-env");
assert.equal(new MemoryClient({ userId: "given" }).identity.userId, "given");
delete process.env.MEMORY_USER_ID;

// paging
for (let n = 0; n < 7; n++) await client.addMemory({ content: `number ${n} is mine` });
const all = [];
for await (const memory of client.each(client.listMemories, { pageSize: 3 }, (page) => page.memories)) all.push(memory.content);
assert.deepEqual(all, [6, 5, 4, 3, 2, 1, 0].map((n) => `number ${n} is mine`));
for await (const memory of client.each(client.listMemories, { pageSize: 3 }, (page) => page.memories)) {
  assert.ok(memory.createTime.seconds > 0n);
  break; // nothing more is fetched
}

// errors are a tree
const failure = async (promise) => promise.then(() => assert.fail("did not fail"), (error) => error);
let error = await failure(client.getMemory({ id: "a".repeat(26) }));
assert.ok(error instanceof NotFound && error instanceof MemorydError && error instanceof Error);
assert.deepEqual([error.name, error.reason, error.field], ["NotFound", "MEMORY_NOT_FOUND", "id"]);
error = await failure(client.addMemory({ content: "" }));
assert.ok(error instanceof InvalidArgument && error.field === "content");
await client.addMemory({ content: "once", requestId: "r" });
assert.ok((await failure(client.addMemory({ content: "twice", requestId: "r" }))) instanceof RequestIdReused);
assert.ok((await failure(client.getThread({ threadId: "none" }))) instanceof ThreadNotFound);
error = await failure(new MemoryClient({ endpoint: "unix:///nowhere/at/all.sock", userId: "x" }).listMemories({}));
assert.ok(error instanceof Unavailable, `${error.name} ${error.message}`);
for (const endpoint of ["ftp://x", "nonsense", "unix:relative"]) {
  assert.throws(() => new MemoryClient({ endpoint }), InvalidArgument);
}

// a conversation
const talk = client.conversation("cli:checks");
assert.deepEqual(await talk.recent(), []);
await talk.user("The oven is broken");
await talk.assistant("Noted.");
assert.deepEqual((await talk.recent()).map((message) => message.content), ["The oven is broken", "Noted."]);
assert.match((await talk.context("Dinner?")).text, /The oven is broken/);
assert.equal((await talk.end()).endReason, "ended");

// a token, from a file that is read again, over HTTP
const tokenFile = "token";
writeFileSync(tokenFile, process.env.TOKEN);
const far = new MemoryClient({ endpoint: process.env.HTTP, userId: "", credentials: { tokenFile } });
await far.addMemory({ content: "I keep bees" });
assert.equal((await far.whoAmI({})).userId, "ts");
error = await failure(far.listMemories({ userId: "bob" }));
assert.ok(error instanceof ScopeMismatch, error.name);
writeFileSync(tokenFile, "rubbish-and-more");
assert.ok((await failure(far.listMemories({}))) instanceof Unauthenticated);
writeFileSync(tokenFile, "");
assert.ok((await failure(far.listMemories({}))) instanceof Unauthenticated);

// hostile texts come back as they went
for (const text of ["\u202eevil\u2066", "<script>", "a\u0000b", "\ud800", "😀", "x".repeat(100_000), "\r\n\t", "__proto__"]) {
  try {
    const { note } = await client.putNote({ path: "n", content: { case: "text", value: text } });
    assert.equal((await client.getNote({ path: "n" })).note.content.value, text);
    assert.equal(note.path, "n");
  } catch (failed) {
    assert.ok(failed instanceof MemorydError, String(failed));
  }
}

client.close();
far.close();
console.log("ok");
