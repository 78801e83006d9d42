/** The contract as protoc-gen-es made it from `proto/`: messages, enums and services. Nothing here is written by hand. */

export * from "./gen/memoryd/v1/admin_service_pb.js";
export * from "./gen/memoryd/v1/consolidation_service_pb.js";
export * from "./gen/memoryd/v1/context_service_pb.js";
export * from "./gen/memoryd/v1/conversation_pb.js";
export * from "./gen/memoryd/v1/conversation_service_pb.js";
export * from "./gen/memoryd/v1/entity_pb.js";
export * from "./gen/memoryd/v1/entity_service_pb.js";
export * from "./gen/memoryd/v1/error_reason_pb.js";
export * from "./gen/memoryd/v1/grant_pb.js";
export * from "./gen/memoryd/v1/grant_service_pb.js";
export * from "./gen/memoryd/v1/identity_service_pb.js";
export * from "./gen/memoryd/v1/job_service_pb.js";
export * from "./gen/memoryd/v1/memory_pb.js";
export * from "./gen/memoryd/v1/memory_service_pb.js";
export * from "./gen/memoryd/v1/note_pb.js";
export * from "./gen/memoryd/v1/note_service_pb.js";
