import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { MillraceError } from '../../src/core/errors.ts';
import type { Event, JournalEvent } from '../../src/core/event.ts';
import type { JournalAccount } from '../../src/core/journal.ts';
import { decodeRecords, eventsOf } from '../../src/journal/segments/records.ts';
import { Store } from '../../src/journal/store.ts';
import { makeEvent } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { ALL, batchOf, BOUNDS, NOW } from './support.ts';

const ROUTES = [
  {
    match: ['*'],
    to: [
      { sink: 'a', destination: null },
      { sink: 'b', destination: null },
    ],
  },
];
const INVALID = JSON.stringify([{ code: 'team_missing', detail: 'made-up' }]);

/** What was given to a journal: the test's own list. Both sinks get all; `a` has confirmed the first four, and refused the second. */
export const GIVEN = {
  accepted: Array.from({ length: 12 }, (_, n) => `e${n + 1}`),
  confirmed: { a: 4, b: 0 },
  quarantined: ['q1', 'q2'],
  dead: ['e2'],
} as const;

/** Each byte of it is changed in turn. */
function smallEvent(id: string): Event {
  const noOne = { team: null, user: null, clientUser: null, headers: {} };
  return makeEvent({
    ...noOne,
    id,
    type: 'made.up',
    receivedAt: NOW,
    body: Buffer.from(`{"made-up":"${id}"}`),
  });
}

/** Makes a small journal of two segments. @returns its files as they lie there while it is open, and once it is closed */
export function makeJournal(folder: string): { readonly killed: Files; readonly closed: Files } {
  const store = new Store({ path: folder, ...BOUNDS });
  store.acceptUnder(ROUTES);
  store.cursors.open('a');
  store.cursors.open('b');
  const accept = (...ids: readonly string[]): void => void store.append(batchOf(ids.map(smallEvent)), NOW);
  const { accepted, quarantined } = GIVEN;
  accept(...accepted.slice(0, 3));
  store.append(batchOf([smallEvent(quarantined[0])], INVALID), NOW);
  accept(...accepted.slice(3, 5));
  // A segment may become that old before another is begun.
  store.maintain(NOW + 100);
  store.addDeadLetters({
    sink: 'a',
    upTo: 2,
    deadLetters: [{ seq: 2, destination: null, code: 'made_up', reason: '', diedAt: NOW }],
  });
  store.cursors.move([['a', GIVEN.confirmed.a]]);
  store.checkpoints.save('source/partition-0', '17');
  accept(...accepted.slice(5, 8));
  store.retention.save();
  accept(...accepted.slice(8));
  store.append(batchOf([smallEvent(quarantined[1])], INVALID), NOW);
  const killed = filesIn(folder);
  store.close();
  return { killed, closed: filesIn(folder) };
}

export type Files = ReadonlyMap<string, Buffer>;

export function filesIn(folder: string): Files {
  return new Map(
    readdirSync(folder)
      .toSorted()
      .map((name) => [name, readFileSync(join(folder, name))]),
  );
}

export interface Found {
  /** Code of a refusal; null when it opened. */
  readonly refused: string | null;
  /** What differs from what was given, in words, and is not named as lost; empty for none. */
  readonly silent: readonly string[];
  readonly account: JournalAccount | null;
}

