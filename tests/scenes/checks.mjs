// What a user of the package meets beyond the scenes; prints "ok" at the end.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import {
  InvalidArgument, MemoryClient, MemorydError, NotFound, RequestIdReused, ScopeMismatch, ThreadNotFound, Unauthenticated,
  Unavailable, timestampDate, toJson,
} from "memoryd";
import { create } from "@bufbuild/protobuf";
import { runInNewContext } from "node:vm";
import { AddMemoryRequestSchema, ListMemoriesResponseSchema, MemoryKind } from "memoryd/contract";

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

// what is handed in is read by the contract, and nothing is lost or changed without a word
const wrongs = [
  [client.deleteMemories({ text: "anchor", dry_run: true }), "dry_run", "dryRun"],
  [client.listMemories({ filter: { tag: ["x"] } }), "filter.tag", "tags"],
  [client.addMemory({ content: "x", tags: "food" }), "tags", "a list"],
  [client.addMemory({ content: 5 }), "content", "a string"],
  [client.addMemory({ content: "x", kind: "facts" }), "kind", "MemoryKind.PREFERENCE"],
  [client.addMemory({ content: "x", metadata: { n: 1 } }), "metadata.n", "a string"],
  [client.addMemory({ content: "x", metadata: new Map() }), "metadata", "an object"],
  [client.addMemory({ content: "x", metadata: { "k\ud800": "v" } }), "metadata", "surrogate"],
  [client.addMemory({ content: "\ud800" }), "content", "surrogate"],
  [client.addMemory({ content: "x", eventTime: "2026-05-03" }), "eventTime", "a zone"],
  [client.addMemory({ content: "x", eventTime: new Date("x") }), "eventTime", "a Date"],
  [client.addMemory({ content: "x", eventTime: 5 }), "eventTime", "a Date"],
  [client.addMemory({ content: "x", eventTime: {} }), "eventTime", "a Date"],
  [client.addMemory({ content: "x", eventTime: "2026-02-30T00:00:00Z" }), "eventTime", "a Date"],
  [client.listMemories({ filter: new Date() }), "filter", "an object"],
  [client.listMemories(new Map()), "", "an object"],
  [client.addMemory({ content: "x", kind: 2 ** 40 }), "kind", "MemoryKind"],
  [client.putNote({ path: "n", text: "x", expectedRevision: 2n ** 70n }), "expectedRevision", "64 bits"],
  [client.putNote({ path: "n", content: "hello" }), "content", "text, value"],
  [client.putNote({ path: "n", content: { text: "hello" } }), "content", "text, value"],
  [client.updateMemory({ id: "x", updateMask: { path: ["tags"] } }), "updateMask", "names of fields"],
  [client.listMemories({}, { timeoutMs: Infinity }), "timeoutMs", "more than 0"],
  [client.searchMemories({ query: "x", limit: 2.5 }), "limit", "a whole number"],
  [client.searchMemories({ query: "x", explain: "true" }), "explain", "true or false"],
  [client.batchAddMemories({ requests: [{}, { contents: "x" }] }), "requests[1].contents", "content"],
  [client.putNote({ path: "n", content: { case: "txt", value: "x" } }), "content", "text, value"],
  [client.getMemory([]), "", "an object"],
];
for (const [call, field, said] of wrongs) {
  error = await failure(call);
  assert.ok(error instanceof InvalidArgument && error.field === field, `${error.name} ${error.field}: ${error.message}`);
  assert.ok(error.message.includes(said), error.message);
}
let refusedTimes = 0; // a hundred neighbours of a time: each is kept as it is, or refused by its field
for (const [month, day] of [["00", "01"], ["13", "01"], ["02", "29"], ["02", "30"], ["04", "31"], ["12", "31"], ["99", "99"], ["06", "00"]]) {
  for (const rest of ["T00:00Z", "T23:59:59Z", "T24:00:00Z", "T25:00:00Z", "T12:60:00Z", "t12:00:00z", "T12:00:00+14:00", "T12:00:00+99:00",
    "T12:00:00.123456789Z", "T12:00:00", "T12:00:00.1234567890Z", " 12:00:00Z", "Z"]) {
    const call = client.addMemory({ content: `at ${month}${day}${rest}`, eventTime: `2024-${month}-${day}${rest}` });
    const failed = await call.then(() => undefined, (told) => told);
    if (failed === undefined) continue;
    assert.ok(failed instanceof InvalidArgument && failed.field === "eventTime", `${month}-${day}${rest}: ${failed}`);
    refusedTimes += 1;
  }
}
assert.ok(refusedTimes > 60 && refusedTimes < 100, `${refusedTimes} of 104`);
const soon = new Date(Date.now() + 3_600_000);
const draft = { content: "I like tea at five", kind: "PREFERENCE", eventTime: new Date("2020-02-03T00:00:00Z"), expireTime: soon };
const { result } = await client.addMemory(draft);
assert.deepEqual(Object.keys(draft), ["content", "kind", "eventTime", "expireTime"]); // it is the caller's, and stays so
assert.equal(timestampDate(result.memory.eventTime).toISOString(), "2020-02-03T00:00:00.000Z");
assert.equal(timestampDate(result.memory.expireTime).getTime(), soon.getTime());
assert.equal(MemoryKind[result.memory.kind], "PREFERENCE");
const message = create(AddMemoryRequestSchema, { content: "I like milk in it" });
await client.addMemory(message);
assert.deepEqual([message.userId, message.requestId], ["", ""]); // so that it may be sent again as another request
const { memory } = await client.updateMemory({ id: result.memory.id, tags: ["tea"], updateMask: { paths: ["tags", "expireTime"] } });
assert.deepEqual([memory.tags, memory.expireTime], [["tea"], undefined]);
await client.putNote({ path: "plain", text: "x" });
assert.equal((await client.getNote({ path: "plain" })).note.content.value, "x");
assert.ok(JSON.stringify(toJson(ListMemoriesResponseSchema, await client.listMemories({}))).includes("milk"));
assert.ok((await failure(client.listMemories({ pageSize: 1, pageToken: "x", filter: { eventTimeFrom: soon, eventTimeTo: soon } }))).field);
error = await failure(client.each(client.searchMemories, { query: "tea" }, (answer) => answer.hits).next().then(() => assert.fail()));
assert.ok(error.message);

