/** One thread as an agent's loop uses it. */

import type { MessageInitShape } from "@bufbuild/protobuf";

import type { MemoryClient } from "./client.js";
import {
  MessageRole, MessageSchema, type AppendMessagesResponse, type BuildContextRequestSchema, type BuildContextResponse,
  type Message, type Session,
} from "./contract.js";
import { ThreadNotFound } from "./errors.js";
import { read, type Given } from "./request.js";

type Draft = Given<MessageInitShape<typeof MessageSchema>>;
type More = Omit<Draft, "role" | "content" | "$typeName">;

export class Conversation {
  readonly threadId: string;
  /** The session of the last message. */
  sessionId: string;
  readonly #client: MemoryClient;
  readonly #shared: boolean;
  readonly #named: string;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(client: MemoryClient, threadId: string, options: { shared?: boolean; sessionId?: string } = {}) {
    this.#client = client;
    this.threadId = threadId;
    this.#shared = options.shared ?? false;
    this.#named = options.sessionId ?? "";
    this.sessionId = this.#named;
  }

  /** Append messages in order, all or none; after those that were said before, also where no one waited for them. */
  async say(...drafts: Draft[]): Promise<AppendMessagesResponse> {
    const messages = drafts.map((draft, n) => read(MessageSchema, draft, `messages[${n}]`)); // as they are now
    return this.#inTurn(() => this.#append(messages as Message[]));
  }

  /** Do something once all that was said before is stored, or has failed. */
  #inTurn<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => undefined);
    return done.then((answer) => answer); // a promise of its own, so that a failure no one looks at is told
  }

  async #append(messages: Message[]): Promise<AppendMessagesResponse> {
    const done = await this.#client.appendMessages({ ...this.#thread, sessionId: this.#named, messages });
    this.sessionId = done.sessionId || this.sessionId;
    return done;
  }

  /** Append what the user says. */
  user(content: string, more: More = {}): Promise<AppendMessagesResponse> {
    return this.say({ ...more, role: MessageRole.USER, content } as Draft);
  }

  /** Append what the agent says. */
  assistant(content: string, more: More = {}): Promise<AppendMessagesResponse> {
    return this.say({ ...more, role: MessageRole.ASSISTANT, content } as Draft);
  }

  /** Append what a tool answers. */
  tool(name: string, content: string, more: More = {}): Promise<AppendMessagesResponse> {
    return this.say({ ...more, role: MessageRole.TOOL, name, content } as Draft);
  }

  /** Return the last messages that have not left the prompts, in whole turns; none of a new thread. */
  async recent(pageSize = 0): Promise<Message[]> {
    try {
      const page = await this.#inTurn(() => this.#client.listMessages({ ...this.#thread, pageSize, inView: true, wholeTurns: true }));
      return page.messages;
    } catch (error) {
      if (error instanceof ThreadNotFound) return [];
      throw error;
    }
  }

  /** Return the block of text for a prompt in this thread. */
  context(prompt: string, more: MessageInitShape<typeof BuildContextRequestSchema> = {}): Promise<BuildContextResponse> {
    return this.#inTurn(() => this.#client.buildContext({ ...more, ...this.#thread, prompt } as typeof more));
  }

  /** End the session of the last message. */
  async end(): Promise<Session | undefined> {
    return (await this.#inTurn(() => this.#client.endSession({ ...this.#thread, sessionId: this.sessionId }))).session;
  }

  get #thread(): { threadId: string; shared: boolean } {
    return { threadId: this.threadId, shared: this.#shared };
  }
}
