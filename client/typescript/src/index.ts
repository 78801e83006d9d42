/** memoryd for Node: the memory of AI agents. */

export { fromJson, toJson } from "@bufbuild/protobuf";
export { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
export { MemoryClient, type Options } from "./client.js";
export { Conversation } from "./conversation.js";
export type { Credentials, Identity } from "./endpoint.js";
export * from "./errors.js";