const foreign = runInNewContext("new Date('2026-01-02T03:04:05Z')"); // a Date of another realm
const far2 = await client.addMemory({ content: "I was in Lima", eventTime: foreign });
assert.equal(timestampDate(far2.result.memory.eventTime).toISOString(), "2026-01-02T03:04:05.000Z");

// what is said at once stays in order
const fast = client.conversation("cli:fast");
await Promise.all(["one", "two", "three", "four"].map((word) => fast.user(word)));
assert.deepEqual((await fast.recent()).map((one) => one.content), ["one", "two", "three", "four"]);
const draft2 = { role: "USER", content: "before" };
const said = fast.say(draft2);
draft2.content = "after";
const [, ended] = await Promise.all([said, fast.end()]);
assert.equal((await fast.recent()).at(-1).content, "before");
assert.equal(ended.id, fast.sessionId);

// hostile texts come back as they went
let kept = 0;
for (const text of ["\u202eevil\u2066", "<script>", "\ud800", "😀", "x".repeat(100_000), "\r\n\t", "__proto__", "a\u0000b"]) {
  try {
    const { note } = await client.putNote({ path: "n", content: { case: "text", value: text } });
    assert.equal((await client.getNote({ path: "n" })).note.content.value, text);
    assert.equal(note.path, "n");
    kept += 1;
  } catch (failed) {
    assert.ok(failed instanceof InvalidArgument, String(failed));
  }
}
assert.ok(kept >= 6, `${kept} were kept`);

client.close();
far.close();
console.log("ok");
