import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { readFinished, unfinishedNames } from '../campaign/oracle.ts';
import { dueAt, type Erased, PLACES, type Sent } from './history.ts';
import type { Tree } from './tree.ts';

// What is right after a crash, and no code of the product with it.

/** What was promised before the crash, and what has come since. */
export interface Promises {
  readonly acknowledged: readonly Sent[];
  /** Erasures that were asked for in the whole run, and those that were reported done. */
  readonly erasures: readonly Erased[];
  readonly erased: readonly Erased[];
  /** All that was ever sent. */
  readonly sent: readonly Sent[];
  /** Sent after the crash. */
  readonly fresh: readonly Sent[];
  /** Answers after the crash, by id. */
  readonly answers: ReadonlyMap<string, string>;
}

const SINKS = ['a', 'b'] as const;

/** Looks at what a receiver has left that recovered, delivered everything and stopped. @returns what is wrong with it */
export function faultsIn(root: string, promises: Promises, quarantined: ReadonlySet<string>): string[] {
  const { acknowledged, sent, fresh, answers, erasures, erased } = promises;
  const faults: string[] = [];
  const found = new Map(SINKS.map((sink) => [sink, readFinished(join(root, PLACES[sink]))]));
  const receipts = receiptsIn(root);
  const named = new Set(erasures.map(({ receipt }) => receipt));
  const others = [...receipts].some((receipt) => !named.has(receipt));
  // What the receiver has a receipt for may be gone, and must be.
  const done = erasures.filter(({ receipt }) => (receipt === null ? others : receipts.has(receipt)));
  const forgotten = new Set(done.map(({ user }) => user));
  for (const event of [...acknowledged, ...fresh]) {
    const { id, type, user, valid, first, last } = event;
    if (forgotten.has(user)) continue;
    const isHeld = (sink: string): boolean => found.get(sink as 'a' | 'b')?.copies.has(id) === true;
    const tables = Array.from({ length: last - first + 1 }, (_, index) => dueAt(first + index, type));
    const isThere = valid ? tables.some((sinks) => sinks.every(isHeld)) : quarantined.has(id);
    if (!isThere)
      faults.push(
        `lost: ${id} (${type}, ${valid ? tables.map((sinks) => sinks.join('+')).join(' or ') : 'quarantine'})`,
      );
  }
  for (const { id } of acknowledged) {
    const answer = answers.get(id);
    if (answer !== undefined && answer !== 'duplicate' && answer !== 'erased')
      faults.push(`forwarded again: ${id} was answered ${answer}`);
  }
  const digests = new Map([...sent, ...fresh].map(({ id, body }) => [id, digestOf(Buffer.from(body))]));
  for (const [sink, { copies, torn }] of found) {
    faults.push(...torn.map((text) => `torn: ${sink}/${text}`));
    for (const [id, held] of copies) {
      if (held.some(({ digest }) => digest !== digests.get(id))) faults.push(`other bytes: ${id} at ${sink}`);
      if (new Set(held.map(({ file }) => file)).size < held.length)
        faults.push(`twice in one file: ${id} at ${sink}`);
    }
    const folder = join(root, PLACES[sink]);
    // The owner of a lock is advice; its file is new each time.
    const left = unfinishedNames(folder).filter((name) => !name.endsWith('lock-owner.tmp'));
    faults.push(...left.map((name) => `left unfinished: ${sink}/${name}`));
    faults.push(...manifestFaults(folder).map((text) => `manifest of ${sink}: ${text}`));
  }
  for (const { receipt } of erased)
    if (receipt !== null && !receipts.has(receipt)) faults.push(`the receipt ${receipt} is gone`);
  const gone = new Set([...erased.map((one) => one.user), ...forgotten]);
  faults.push(...filesWith(root, gone).map((trace) => `erased, and back: ${trace}`));
  return faults;
}

function receiptsIn(root: string): ReadonlySet<string> {
  return new Set(namesIn(join(root, PLACES.erasure, 'receipts')).map((name) => name.replace(/\.json$/, '')));
}

/** Every line of a manifest follows from the one before it, and its files are what the newest line of each says. */
function manifestFaults(folder: string): string[] {
  const faults: string[] = [];
  const text = textOf(join(folder, '_manifest.jsonl'));
  if (text === null) return namesIn(folder).some((name) => name.includes('.ndjson')) ? ['there is none'] : [];
  if (text !== '' && !text.endsWith('\n')) faults.push('its last line has no end');
  let previous = sha256('');
  const listed = new Map<string, string | null>();
  for (const [index, line] of text.split('\n').slice(0, -1).entries()) {
    try {
      const entry = JSON.parse(line) as { file: string; sha256: string | null; previous: string };
      if (entry.previous !== previous) faults.push(`line ${index + 1} does not follow`);
      listed.set(entry.file, entry.sha256);
    } catch {
      faults.push(`line ${index + 1} is no line`);
    }
    previous = sha256(line);
  }
  const files = namesIn(folder).filter((name) => /\.ndjson(\.gz)?$/.test(name));
  for (const name of files) {
    if (!listed.has(name)) faults.push(`${name} is not listed`);
    else if (listed.get(name) !== sha256(readFileSync(join(folder, name))))
      faults.push(`${name} is not what is listed`);
  }
  for (const [name, digest] of listed)
    if (digest !== null && !files.includes(name)) faults.push(`${name} is listed, and gone`);
  return faults;
}

/** What a disk holds of users whose erasure was reported, before anything is started on it. */
export function tracesIn(files: Tree['files'], erased: readonly Erased[]): string[] {
  const users = new Set(erased.map(({ user }) => user));
  return files.flatMap(({ path, bytes }) =>
    heldIn(path, bytes, users).map((user) => `erased, and on the disk again: ${user} in ${path}`),
  );
}

/** Files that hold one of these texts, compressed or not. */
function filesWith(root: string, texts: ReadonlySet<string>): string[] {
  if (texts.size === 0) return [];
  return namesIn(root).flatMap((name) => {
    const bytes = bytesOf(join(root, name));
    return bytes === null ? [] : heldIn(name, bytes, texts).map((text) => `${text} in ${name}`);
  });
}

function heldIn(name: string, bytes: Buffer, texts: ReadonlySet<string>): string[] {
  if (texts.size === 0) return [];
  const plain = name.endsWith('.gz') ? decompressed(bytes) : null;
  return [...texts].filter((text) => bytes.includes(text) || plain?.includes(text) === true);
}

/** Null for one that is torn, which others tell. */
function decompressed(bytes: Buffer): Buffer | null {
  try {
    return gunzipSync(bytes);
  } catch {
    return null;
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' });
  } catch {
    return [];
  }
}

function bytesOf(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch {
    return null;
  }
}

function textOf(path: string): string | null {
  return bytesOf(path)?.toString() ?? null;
}

function digestOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function sha256(text: string | Buffer): string {
  return createHash('sha256').update(text).digest('hex');
}
