/** What every call has in common: who asks, a request id, retries, and errors of the tree. */

import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { DescMessage, DescMethod, Message } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";

import { errorOf, InvalidArgument, TimedOut, Unavailable } from "./errors.js";
import type { Identity } from "./endpoint.js";

const ATTEMPTS = 3;
const BACKOFF_MS = [50, 250];

/** Whether a method may change what is stored: the contract marks those that do not. */
function writes(method: DescMethod): boolean {
  return method.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
}

type Fields = Record<string, unknown>;

function has(message: DescMessage, field: string): boolean {
  return field in message.field;
}

/** Let a request say who asks, and let a write have a request id, where the contract has those fields. */
function stamp(message: Message, desc: DescMessage, identity: Identity): void {
  const fields = message as unknown as Fields;
  if (has(desc, "agentId") && has(desc, "userId") && has(desc, "chatId")) {
    const isNamed = fields["agentId"] || fields["userId"] || fields["chatId"];
    if (!isNamed) Object.assign(fields, identity);
  }
  if (has(desc, "requestId") && !fields["requestId"]) fields["requestId"] = crypto.randomUUID();
}

/** Raise InvalidArgument for a text with half of a surrogate pair, which UTF-8 cannot carry: it would be changed silently. */
function refuseBroken(value: unknown, field: string): void {
  if (typeof value === "string") {
    if (!value.isWellFormed()) {
      throw new InvalidArgument(`${field} has half of a surrogate pair`, { reason: "INVALID_FIELD", field });
    }
  } else if (value !== null && typeof value === "object" && !(value instanceof Uint8Array)) {
    for (const [name, part] of Object.entries(value)) refuseBroken(part, field ? `${field}.${name}` : name);
  }
}

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** Return what stands around every call of a client. */
export function around(identity: () => Identity, token: () => string): Interceptor {
  return (next) => async (request) => {
    if (request.stream) return next(request);
    refuseBroken(request.message, "");
    stamp(request.message, request.method.input, identity());
    const fields = request.message as unknown as Fields;
    const isSafe = !writes(request.method) || Boolean(fields["requestId"]);
    for (let attempt = 0; ; attempt++) {
      try {
        const shown = token();
        if (shown) request.header.set("authorization", `Bearer ${shown}`);
        return await next(request);
      } catch (failure) {
        const error = errorOf(failure);
        const isLost = error instanceof TimedOut && !request.signal.aborted;
        const isRetried = error instanceof Unavailable || (isLost && isSafe);
        if (!isRetried || attempt + 1 >= ATTEMPTS || request.signal.aborted) throw error;
      }
      await pause((BACKOFF_MS[attempt] ?? 250) * (0.5 + Math.random() / 2));
    }
  };
}
