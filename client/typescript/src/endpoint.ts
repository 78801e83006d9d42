/** Where the daemon is, who asks, and what is shown at the door: arguments first, then the environment. */

import { readFileSync, statSync } from "node:fs";
import { connect } from "node:net";
import { homedir } from "node:os";

import type { Interceptor, Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";

import { InvalidArgument, Unauthenticated } from "./errors.js";

type Env = Readonly<Record<string, string | undefined>>;

/** Who asks and where: what every request asserts. */
export interface Identity {
  readonly agentId: string;
  readonly userId: string;
  readonly chatId: string;
}

/** A token, best in a file, and the files of TLS; unset: MEMORY_TOKEN_FILE, MEMORY_TOKEN, MEMORY_TLS_{CA,CERTIFICATE,KEY}_FILE. */
export interface Credentials {
  readonly token?: string;
  readonly tokenFile?: string;
  readonly caFile?: string;
  readonly certificateFile?: string;
  readonly keyFile?: string;
}

const SYSTEM_SOCKET = "/run/memoryd/admin.sock";
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** Return the identity of the arguments, each replaced by its variable where it is not given. */
export function identityOf(given: Partial<Identity>, env: Env): Identity {
  return {
    agentId: given.agentId ?? env["MEMORY_AGENT_ID"] ?? "",
    userId: given.userId ?? env["MEMORY_USER_ID"] ?? "",
    chatId: given.chatId ?? env["MEMORY_CHAT_ID"] ?? "",
  };
}

export function credentialsOf(env: Env): Credentials {
  return {
    token: env["MEMORY_TOKEN"],
    tokenFile: env["MEMORY_TOKEN_FILE"],
    caFile: env["MEMORY_TLS_CA_FILE"],
    certificateFile: env["MEMORY_TLS_CERTIFICATE_FILE"],
    keyFile: env["MEMORY_TLS_KEY_FILE"],
  };
}

/** Return what gives the token of each call; a file is read again when it changes, so a new token needs no restart. */
export function tokenSource(shown: Credentials): () => string {
  const path = shown.tokenFile;
  if (!path) return () => shown.token ?? "";
  let seen = "";
  let token = "";
  return () => {
    try {
      const stat = statSync(path);
      const now = `${stat.mtimeMs} ${stat.ino} ${stat.size}`;
      if (now !== seen) {
        token = readFileSync(path, "ascii").trim();
        seen = now;
      }
    } catch (error) {
      throw new Unauthenticated(`the token file ${path} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
    }
    if (token === "") throw new Unauthenticated(`the token file ${path} is empty`);
    return token;
  };
}

function isSocket(path: string): boolean {
  try {
    return statSync(path).isSocket();
  } catch {
    return false;
  }
}

/** Return the socket that is there: this user's own, else the system's. */
function defaultSocket(env: Env): string {
  const runtime = env["RUNTIME_DIRECTORY"] ?? (env["XDG_RUNTIME_DIR"] && `${env["XDG_RUNTIME_DIR"]}/memoryd`);
  const own = runtime ? `${runtime}/admin.sock` : `${homedir()}/.local/state/memoryd/admin.sock`;
  return isSocket(own) || !isSocket(SYSTEM_SOCKET) ? own : SYSTEM_SOCKET;
}

/**
 * Return the transport of an endpoint: `unix:///path` or `host:port` (gRPC, over TCP always TLS), or the address of
 * `memoryd http` (`http://127.0.0.1:8766`, `https://…`).
 */
export function transportOf(
  endpoint: string | undefined,
  env: Env,
  shown: Credentials,
  timeoutMs: number,
  interceptors: Interceptor[],
): Channel {
  const given = endpoint ?? env["MEMORY_ENDPOINT"] ?? `unix://${defaultSocket(env)}`;
  const common = { interceptors, defaultTimeoutMs: timeoutMs, readMaxBytes: MAX_ANSWER_BYTES };
  const tls = {
    ca: shown.caFile ? readFileSync(shown.caFile) : undefined,
    cert: shown.certificateFile ? readFileSync(shown.certificateFile) : undefined,
    key: shown.keyFile ? readFileSync(shown.keyFile) : undefined,
  };
  if (given.startsWith("unix:")) {
    const path = given.slice("unix:".length).replace(/^\/\/(?=\/)/, "").replace(/^~(?=\/)/, homedir());
    if (!path.startsWith("/")) throw new InvalidArgument(`endpoint ${given} must be unix:///absolute/path`, { field: "endpoint" });
    // no host is asked for: every connection goes to the socket
    return overHttp2(common, "http://localhost", { createConnection: () => connect(path) });
  }
  if (/^https?:\/\//.test(given)) {
    const nodeOptions = given.startsWith("https:") ? tls : {};
    const baseUrl = given.replace(/\/$/, "");
    return { transport: createConnectTransport({ ...common, baseUrl, httpVersion: "1.1", nodeOptions }), close: () => {} };
  }
  if (given.includes("://") || !/^.+:\d{1,5}$/.test(given)) {
    throw new InvalidArgument(`endpoint ${given} is none of unix:///path, host:port and http(s)://…`, { field: "endpoint" });
  }
  return overHttp2(common, `https://${given}`, tls);
}

/** A transport, and what ends its connections. */
export interface Channel {
  readonly transport: Transport;
  readonly close: () => void;
}

type Common = Pick<Parameters<typeof createGrpcTransport>[0], "interceptors" | "defaultTimeoutMs" | "readMaxBytes">;
type SessionOptions = ConstructorParameters<typeof Http2SessionManager>[2];

function overHttp2(common: Common, baseUrl: string, options: SessionOptions): Channel {
  const sessionManager = new Http2SessionManager(baseUrl, {}, options);
  return { transport: createGrpcTransport({ ...common, baseUrl, sessionManager }), close: () => sessionManager.abort() };
}
