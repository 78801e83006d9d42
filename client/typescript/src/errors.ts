/**
 * Every way in which a call can fail, as a tree:
 *
 * MemorydError
 * ├── InvalidArgument      fix the request; `field` says which part
 * │   ├── IdentityMissing      say who asks
 * │   ├── PageTokenInvalid     list again from the start
 * │   ├── AmbiguousId          give more of the id
 * │   └── AmbiguousName        several are called so; name one by its id
 * ├── NotFound             stop; also said of what exists and is not yours
 * │   └── GrantNotFound, ThreadNotFound, RunNotFound, NoteNotFound, ProposalNotFound, EntityNotFound
 * ├── Unauthenticated      get a new token
 * ├── PermissionDenied     stop
 * │   ├── ScopeMismatch        a named identity is not the bound one
 * │   └── TrustTooLow          what holds the key came from higher up
 * ├── LimitExceeded        shrink the request or wait; `limit` says which
 * ├── Conflict             read again, then retry
 * │   └── RequestIdReused      make a new request id
 * ├── Unavailable          nothing was written; retry with backoff
 * ├── TimedOut             no answer in time; a write may have happened: retry with the same request id
 * ├── StoreDamaged         tell the operator
 * └── InternalError        report it, with the id in the message
 */

import { Code, ConnectError } from "@connectrpc/connect";

import { BadRequestSchema, ErrorInfoSchema } from "./gen/google/rpc/error_details_pb.js";

/** A failure with one reason of `ErrorReason`; the message has the fact and the way out. */
export class MemorydError extends Error {
  /** One of `ErrorReason`, without its prefix. */
  readonly reason: string;
  /** The field of the request that is wrong; "": none is. */
  readonly field: string;
  /** Which limit was reached; "": none was. */
  readonly limit: string;

  constructor(message: string, more: { reason?: string; field?: string; limit?: string; cause?: unknown } = {}) {
    super(message, { cause: more.cause });
    this.name = new.target.name;
    this.reason = more.reason ?? "";
    this.field = more.field ?? "";
    this.limit = more.limit ?? "";
  }
}

export class InvalidArgument extends MemorydError {}
export class IdentityMissing extends InvalidArgument {}
export class PageTokenInvalid extends InvalidArgument {}
export class AmbiguousId extends InvalidArgument {}
export class AmbiguousName extends InvalidArgument {}
export class NotFound extends MemorydError {}
export class GrantNotFound extends NotFound {}
export class ThreadNotFound extends NotFound {}
export class RunNotFound extends NotFound {}
export class NoteNotFound extends NotFound {}
export class ProposalNotFound extends NotFound {}
export class EntityNotFound extends NotFound {}
export class Unauthenticated extends MemorydError {}
export class PermissionDenied extends MemorydError {}
export class ScopeMismatch extends PermissionDenied {}
export class TrustTooLow extends PermissionDenied {}
export class LimitExceeded extends MemorydError {}
export class Conflict extends MemorydError {}
export class RequestIdReused extends Conflict {}
export class Unavailable extends MemorydError {}
export class TimedOut extends MemorydError {}
export class StoreDamaged extends MemorydError {}
export class InternalError extends MemorydError {}

type Kind = typeof MemorydError;

const BY_REASON: Readonly<Record<string, Kind>> = {
  INVALID_FIELD: InvalidArgument,
  IDENTITY_MISSING: IdentityMissing,
  PAGE_TOKEN_INVALID: PageTokenInvalid,
  ID_AMBIGUOUS: AmbiguousId,
  NAME_AMBIGUOUS: AmbiguousName,
  MEMORY_NOT_FOUND: NotFound,
  GRANT_NOT_FOUND: GrantNotFound,
  THREAD_NOT_FOUND: ThreadNotFound,
  RUN_NOT_FOUND: RunNotFound,
  NOTE_NOT_FOUND: NoteNotFound,
  PROPOSAL_NOT_FOUND: ProposalNotFound,
  ENTITY_NOT_FOUND: EntityNotFound,
  UNAUTHENTICATED: Unauthenticated,
  PERMISSION_DENIED: PermissionDenied,
  SCOPE_MISMATCH: ScopeMismatch,
  TRUST_TOO_LOW: TrustTooLow,
  LIMIT_EXCEEDED: LimitExceeded,
  CONFLICT: Conflict,
  REQUEST_ID_REUSED: RequestIdReused,
  UNAVAILABLE: Unavailable,
  STORE_DAMAGED: StoreDamaged,
  INTERNAL: InternalError,
};

const BY_CODE: Readonly<Partial<Record<Code, Kind>>> = {
  [Code.InvalidArgument]: InvalidArgument,
  [Code.NotFound]: NotFound,
  [Code.Unauthenticated]: Unauthenticated,
  [Code.PermissionDenied]: PermissionDenied,
  [Code.ResourceExhausted]: LimitExceeded,
  [Code.Aborted]: Conflict,
  [Code.DataLoss]: StoreDamaged,
  [Code.DeadlineExceeded]: TimedOut,
};

/** What gRPC itself says where nothing was sent. */
const NOT_SENT = /ECONNREFUSED|ENOENT|EACCES|ENOTFOUND|EAI_AGAIN|connect failed/;

/** Return the error of the tree that a failed call stands for. */
export function errorOf(failure: unknown): MemorydError {
  if (failure instanceof MemorydError) return failure;
  const error = ConnectError.from(failure);
  if (error.cause instanceof MemorydError) return error.cause; // what an interceptor throws is wrapped once more
  const info = error.findDetails(ErrorInfoSchema).find((one) => one.domain === "memoryd");
  if (info !== undefined) {
    const kind = BY_REASON[info.reason] ?? BY_CODE[error.code] ?? InternalError;
    const field = error.findDetails(BadRequestSchema)[0]?.fieldViolations[0]?.field ?? info.metadata["field"] ?? "";
    const limit = info.metadata["limit"] ?? "";
    return new kind(error.rawMessage, { reason: info.reason, field, limit, cause: failure });
  }
  const told = `${error.rawMessage} ${String((error.cause as { code?: string } | undefined)?.code ?? "")}`;
  if (NOT_SENT.test(told)) {
    return new Unavailable(`cannot reach memoryd: ${error.rawMessage}`, { reason: "UNAVAILABLE", cause: failure });
  }
  if (error.code === Code.Unavailable) {
    return new TimedOut(`the connection broke; a write may have happened: ${error.rawMessage}`, { cause: failure });
  }
  const kind = BY_CODE[error.code] ?? InternalError;
  return new kind(error.rawMessage, { cause: failure });
}
