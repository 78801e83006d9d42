/** What every call has in common: who asks, a request id, retries, and errors of the tree. */

import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { DescMessage, DescMethod, Message } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";

import { ConnectionLost, errorOf, InvalidArgument, Unavailable, type MemorydError } from "./errors.js";
import type { Identity } from "./endpoint.js";
import { read } from "./request.js";

const ATTEMPTS = 3;
const BACKOFF_MS = [50, 250];
const MOST_MS = 86_400_000;

type Fields = Record<string, unknown>;
type Send = (request: Message, options: CallOptions) => Promise<Message>;

/** How a client calls: as whom, with which token, and for how long. */
export interface Caller {
  readonly identity: Identity;
  readonly token: () => string;
  readonly timeoutMs: number;
  readonly isClosed: () => boolean;
}

/** What of a request says that doing it twice is not as doing it once; other methods may be sent again. */
export const ONCE: Readonly<Record<string, (request: Fields) => boolean>> = {
  ApproveProposal: () => true,
  DeleteMemories: (request) => Boolean(request["purge"]) && !request["dryRun"],
  DeleteMemory: (request) => Boolean(request["purge"]) && !request["allowMissing"],
  DeleteMessages: (request) => !request["dryRun"],
  DeleteNote: (request) => !request["dryRun"] && !request["allowMissing"],
  DeleteThread: (request) => !request["dryRun"],
  EndSession: (request) => !request["sessionId"],
  ForgetPerson: () => true,
  IssueToken: () => true,
  MergeEntities: () => true,
  MoveNote: () => true,
  OpenSandbox: () => true,
  PutNote: (request) => request["expectedRevision"] !== undefined,
  RejectProposal: () => true,
  RenameEntity: () => true,
  RotateTokenKeys: () => true,
  SetEntityType: () => true,
  UnmergeEntity: () => true,
};

/** Whether a call may change what is stored: the contract marks the methods that do not. */
function writes(method: DescMethod, request: Fields): boolean {
  return method.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS && !request["dryRun"];
}

/** Let a request say who asks, and let a write have what makes it known again, where the contract has those fields. */
function stamp(fields: Fields, method: DescMethod, identity: Identity): void {
  const desc: DescMessage = method.input;
  if ("agentId" in desc.field && "userId" in desc.field && "chatId" in desc.field) {
    const isNamed = fields["agentId"] || fields["userId"] || fields["chatId"];
    if (!isNamed) Object.assign(fields, identity);
  }
  const known = method.name === "StartSession" ? "sessionId" : "requestId";
  if (known in desc.field && !fields[known]) fields[known] = crypto.randomUUID();
}

/** Raise InvalidArgument for a time that no timer takes. */
export function checkTimeout(timeoutMs: number): void {
  if (!(timeoutMs > 0 && timeoutMs <= MOST_MS)) {
    throw new InvalidArgument("timeoutMs must be more than 0 and at most a day", { field: "timeoutMs" });
  }
}

/** Call a method: the request is checked, says who asks, and is sent again where that does no harm. */
export async function carryOut(
  caller: Caller, method: DescMethod, send: Send, given: unknown, options: CallOptions = {},
): Promise<Message> {
  const timeoutMs = options.timeoutMs ?? caller.timeoutMs;
  checkTimeout(timeoutMs);
  options.signal?.throwIfAborted();
  const request = read(method.input, given ?? {});
  const fields = request as unknown as Fields;
  stamp(fields, method, caller.identity);
  const isRepeated = !ONCE[method.name]?.(fields);
  const isWrite = writes(method, fields);
  const end = performance.now() + timeoutMs;
  let doubtful: MemorydError | undefined;
  for (let attempt = 0; ; attempt++) {
    if (caller.isClosed()) throw doubtful ?? new InvalidArgument("the client is closed");
    try {
      const headers = new Headers(options.headers);
      const shown = caller.token();
      if (shown) headers.set("authorization", `Bearer ${shown}`);
      return await send(request, { ...options, headers, timeoutMs: Math.max(1, Math.ceil(end - performance.now())) });
    } catch (failure) {
      options.signal?.throwIfAborted(); // what the caller has ended fails with the caller's own reason
      let error = errorOf(failure);
      if (error instanceof ConnectionLost && isWrite) doubtful = error;
      else if (error instanceof Unavailable && doubtful !== undefined) error = doubtful; // an earlier attempt may have been carried out
      const pauseMs = (BACKOFF_MS[attempt] ?? 250) * (0.5 + Math.random() / 2);
      const isLast = attempt + 1 >= ATTEMPTS || performance.now() + pauseMs >= end;
      const isUnanswered = error instanceof Unavailable || error instanceof ConnectionLost;
      if (!isUnanswered || !isRepeated || isLast) throw error;
      await pause(pauseMs, options.signal);
    }
  }
}

/** Wait, but no longer than the caller does. */
function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((done, fail) => {
    const stop = () => {
      clearTimeout(timer);
      fail(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      done();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
