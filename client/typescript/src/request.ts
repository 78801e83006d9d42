/** Reads what a caller hands in: by the contract, so that nothing is lost or changed without a word. */

import { create, ScalarType } from "@bufbuild/protobuf";
import type { DescEnum, DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { timestampFromDate, type Timestamp } from "@bufbuild/protobuf/wkt";

import { InvalidArgument } from "./errors.js";

/** What a request may say for a message of the contract: as protobuf-es has it, and for each time also a Date. */
export type Given<T> = T extends Message
  ? T
  : T extends object
    ? { [Name in keyof T]: GivenField<T[Name]> }
    : T;
type GivenField<T> = [Timestamp] extends [T]
  ? T | Date | string
  : T extends readonly (infer Item)[]
    ? readonly GivenField<Item>[]
    : T extends bigint | Uint8Array | Timestamp
      ? T
      : Given<T>;

type Fields = Record<string, unknown>;
type Kind = Pick<DescField, "fieldKind"> & { scalar?: ScalarType; enum?: DescEnum; message?: DescMessage };

const UNKNOWN = "$unknown"; // fields of a newer contract, which a message that is handed back keeps
const TIME = "google.protobuf.Timestamp";
const MASK = "google.protobuf.FieldMask";
const ZONED = /^(\d{4}-\d\d-\d\d)[Tt]\d\d:\d\d(?::\d\d(?:\.(\d{1,9}))?)?(?:[Zz]|[+-]\d\d:\d\d)$/;
const INT32 = [-(2n ** 31n), 2n ** 31n - 1n] as const;
const RANGES: ReadonlyMap<ScalarType, readonly [bigint, bigint]> = new Map([
  [ScalarType.INT32, INT32], [ScalarType.UINT32, [0n, 2n ** 32n - 1n]],
  [ScalarType.INT64, [-(2n ** 63n), 2n ** 63n - 1n]], [ScalarType.UINT64, [0n, 2n ** 64n - 1n]],
] as const);

/** Return a request as a message of its own; InvalidArgument names the field that is wrong. */
export function read(desc: DescMessage, given: unknown, at = ""): Message {
  if (!isRecord(given)) throw wrong(at || "the request", "an object", at);
  const message = create(desc) as Message & Fields;
  for (const [name, value] of Object.entries(given)) {
    if (name === UNKNOWN) message.$unknown = value as NonNullable<Message["$unknown"]>;
    if (name.startsWith("$") || value === undefined || value === null) continue;
    const path = at ? `${at}.${name}` : name;
    const oneof = desc.oneofs.find((one) => one.localName === name);
    if (oneof !== undefined) {
      const chosen = value as { case?: string; value?: unknown };
      if (isRecord(value) && "case" in value && chosen.case === undefined) continue;
      const field = oneof.fields.find((one) => one.localName === chosen.case);
      if (field === undefined || chosen.value === undefined || chosen.value === null) {
        throw wrong(path, `{case, value}, with one of ${oneof.fields.map((one) => one.localName).join(", ")}`);
      }
      message[name] = { case: chosen.case, value: part(field, chosen.value, path) };
      continue;
    }
    const field = desc.field[name];
    if (field === undefined) throw unknownField(desc, name, path);
    const found = part(field, value, path);
    const holder = field.oneof?.localName;
    if (holder !== undefined && (message[holder] as { case?: string }).case !== undefined) {
      throw refused(`${path} excludes another field of ${holder}`, path);
    }
    if (holder !== undefined) message[holder] = { case: name, value: found };
    else message[name] = found;
  }
  return message;
}

function part(field: DescField, value: unknown, at: string): unknown {
  if (field.fieldKind === "list") {
    if (!Array.isArray(value)) throw wrong(at, "a list");
    const kind = { fieldKind: field.listKind, scalar: field.scalar, enum: field.enum, message: field.message } as Kind;
    return value.map((item, n) => one(kind, item, `${at}[${n}]`));
  }
  if (field.fieldKind === "map") {
    if (!isRecord(value)) throw wrong(at, "an object");
    const kind = { fieldKind: field.mapKind, scalar: field.scalar, enum: field.enum, message: field.message } as Kind;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [text(name, at), one(kind, item, `${at}.${name}`)]));
  }
  return one(field as Kind, value, at);
}

function one(kind: Kind, value: unknown, at: string): unknown {
  if (kind.enum !== undefined) return enumValue(kind.enum, value, at);
  if (kind.message !== undefined) return inner(kind.message, value, at);
  return scalar(kind.scalar ?? ScalarType.STRING, value, at);
}

