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
 * │   └── ConnectionLost       the connection broke in mid-call
 * ├── StoreDamaged         tell the operator
 * └── InternalError        report it, with the id in the message
 */

import { Code, ConnectError } from "@connectrpc/connect";

import { BadRequestSchema, ErrorInfoSchema } from "./gen/google/rpc/error_details_pb.js";

/** A failure with one reason of `ErrorReason`; the message has the fact and the way out. */
export class MemorydError extends Error {
  /** One of `ErrorReason`, without its prefix; "" where no daemon said so: TimedOut, and what is refused before it is sent. */
  readonly reason: string;
  /** The field of the request that is wrong, as it is named here: `filter.eventTimeFrom`; "": none is. */
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
export class ConnectionLost extends TimedOut {}
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
const NO_ANSWER: ReadonlySet<Code> = new Set([Code.Unavailable, Code.Aborted, Code.Canceled]);

/** What is said where nothing was sent. REFUSED_STREAM is no such word: gRPC also ends calls with it. */
const NOT_SENT = /ECONNREFUSED|ENOENT|ENOTFOUND|EAI_AGAIN|connect failed/;
const CUT = /ECONNRESET|EPIPE|socket hang up|stream closed|GOAWAY|REFUSED_STREAM|aborted|premature/i;
const NO_TLS = /wrong version number|packet length too long|EPROTO|SSL routines/i;
const NOT_TRUSTED = /self.signed|unable to (verify|get)|ERR_TLS|CERT_|certificate/i;

/** Return the error of the tree that a failed call stands for. */
export function errorOf(failure: unknown): MemorydError {
  if (failure instanceof MemorydError) return failure;
  const error = ConnectError.from(failure);
  if (error.cause instanceof MemorydError) return error.cause;
  const info = error.findDetails(ErrorInfoSchema).find((one) => one.domain === "memoryd");
  if (info !== undefined) {
    const kind = BY_REASON[info.reason] ?? BY_CODE[error.code] ?? InternalError;
    const field = error.findDetails(BadRequestSchema)[0]?.fieldViolations[0]?.field ?? info.metadata["field"] ?? "";
    const limit = info.metadata["limit"] ?? "";
    return new kind(error.rawMessage, { reason: info.reason, field: camel(field), limit, cause: failure });
  }
  return unanswered(error, failure);
}

/** Return what a failure says that is none of the daemon's own. */
function unanswered(error: ConnectError, cause: unknown): MemorydError {
  const told = [error.rawMessage, ...codesOf(error)].join(" ");
  if (told.includes("EACCES")) return new PermissionDenied("this user may not open the socket; run as the user of memoryd", { cause });
  if (NOT_SENT.test(told)) return unavailable(`cannot reach memoryd: ${error.rawMessage}`, cause);
  if (NO_TLS.test(told)) { // also of a connection that was established, so nothing is promised
    return new ConnectionLost("the connection broke; a write may have happened. If it always does: the port does not speak TLS as it is asked to", { cause });
  }
  if (NOT_TRUSTED.test(told)) {
    return unavailable(`the certificate is not trusted: ${error.rawMessage}; name who signed it in caFile, or use the name that it is for`, cause);
  }
  if (error.code === Code.DeadlineExceeded) return new TimedOut("no answer in time; a write may have happened", { cause });
  if (NO_ANSWER.has(error.code) || CUT.test(told)) {
    return new ConnectionLost(`the connection broke; a write may have happened: ${error.rawMessage}`, { cause });
  }
  if (error.code === Code.Unimplemented) {
    return new PermissionDenied("this door does not have this call: hosts make it on the admin socket, or memoryd is older than this client", { cause });
  }
  const kind = BY_CODE[error.code] ?? InternalError;
  return new kind(error.rawMessage, { cause });
}

function unavailable(message: string, cause: unknown): Unavailable {
  return new Unavailable(message, { reason: "UNAVAILABLE", cause });
}

/** The codes of what lies behind an error. */
function codesOf(error: ConnectError): string[] {
  const codes: string[] = [];
  for (let at: unknown = error.cause, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    codes.push(String((at as NodeJS.ErrnoException).code ?? ""), at.message);
  }
  return codes;
}

/** The name of a field as requests have it here. */
function camel(field: string): string {
  return field.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
