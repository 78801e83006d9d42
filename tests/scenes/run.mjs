// Runs the scenes with the package as npm installs it: node run.mjs scenes.json; prints what failed, as lines of JSON.
import { readFileSync } from "node:fs";
import { create, fromJson, toJson } from "@bufbuild/protobuf";
import { InvalidArgument, LimitExceeded, MemoryClient, MemorydError } from "memoryd";
import * as contract from "memoryd/contract";

const services = Object.values(contract).filter((one) => one?.kind === "service");
const methods = new Map(services.flatMap((one) => one.methods.map((method) => [method.name, method])));

/** Return a value in which names such as $id stand for what was kept. */
function filled(value, kept) {
  if (typeof value === "string" && value.startsWith("$") && value.slice(1) in kept) return kept[value.slice(1)];
  if (Array.isArray(value)) return value.map((one) => filled(one, kept));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filled(one, kept)]));
  }
  return value;
}

/** Return where an answer is not what was expected; "": nowhere. */
function difference(expected, found, at = "answer") {
  if (expected === "$any") return found === undefined || found === "" || found?.length === 0 ? `${at} is empty` : "";
  if (Array.isArray(expected)) {
    if (!Array.isArray(found) || found.length !== expected.length) return `${at} is ${JSON.stringify(found)}`;
    return expected.map((one, n) => difference(one, found[n], `${at}[${n}]`)).find(Boolean) ?? "";
  }
  if (expected && typeof expected === "object") {
    const [first] = Object.keys(expected).length === 0 && Object.keys(found ?? {}).length > 0 ? [JSON.stringify(found)] : [];
    if (first) return `${at} is ${first}`;
    const parts = Object.entries(expected).map(([name, one]) => difference(one, found?.[name], `${at}.${name}`));
    return parts.find(Boolean) ?? "";
  }
  return expected === found ? "" : `${at} is ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`;
}

async function failureOf(client, step, kept) {
  const method = methods.get(step.call);
  const name = step.call[0].toLowerCase() + step.call.slice(1);
  const request = fromJson(method.input, filled(step.request ?? {}, kept));
  let answer;
  try {
    answer = toJson(method.output, await client[name](request));
  } catch (error) {
    if (!(error instanceof MemorydError)) throw error;
    const told = step.error?.includes(" ") ? `${error.reason} ${error.field}` : error.reason;
    const tree = { INVALID_FIELD: InvalidArgument, LIMIT_EXCEEDED: LimitExceeded }[error.reason];
    if (tree && !(error instanceof tree)) return `${error.reason} is a ${error.name}`;
    return told === step.error ? "" : `failed with ${told}: ${error.message}`;
  }
  if (step.error) return `did not fail with ${step.error}`;
  for (const [key, path] of Object.entries(step.keep ?? {})) {
    kept[key] = path.split(".").reduce((value, part) => value?.[part], answer);
  }
  return step.answer === undefined ? "" : difference(filled(step.answer, kept), answer);
}

const scenes = JSON.parse(readFileSync(process.argv[2], "utf-8"));
const users = JSON.parse(process.argv[3] ?? "[]"); // a token a scene; else users of its own
let passed = 0;
for (const [n, { scene, steps }] of scenes.entries()) {
  const user = users[n]?.user ?? `node-${process.pid}-${n}`;
  const own = users[n] ? { userId: "", credentials: { ...users[n].credentials } } : { userId: user };
  const client = new MemoryClient({ chatId: "", agentId: "", timeoutMs: 60_000, ...own });
  const kept = { user };
  try {
    for (const [place, step] of steps.entries()) {
      const failure = await failureOf(client, step, kept);
      if (failure) throw new Error(`step ${place + 1}, ${step.call}: ${failure}`);
    }
    passed += 1;
  } catch (error) {
    console.log(JSON.stringify({ scene, failure: error.message }));
  } finally {
    client.close();
  }
}
console.log(JSON.stringify({ passed }));
