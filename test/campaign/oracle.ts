import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { OpensSealed } from '../privacy/seal/open-sealed.ts';
import { dueAt, type Table } from './tables.ts';

// What is right, and no code of the product with it: the sender's list of ids against lines of files.

/** What the sender knows of one event. */
export interface SentEvent {
  readonly id: string;
  readonly type: string;
  /** SHA-256 of the body, hex. */
  readonly digest: string;
  readonly acknowledged: boolean;
  /** The stretches of the run in which it was sent first, and answered. */
  readonly first: number;
  readonly last: number;
}

/** The files under final names in one sink's folder. */
export interface FinishedFiles {
  readonly copies: ReadonlyMap<string, readonly Copy[]>;
  /** Files that are not whole: name and why. */
  readonly torn: readonly string[];
}

interface Copy {
  readonly file: string;
  readonly digest: string;
}

export interface Verdict {
  /** Acknowledged, and not at every sink that was due. */
  readonly lost: readonly string[];
  /** Other bytes, an id that was not sent, one id twice in one file, a sink no route named. */
  readonly wrong: readonly string[];
  readonly repeated: number;
}

export const digestOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** The names of a folder's finished files; what begins with `_` is the archive's own. */
export function finishedNames(folder: string): string[] {
  return namesOf(folder).filter((name) => /\.ndjson(\.gz)?$/.test(name));
}

/** What a receiver that stopped in order must not leave behind. */
export function unfinishedNames(folder: string): string[] {
  return namesOf(folder).filter((name) => /\.(part|tmp)$/.test(name));
}

function namesOf(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  } catch (error) {
    // A sink that has had nothing to do yet.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** @param opens sealed lines; null where none are expected */
export function readFinished(
  folder: string,
  names = finishedNames(folder),
  opens: OpensSealed | null = null,
): FinishedFiles {
  const copies = new Map<string, Copy[]>();
  const torn: string[] = [];
  for (const file of names) {
    try {
      for (const [id, digest] of recordsOf(join(folder, file), opens)) {
        const known = copies.get(id);
        if (known === undefined) copies.set(id, [{ file, digest }]);
        else known.push({ file, digest });
      }
    } catch (error) {
      torn.push(`${file}: ${(error as Error).message}`);
    }
  }
  return { copies, torn };
}

const EVENT = Buffer.from(',"event":');

function* recordsOf(path: string, opens: OpensSealed | null): Generator<[id: string, digest: string]> {
  const bytes = readFileSync(path);
  const text = path.endsWith('.gz') ? gunzipSync(bytes) : bytes;
  if (text.length === 0) throw new Error('it is empty');
  if (text.at(-1) !== 0x0a) throw new Error('its last line has no end');
  for (let start = 0; start < text.length;) {
    const end = text.indexOf(0x0a, start);
    const stored = text.subarray(start, end);
    const line = opens === null ? stored : opens.text(stored.toString());
    const { id } = JSON.parse(line.toString()) as { id: string };
    // The body is the last value of its line, verbatim.
    yield [id, digestOf(line.subarray(line.indexOf(EVENT) + EVENT.length, -1))];
    start = end + 1;
  }
}

/**
 * Conservation: every acknowledged event is at every sink of a route table it may have been accepted under.
 * @param found by name of sink
 * @param tables those in force in each stretch of the run: two while a reload is in flight
 */
export function judge(
  events: readonly SentEvent[],
  found: ReadonlyMap<string, FinishedFiles>,
  tables: readonly (readonly Table[])[],
): Verdict {
  const lost: string[] = [];
  const wrong: string[] = [];
  for (const event of events) {
    const { id, type, digest, first, last } = event;
    const dues = tables.slice(first, last + 1).flatMap((those) => those.map((table) => dueAt(table, type)));
    const has = (sink: string): boolean => found.get(sink)?.copies.has(id) === true;
    if (event.acknowledged && !dues.some((sinks) => sinks.every(has)))
      lost.push(`${id} (${type}): acknowledged, and not at ${missing(dues, has)}`);
    for (const [sink, { copies }] of found) {
      const held = copies.get(id) ?? [];
      if (held.some((copy) => copy.digest !== digest))
        wrong.push(`${id} at ${sink}: other bytes than were sent`);
      if (held.length > 0 && !dues.some((sinks) => sinks.includes(sink)))
        wrong.push(`${id} (${type}) at ${sink}: no route named it`);
    }
  }
  const sent = new Set(events.map(({ id }) => id));
  let repeated = 0;
  for (const [sink, { copies, torn }] of found) {
    wrong.push(...torn.map((text) => `${sink}: a torn file under a final name: ${text}`));
    for (const [id, held] of copies) {
      if (!sent.has(id)) wrong.push(`${id} at ${sink}: never sent`);
      if (held.length === 1) continue;
      repeated += 1;
      if (new Set(held.map(({ file }) => file)).size < held.length)
        wrong.push(`${id} at ${sink}: twice in ${basename(held[0]?.file ?? '')}`);
    }
  }
  return { lost, wrong, repeated };
}

function missing(dues: readonly (readonly string[])[], has: (sink: string) => boolean): string {
  const [shortest = []] = dues
    .map((sinks) => sinks.filter((sink) => !has(sink)))
    .sort((a, b) => a.length - b.length);
  return shortest.join(', ');
}
