// What the package does with connections that break, servers that are silent, and callers that leave; prints "ok" at the end.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createPlainServer } from "node:http";
import { constants, createServer } from "node:http2";
import { fromBinary } from "@bufbuild/protobuf";
import { createRouterTransport } from "@connectrpc/connect";
import {
  ConnectionLost, InvalidArgument, MemoryClient, PermissionDenied, TimedOut, Unauthenticated, Unavailable,
} from "memoryd";
import { AddMemoryRequestSchema, IdentityService, MemoryService } from "memoryd/contract";

const patience = Number(process.env.MEMORYD_PATIENCE ?? 1);

const failure = async (promise) => promise.then(() => assert.fail("did not fail"), (error) => error);
const EMPTY = Buffer.alloc(5); // a message of gRPC without fields

/** A daemon that does with each call what the next word says: ok, cut, refuse, hang. */
async function daemon(path, ...words) {
  const bodies = [];
  const sessions = new Set();
  const server = createServer();
  server.on("session", (session) => sessions.add(session));
  server.on("stream", (stream) => {
    const chunks = [];
    stream.on("error", () => {});
    stream.on("data", (chunk) => chunks.push(chunk));
    stream.on("end", () => {
      bodies.push(Buffer.concat(chunks).subarray(5));
      const word = words.shift() ?? "ok";
      if (word === "cut" || word === "end") stream.session.destroy();
      if (word === "end") server.close();
      if (word === "refuse") stream.close(constants.NGHTTP2_REFUSED_STREAM);
      if (word !== "ok") return;
      stream.respond({ ":status": 200, "content-type": "application/grpc+proto" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.end(EMPTY);
    });
  });
  server.listen(path);
  await once(server, "listening");
  const end = () => {
    server.close();
    for (const session of sessions) session.destroy();
  };
  return { bodies, end };
}

let n = 0;
async function over(words, work, options = {}) {
  const path = `${process.cwd()}/failures-${process.pid}-${n++}.sock`;
  const { bodies, end } = await daemon(path, ...words);
  const client = new MemoryClient({ endpoint: `unix://${path}`, userId: "alice", chatId: "", agentId: "", credentials: {}, ...options });
  try {
    await work(client, bodies);
  } finally {
    client.close();
    end();
  }
}

// what was cut off is sent again, as the same request
await over(["cut", "cut"], async (client, bodies) => {
  await client.addMemory({ content: "once" });
  assert.equal(bodies.length, 3);
  const ids = bodies.map((body) => fromBinary(AddMemoryRequestSchema, body).requestId);
  assert.deepEqual(new Set(ids), new Set([ids[0]]));
  assert.match(ids[0], /^[0-9a-f-]{36}$/);
});
await over(["refuse", "refuse"], async (client, bodies) => {
  await client.addMemory({ content: "once" });
  assert.equal(bodies.length, 3);
});
await over(["cut"], async (client, bodies) => {
  await client.listMemories({});
  assert.equal(bodies.length, 2);
});

// three times, and then it is in doubt
await over(["cut", "cut", "cut"], async (client, bodies) => {
  const error = await failure(client.addMemory({ content: "never" }));
  assert.ok(error instanceof ConnectionLost && error instanceof TimedOut, `${error.name}: ${error.message}`);
  assert.match(error.message, /a write may have happened/);
  assert.equal(bodies.length, 3);
});

// nothing is reached after a write that may have happened: that is no promise that nothing was written
await over(["end"], async (client) => {
  const error = await failure(client.addMemory({ content: "maybe" }));
  assert.ok(error instanceof ConnectionLost, `${error.name}: ${error.message}`);
});

// what is not the same when it is done twice is sent once
for (const call of [
  (client) => client.forgetPerson({ name: "Sarah" }),
  (client) => client.deleteMemory({ id: "a".repeat(26), purge: true }),
  (client) => client.putNote({ path: "a", text: "x", expectedRevision: 1n }),
  (client) => client.deleteThread({ threadId: "t" }),
]) {
  await over(["cut"], async (client, bodies) => {
    assert.ok((await failure(call(client))) instanceof ConnectionLost);
    assert.equal(bodies.length, 1);
  });
}
await over(["cut"], async (client, bodies) => {
  await client.deleteThread({ threadId: "t", dryRun: true });
  assert.equal(bodies.length, 2);
});

// a server that is silent, and callers that leave
await over(["hang", "hang", "hang"], async (client, bodies) => {
  const error = await failure(client.addMemory({ content: "silence" }));
  assert.ok(error instanceof TimedOut && !(error instanceof ConnectionLost), `${error.name}: ${error.message}`);
  assert.equal(bodies.length, 1);
}, { timeoutMs: 400 * patience });
await over(["hang", "hang", "hang", "hang"], async (client) => {
  const mine = new Error("mine");
  assert.equal(await failure(client.listMemories({}, { signal: AbortSignal.abort(mine) })), mine);
  const leaves = new AbortController();
  setTimeout(() => leaves.abort(mine), 50);
  assert.equal(await failure(client.listMemories({}, { signal: leaves.signal })), mine);
  assert.equal((await failure(client.listMemories({}, { signal: AbortSignal.timeout(50) }))).name, "TimeoutError");
});

// a client that is closed while it waits for its next attempt sends no more
await over(["cut", "cut", "cut"], async (client, bodies) => {
  const call = failure(client.addMemory({ content: "x" }));
  while (bodies.length === 0) await new Promise((done) => setTimeout(done, 1));
  client.close();
  await call;
  assert.equal(bodies.length, 1);
});

// over HTTP as well
for (const { words, attempts, kind } of [
  { words: ["cut", "cut", "cut"], attempts: 3, kind: ConnectionLost },
  { words: ["hang"], attempts: 1, kind: TimedOut },
]) {
  let seen = 0;
  const server = createPlainServer((request) => {
    seen += 1;
    if ((words.shift() ?? "hang") === "cut") request.socket.destroy();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = new MemoryClient({ endpoint: `http://127.0.0.1:${server.address().port}`, userId: "alice", timeoutMs: 1_000 * patience });
  const error = await failure(client.addMemory({ content: "never" }));
  assert.ok(error instanceof kind, `${error.name}: ${error.message}`);
  assert.equal(seen, attempts);
  client.close();
  server.closeAllConnections();
  server.close();
}

// a client that is closed, and what cannot be reached
const closed = new MemoryClient({ endpoint: "unix:///nowhere.sock", userId: "x" });
closed.close();
assert.ok((await failure(closed.listMemories({}))) instanceof InvalidArgument);
for (const endpoint of ["unix:///nowhere.sock", "127.0.0.1:1", "http://127.0.0.1:1"]) {
  const error = await failure(new MemoryClient({ endpoint, userId: "x" }).addMemory({ content: "x" }));
  assert.ok(error instanceof Unavailable, `${endpoint}: ${error.name}: ${error.message}`);
}
for (const endpoint of ["http://memory.example.org:8766", "http://10.0.0.1:1", "http://127.0.0.1:1/api"]) {
  assert.throws(() => new MemoryClient({ endpoint }), InvalidArgument);
}
assert.throws(() => new MemoryClient({ timeoutMs: 0 }), InvalidArgument);
assert.throws(() => new MemoryClient({ credentials: { caFile: "/nothing" } }), /caFile \/nothing cannot be read/);
for (const token of ["a\nb", "é", "a b"]) {
  const error = await failure(new MemoryClient({ endpoint: "unix:///nowhere.sock", credentials: { token } }).listMemories({}));
  assert.ok(error instanceof Unauthenticated && !error.message.includes(token), error.message);
}

// a transport of one's own is called as any other
const seen = [];
const transport = createRouterTransport(({ service }) => {
  service(MemoryService, { addMemory: (request, context) => (seen.push([request, context.requestHeader.get("authorization")]), {}) });
  service(IdentityService, {});
});
const own = new MemoryClient({ transport, userId: "alice", chatId: "", agentId: "", credentials: { token: "t" } });
await own.addMemory({ content: "x" });
assert.deepEqual([seen[0][0].userId, seen[0][0].requestId.length, seen[0][1]], ["alice", 36, "Bearer t"]);
assert.ok((await failure(own.whoAmI())) instanceof PermissionDenied);

console.log("ok");
