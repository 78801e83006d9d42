/** One thread as an agent's loop uses it. */

import type { MessageInitShape } from "@bufbuild/protobuf";

import type { MemoryClient } from "./client.js";
import {
  MessageRole, type AppendMessagesResponse, type BuildContextRequestSchema, type BuildContextResponse, type Message,
  type MessageSchema, type Session,
} from "./contract.js";
import { ThreadNotFound } from "./errors.js";
import type { Given } from "./request.js";

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
  say(...messages: Draft[]): Promise<AppendMessagesResponse> {
    const done = this.#turn.then(() => this.#append(messages));
    this.#turn = done.catch(() => undefined);
    return done;
  }

  async #append(messages: Draft[]): Promise<AppendMessagesResponse> {
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
      const page = await this.#client.listMessages({ ...this.#thread, pageSize, inView: true, wholeTurns: true });
      return page.messages;
    } catch (error) {
      if (error instanceof ThreadNotFound) return [];
      throw error;
    }
  }

  /** Return the block of text for a prompt in this thread. */
  context(prompt: string, more: MessageInitShape<typeof BuildContextRequestSchema> = {}): Promise<BuildContextResponse> {
    return this.#client.buildContext({ ...more, ...this.#thread, prompt } as typeof more);
  }

  /** End the session of the last message. */
  async end(): Promise<Session | undefined> {
    return (await this.#client.endSession({ ...this.#thread, sessionId: this.sessionId })).session;
  }

  get #thread(): { threadId: string; shared: boolean } {
    return { threadId: this.threadId, shared: this.#shared };
  }
}
