/** The client: one channel to the daemon, and one method an RPC, as the contract has them. */

import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import { createClient, type CallOptions, type Client, type Transport } from "@connectrpc/connect";

import { carryOut, checkTimeout, type Caller } from "./calls.js";
import {
  AdminService, ConsolidationService, ContextService, ConversationService, EntityService, GrantService,
  IdentityService, JobService, MemoryService, NoteService,
} from "./contract.js";
import { Conversation } from "./conversation.js";
import { credentialsOf, identityOf, tokenSource, transportOf, type Credentials, type Identity } from "./endpoint.js";
import { InvalidArgument } from "./errors.js";
import type { Given } from "./request.js";

const SERVICES = [
  MemoryService, NoteService, EntityService, ConversationService, ContextService, IdentityService, GrantService,
  JobService, ConsolidationService, AdminService,
] as const;

/** The methods of a service, which take a Date for each time. */
type MethodsOf<Service extends DescService> = {
  [Name in keyof Client<Service>]: Client<Service>[Name] extends (
    request: infer Request, options?: CallOptions,
  ) => Promise<infer Answer>
    ? (request?: Given<Request>, options?: CallOptions) => Promise<Answer>
    : never;
};

/** All methods of the contract, under their names. */
type Methods = MethodsOf<typeof MemoryService> & MethodsOf<typeof NoteService> & MethodsOf<typeof EntityService> &
  MethodsOf<typeof ConversationService> & MethodsOf<typeof ContextService> & MethodsOf<typeof IdentityService> &
  MethodsOf<typeof GrantService> & MethodsOf<typeof JobService> & MethodsOf<typeof ConsolidationService> &
  MethodsOf<typeof AdminService>;

/** A method whose answers come in pages. */
type Paged = (request?: any, options?: CallOptions) => Promise<{ nextPageToken: string }>;

export interface Options extends Partial<Identity> {
  /** `unix:///path`, `host:port`, or `http(s)://…` of memoryd http; unset: MEMORY_ENDPOINT, then the default socket. */
  readonly endpoint?: string;
  readonly credentials?: Credentials;
  /** Bounds a call with its retries, in milliseconds; 10,000 unless said. */
  readonly timeoutMs?: number;
  /** Another transport of Connect, such as one of your own for tests. */
  readonly transport?: Transport;
}

export interface MemoryClient extends Methods {}

/**
 * Calls the daemon. Every method of the contract is one of this class: `addMemory`, `searchMemories`, `buildContext`.
 *
 * What is not given comes from the environment, as for Python: MEMORY_ENDPOINT, MEMORY_USER_ID, MEMORY_CHAT_ID,
 * MEMORY_AGENT_ID, MEMORY_TOKEN_FILE. Calls raise the errors of `errors.ts`.
 */
export class MemoryClient {
  readonly #identity: Identity;
  readonly #end: () => void;
  #isClosed = false;

  constructor(options: Options = {}) {
    const env = process.env;
    const timeoutMs = options.timeoutMs ?? 10_000;
    checkTimeout(timeoutMs);
    this.#identity = identityOf(options, env);
    const shown = credentialsOf(options.credentials ?? {}, env);
    const { transport, close } = options.transport
      ? { transport: options.transport, close: () => {} }
      : transportOf(options.endpoint, env, shown);
    this.#end = close;
    const caller = { identity: this.#identity, token: tokenSource(shown), timeoutMs, isClosed: () => this.#isClosed };
    for (const service of SERVICES) Object.assign(this, methodsOf(service as DescService, transport, caller));
  }

  /** End the connections: calls that are under way fail, and so does every later one. */
  close(): void {
    this.#isClosed = true;
    this.#end();
  }

  /** Who asks. */
  get identity(): Identity {
    return this.#identity;
  }

  /** Return a conversation, which keeps its thread and session from call to call; nothing is sent yet. */
  conversation(threadId: string, options: { shared?: boolean; sessionId?: string } = {}): Conversation {
    return new Conversation(this, threadId, options);
  }

  /**
   * Yield the items of a list, fetching page after page:
   * `for await (const memory of client.each(client.listMemories, {}, (page) => page.memories))`.
   */
  async *each<Method extends Paged, Item>(
    method: Method,
    request: NonNullable<Parameters<Method>[0]>,
    items: (answer: Awaited<ReturnType<Method>>) => readonly Item[],
    options: CallOptions = {},
  ): AsyncGenerator<Item, void, undefined> {
    let pageToken: string = request.pageToken ?? "";
    do {
      const answer = (await method({ ...request, pageToken }, options)) as Awaited<ReturnType<Method>>;
      if (typeof answer.nextPageToken !== "string") throw new InvalidArgument("the answers of this method have no pages");
      yield* items(answer);
      pageToken = answer.nextPageToken;
    } while (pageToken !== "");
  }
}

/** Return the methods of a service as functions of a request. */
function methodsOf(service: DescService, transport: Transport, caller: Caller): object {
  const client = createClient(service, transport) as unknown as Record<string, (request: Message, options: CallOptions) => Promise<Message>>;
  return Object.fromEntries(
    service.methods.map((method: DescMethod) => [
      method.localName,
      (given?: unknown, options?: CallOptions) => carryOut(caller, method, client[method.localName]!, given, options),
    ]),
  );
}
