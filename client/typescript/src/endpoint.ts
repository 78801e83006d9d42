/** Where the daemon is, who asks, and what is shown at the door: arguments first, then the environment. */

import { Agent } from "node:http";
import { Agent as SecureAgent } from "node:https";
import { readFileSync, statSync } from "node:fs";
import { connect } from "node:net";
import { homedir } from "node:os";

import type { Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";

import { InvalidArgument, Unauthenticated } from "./errors.js";

type TlsFiles = Partial<Record<"ca" | "cert" | "key", Buffer>>;
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
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** Return the identity of the arguments, each replaced by its variable where it is not given. */
export function identityOf(given: Partial<Identity>, env: Env): Identity {
  return {
    agentId: given.agentId ?? env["MEMORY_AGENT_ID"] ?? "",
    userId: given.userId ?? env["MEMORY_USER_ID"] ?? "",
    chatId: given.chatId ?? env["MEMORY_CHAT_ID"] ?? "",
  };
}

/** Return what is given, and from the environment what is not; a token that is given stands alone. */
export function credentialsOf(given: Credentials, env: Env): Credentials {
  const isShown = Boolean(given.token || given.tokenFile);
  return {
    token: isShown ? given.token : env["MEMORY_TOKEN"],
    tokenFile: isShown ? given.tokenFile : env["MEMORY_TOKEN_FILE"],
    caFile: given.caFile || env["MEMORY_TLS_CA_FILE"],
    certificateFile: given.certificateFile || env["MEMORY_TLS_CERTIFICATE_FILE"],
    keyFile: given.keyFile || env["MEMORY_TLS_KEY_FILE"],
  };
}

/** Return what gives the token of each call; a file is read again when it changes, so a new token needs no restart. */
export function tokenSource(shown: Credentials): () => string {
  const path = shown.tokenFile;
  if (!path) {
    const given = shown.token ?? "";
    return () => (given === "" ? "" : checked(given));
  }
  let seen = "";
  let token = "";
  return () => {
    try {
      const stat = statSync(path);
      const now = `${stat.mtimeMs} ${stat.ino} ${stat.size}`;
      if (now !== seen) {
        token = readFileSync(path, "latin1").trim();
        seen = now;
      }
    } catch (error) {
      throw new Unauthenticated(`the token file ${path} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
    }
    if (token === "") throw new Unauthenticated(`the token file ${path} is empty`);
    return checked(token);
  };
}

/** A token that a header may hold; what it is stands in no message. */
function checked(token: string): string {
  if (!/^[\x21-\x7e]+$/.test(token)) throw new Unauthenticated("the token is not one of memoryd");
  return token;
}

function contentOf(path: string | undefined, field: string): Buffer | undefined {
  if (!path) return undefined;
  try {
    return readFileSync(path);
  } catch (error) {
    throw new InvalidArgument(`${field} ${path} cannot be read: ${(error as NodeJS.ErrnoException).code}`, { field });
  }
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
export function transportOf(endpoint: string | undefined, env: Env, shown: Credentials): Channel {
  const given = endpoint || env["MEMORY_ENDPOINT"] || `unix://${defaultSocket(env)}`;
  const tls = {
    ca: contentOf(shown.caFile, "caFile"),
    cert: contentOf(shown.certificateFile, "certificateFile"),
    key: contentOf(shown.keyFile, "keyFile"),
  };
  if (given.startsWith("unix:")) {
    const path = given.slice("unix:".length).replace(/^\/\/(?=\/)/, "").replace(/^~(?=\/)/, homedir());
    if (!path.startsWith("/")) throw refused(`endpoint ${given} must be unix:///absolute/path`);
    // no host is asked for: every connection goes to the socket
    return overHttp2("http://localhost", { createConnection: () => connect(path) });
  }
  if (/^https?:\/\//.test(given)) return overHttp1(given.replace(/\/$/, ""), tls);
  if (given.includes("://") || !/^.+:\d{1,5}$/.test(given)) {
    throw refused(`endpoint ${given} is none of unix:///path, host:port and http(s)://…`);
  }
  return overHttp2(`https://${given}`, tls);
}

function refused(message: string): InvalidArgument {
  return new InvalidArgument(message, { field: "endpoint" });
}

/** A transport, and what ends its connections. */
export interface Channel {
  readonly transport: Transport;
  readonly close: () => void;
}

type SessionOptions = ConstructorParameters<typeof Http2SessionManager>[2];

function overHttp2(baseUrl: string, options: SessionOptions): Channel {
  const sessionManager = new Http2SessionManager(baseUrl, {}, options);
  const transport = createGrpcTransport({ baseUrl, sessionManager, readMaxBytes: MAX_ANSWER_BYTES });
  return { transport, close: () => sessionManager.abort() };
}

function overHttp1(baseUrl: string, tls: TlsFiles): Channel {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url === undefined || url.pathname !== "/") throw refused(`endpoint ${baseUrl} must be http(s)://host:port`);
  const isSecure = url.protocol === "https:";
  if (!isSecure && !LOOPBACK.test(url.hostname)) {
    throw refused(`endpoint ${baseUrl} would send the token in the clear; use https, or http on this machine`);
  }
  const agent = isSecure ? new SecureAgent({ keepAlive: true, ...tls }) : new Agent({ keepAlive: true });
  const transport = createConnectTransport({
    baseUrl, httpVersion: "1.1", nodeOptions: { agent }, readMaxBytes: MAX_ANSWER_BYTES,
  });
  return { transport, close: () => agent.destroy() };
}
