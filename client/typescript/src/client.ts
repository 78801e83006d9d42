/** The client: one channel to the daemon, and one method an RPC, as the contract has them. */

import type { DescService, MessageInitShape } from "@bufbuild/protobuf";
import { createClient, type Client, type Transport } from "@connectrpc/connect";

import { around } from "./calls.js";
import {
  AdminService, ConsolidationService, ContextService, ConversationService, EntityService, GrantService,
  IdentityService, JobService, MemoryService, NoteService,
} from "./contract.js";
import { Conversation } from "./conversation.js";
import { credentialsOf, identityOf, tokenSource, transportOf, type Credentials, type Identity } from "./endpoint.js";
import { errorOf } from "./errors.js";

const SERVICES = [
  MemoryService, NoteService, EntityService, ConversationService, ContextService, IdentityService, GrantService,
  JobService, ConsolidationService, AdminService,
] as const;

/** All methods of the contract, under their names. */
type Methods = Client<typeof MemoryService> & Client<typeof NoteService> & Client<typeof EntityService> &
  Client<typeof ConversationService> & Client<typeof ContextService> & Client<typeof IdentityService> &
  Client<typeof GrantService> & Client<typeof JobService> & Client<typeof ConsolidationService> &
  Client<typeof AdminService>;

/** A method whose answers come in pages. */
type Paged<Request, Answer> = (request: Request) => Promise<Answer & { nextPageToken: string }>;

export interface Options extends Partial<Identity> {
  /** `unix:///path`, `host:port`, or `http(s)://…` of memoryd http; unset: MEMORY_ENDPOINT, then the default socket. */
  readonly endpoint?: string;
  readonly credentials?: Credentials;
  /** Bounds each attempt of a call, in milliseconds. */
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
  readonly #close: () => void;

  constructor(options: Options = {}) {
    const env = process.env;
    this.#identity = identityOf(options, env);
    const shown = options.credentials ?? credentialsOf(env);
    const each = around(() => this.#identity, tokenSource(shown));
    const { transport, close } = options.transport
      ? { transport: options.transport, close: () => {} }
      : transportOf(options.endpoint, env, shown, options.timeoutMs ?? 10_000, [each]);
    this.#close = close;
    for (const service of SERVICES) Object.assign(this, raising(createClient(service as DescService, transport)));
  }

  /** End the connections; calls that are under way fail. */
  close(): void {
    this.#close();
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
  async *each<Request extends { pageToken?: string }, Answer, Item>(
    method: Paged<Request, Answer>,
    request: Request,
    items: (answer: Answer) => readonly Item[],
  ): AsyncGenerator<Item, void, undefined> {
    let pageToken = request.pageToken ?? "";
    do {
      const answer = await method({ ...request, pageToken });
      yield* items(answer);
      pageToken = answer.nextPageToken;
    } while (pageToken !== "");
  }
}

/** Return a client whose methods raise errors of the tree. */
function raising(client: Client<DescService>): object {
  const methods = Object.entries(client as unknown as Record<string, (...given: unknown[]) => Promise<unknown>>);
  return Object.fromEntries(
    methods.map(([name, call]) => [
      name,
      async (...given: unknown[]) => {
        try {
          return await call(...given);
        } catch (failure) {
          throw errorOf(failure);
        }
      },
    ]),
  );
}

export type { MessageInitShape };