function inner(desc: DescMessage, value: unknown, at: string): Message {
  if (desc.typeName === TIME && !(isRecord(value) && "seconds" in value)) return time(value, at);
  if (desc.typeName === MASK) return read(desc, { paths: paths(value, at) }, at);
  return read(desc, value, at);
}

/** An object of names and values: a plain one, of whichever realm, or a message; no Map, Date or other class. */
function isRecord(value: unknown): value is Fields {
  if (typeof value !== "object" || value === null) return false;
  if ("$typeName" in value) return true;
  const above = Object.getPrototypeOf(value) as object | null;
  return above === null || (Object.getPrototypeOf(above) === null && Object.prototype.toString.call(value) === "[object Object]");
}

function time(value: unknown, at: string): Timestamp {
  const zoned = typeof value === "string" ? ZONED.exec(value) : null;
  const isDate = Object.prototype.toString.call(value) === "[object Date]"; // of whichever realm
  const date = new Date(zoned !== null ? (value as string) : isDate ? (value as Date).getTime() : Number.NaN);
  if (Number.isNaN(date.getTime()) || (zoned !== null && !isDay(zoned[1]!))) {
    throw wrong(at, "a Date, or a time with a zone such as 2026-05-03T12:00:00Z");
  }
  const made = timestampFromDate(date);
  if (zoned?.[2] !== undefined) made.nanos = Number(zoned[2].padEnd(9, "0"));
  return made;
}

/** Whether the calendar has a day: of 30 February a Date would make 2 March. */
function isDay(text: string): boolean {
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}

/** Names of fields: the contract's own spelling is the one that the daemon reads. */
function paths(value: unknown, at: string): string[] {
  const given = typeof value === "string" ? value.split(",") : isRecord(value) ? value["paths"] : value;
  if (!Array.isArray(given) || given.some((name) => typeof name !== "string")) throw wrong(at, "a list of names of fields");
  return (given as string[]).map((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
}

function enumValue(desc: DescEnum, value: unknown, at: string): number {
  if (typeof value === "number" && isWithin(ScalarType.INT32, value)) return value;
  const found = desc.values.find((one) => one.name === value || one.localName === value);
  if (found === undefined) {
    throw wrong(at, `a ${desc.name}: ${desc.values.slice(1).map((one) => `${desc.name}.${one.localName}`).join(", ")}`);
  }
  return found.number;
}

function scalar(kind: ScalarType, value: unknown, at: string): unknown {
  switch (kind) {
    case ScalarType.STRING:
      if (typeof value !== "string") throw wrong(at, "a string");
      return text(value, at);
    case ScalarType.BOOL:
      if (typeof value !== "boolean") throw wrong(at, "true or false");
      return value;
    case ScalarType.BYTES:
      if (!(value instanceof Uint8Array)) throw wrong(at, "a Uint8Array");
      return value;
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      if (typeof value !== "number") throw wrong(at, "a number");
      return value;
    case ScalarType.INT64:
    case ScalarType.UINT64:
      if (!isWithin(kind, value)) throw wrong(at, "a whole number, or a bigint, of 64 bits");
      return BigInt(value);
    default:
      if (!isWithin(kind, value)) throw wrong(at, "a whole number of 32 bits");
      return Number(value);
  }
}

function isWithin(kind: ScalarType, value: unknown): value is number | bigint {
  if (typeof value !== "bigint" && !Number.isSafeInteger(value)) return false;
  const [least, most] = RANGES.get(kind) ?? INT32;
  const number = BigInt(value as number | bigint);
  return least <= number && number <= most;
}

/** A text that UTF-8 can carry: with half of a surrogate pair it would be changed silently. */
function text(value: string, at: string): string {
  if (!value.isWellFormed()) throw refused(`${at} has half of a surrogate pair`, at);
  return value;
}

function wrong(at: string, kind: string, field = at): InvalidArgument {
  return refused(`${at} must be ${kind}`, field);
}

function refused(message: string, field: string): InvalidArgument {
  return new InvalidArgument(message, { reason: "INVALID_FIELD", field });
}

function unknownField(desc: DescMessage, name: string, at: string): InvalidArgument {
  const plain = (word: string) => word.replace(/_/g, "").toLowerCase();
  const names = [...desc.fields.map((field) => field.localName), ...desc.oneofs.map((oneof) => oneof.localName)];
  const near = names.find((known) => plain(known) === plain(name) || plain(known) === `${plain(name)}s`);
  const meant = near === undefined ? `; there are ${names.join(", ")}` : `; did you mean ${near}?`;
  return refused(`${desc.name} has no field ${name}${meant}`, at);
}