/** Opens a journal, and compares what it has with what it was given. */
export function judge(folder: string, made: (id: string) => Event = smallEvent): Found {
  let store: Store;
  try {
    store = new Store({ path: folder, ...BOUNDS });
  } catch (error) {
    if (error instanceof MillraceError) return { refused: error.code, silent: [], account: null };
    throw error;
  }
  try {
    const silent: string[] = [];
    const losses: string[] = [];
    for (const [sink, confirmed] of Object.entries(GIVEN.confirmed)) {
      const isKnown = store.cursors.known().some(([name]) => name === sink);
      if (!isKnown) silent.push(`sink ${sink} is new`);
      const got = new Map<string, JournalEvent>();
      for (let at = store.cursors.open(sink); ;) {
        const page = eventsOf(store.read(at, ALL, NOW));
        for (const event of page) got.set(event.id, event);
        const last = page.at(-1);
        if (last === undefined) break;
        at = last.seq;
      }
      for (const id of GIVEN.accepted.slice(confirmed)) {
        const body = got.get(id)?.handling.only === undefined ? got.get(id)?.body : undefined;
        if (body?.equals(made(id).body) !== true) losses.push(`${sink} lacks ${id}`);
      }
    }
    const routes = JSON.stringify(store.routes.read().eras.map(({ tables }) => tables));
    if (routes !== JSON.stringify([[ROUTES]])) silent.push(`routes are ${routes}`);
    const quarantined = decodeRecords(store.setAside.listQuarantine({}, true).records);
    for (const id of GIVEN.quarantined)
      if (!quarantined.some((event) => event.id === id)) losses.push(`quarantine lacks ${id}`);
    const deadLetters = decodeRecords(store.setAside.list({}, true).records);
    // It is sent again where the cursor of its sink is an older one.
    const again = store.cursors.known().find(([sink]) => sink === 'a')?.[1] ?? 0;
    for (const id of GIVEN.dead)
      if (again >= 2 && !deadLetters.some((event) => event.id === id)) losses.push(`dead letters lack ${id}`);
    const account = store.account(0, Infinity);
    const isNamed = (account.damaged ?? []).some(({ n }) => n > 0) && store.status(NOW).damaged > 0;
    return { refused: null, silent: [...silent, ...(isNamed ? [] : losses)], account };
  } finally {
    store.close();
  }
}

/** Writes files into a folder that has no others. */
export function put(folder: string, files: Files): void {
  for (const [name, bytes] of files) writeFileSync(join(folder, name), bytes);
}

const PAGE = 8192;
/** Of the largest files one byte in so many is tried, another one in each run. */
export const SHARDS = 50;

/** Bytes of a database that are in use, and one of each page that is not. */
function usedBytes(file: Buffer): number[] {
  const at: number[] = [];
  for (let page = 0; page < file.length; page += PAGE) {
    const head = page === 0 ? 100 : page;
    const kind = file[head] ?? 0;
    // Of pages that are no trees, up to the last byte that is in use.
    let used = PAGE;
    while (used > 1 && file[page + used - 1] === 0) used -= 1;
    const isTree = [2, 5, 10, 13].includes(kind);
    const free = isTree ? head + (kind < 10 ? 12 : 8) + 2 * file.readUInt16BE(head + 3) : page + used;
    const cells = isTree ? page + (file.readUInt16BE(head + 5) || 65_536) : page + PAGE;
    for (let byte = page; byte <= free; byte += 1) at.push(byte);
    for (let byte = cells; byte < page + PAGE; byte += 1) at.push(byte);
  }
  return at;
}

export type Changed = readonly [what: string, files: Files];

/** What journals do not say of what they lack, and that start. */
export async function silentWith(changed: Iterable<Changed>): Promise<readonly string[]> {
  const folder = await temporaryFolder();
  const found: string[] = [];
  let n = 0;
  for (const [what, all] of changed) {
    const path = join(folder, String((n += 1)));
    mkdirSync(path);
    put(path, all);
    const { silent } = judge(path);
    if (silent.length > 0) found.push(`${what}: ${silent.join(', ')}`);
    rmSync(path, { recursive: true });
  }
  expect(n).toBeGreaterThan(10);
  return found;
}

export const only = (files: Files, end: string): Files =>
  new Map([...files].filter(([name]) => name.endsWith(end)));

interface Flips {
  /** Of the names of the files that are changed. */
  readonly end?: string;
  /** False: of databases the bytes that are in use. */
  readonly all?: boolean;
  /** Every so many bytes. */
  readonly step?: number;
  /** From this one; any of the first `step` ones where left out. */
  readonly from?: number;
}

/** The files, each time with one bit changed. */
export function* flipped(
  files: Files,
  { end = '', all = true, step = 1, from = Math.floor(Math.random() * step) }: Flips,
): Generator<Changed> {
  for (const [name, file] of only(files, end))
    for (const at of (all ? [...file.keys()] : usedBytes(file)).filter((_, index) => index % step === from)) {
      const bytes = Buffer.from(file);
      bytes[at] = (file[at] ?? 0) ^ (1 << (at % 8));
      yield [`${name}, a bit of byte ${at}`, new Map([...files, [name, bytes]])];
    }
}
