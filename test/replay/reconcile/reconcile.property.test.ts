import { createHmac } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Places } from '../../../src/archive/places.ts';
import { formatRecords } from '../../../src/core/archive-record.ts';
import type { Event } from '../../../src/core/event.ts';
import type { EventHead, JournalAccount, Selection } from '../../../src/core/journal.ts';
import type { DeadLetterSummary, Operations } from '../../../src/core/operations.ts';
import { parseTarget } from '../../../src/core/route.ts';
import { reconcile } from '../../../src/replay/reconcile/reconcile.ts';
import type { ReconcileReport } from '../../../src/replay/reconcile/report.ts';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import { signal } from '../../sinks/support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { runCount } from '../../support/run-count.ts';

const HOUR = 3_600_000;
const SINCE = Math.floor(contractEvent(1).receivedAt / HOUR) * HOUR;
const SINKS = ['one', 'two'] as const;
type SinkName = (typeof SINKS)[number];

/** Which sinks the routes name, by type. */
const TYPES: Readonly<Record<string, readonly SinkName[]>> = {
  'both.x': SINKS,
  'first.x': ['one'],
  'none.x': [],
};
const ROUTES = [
  { match: ['both.'], to: SINKS.map(parseTarget) },
  { match: ['first.'], to: [parseTarget('one')] },
];

/** What became of an event at a sink that it is for, as far as its cursor had passed it. */
const FATES = ['delivered', 'delivered twice', 'missing', 'dead', 'dead, then delivered', 'dropped'] as const;

interface MadeUp {
  readonly name: string;
  readonly type: string;
  /** `cleared`: by retention. `late`: it came while reconcile ran. */
  readonly kind: 'held' | 'erased' | 'cleared' | 'late' | 'earlier';
  readonly fates: Readonly<Record<SinkName, (typeof FATES)[number]>>;
  /** Whether it lies in the files of a sink that is not known to have confirmed it. */
  readonly isAhead: boolean;
}

interface World {
  readonly events: readonly MadeUp[];
  /** How many events each sink's cursor has passed. */
  readonly passed: Readonly<Record<SinkName, number>>;
  /** In the files, but never received. */
  readonly strangers: Readonly<Record<SinkName, readonly string[]>>;
  readonly page: number;
}

const fate = fc.constantFrom(...FATES);
const names = fc.string({ unit: 'grapheme', maxLength: 6 });
const worlds: fc.Arbitrary<World> = fc.record({
  events: fc.array(
    fc.record({
      name: names,
      type: fc.constantFrom(...Object.keys(TYPES)),
      kind: fc.constantFrom('held', 'held', 'held', 'held', 'erased', 'cleared', 'late', 'earlier'),
      fates: fc.record({ one: fate, two: fate }),
      isAhead: fc.boolean(),
    }),
    { maxLength: 60 },
  ),
  passed: fc.record({ one: fc.nat(60), two: fc.nat(60) }),
  strangers: fc.record({ one: fc.array(names, { maxLength: 30 }), two: fc.array(names, { maxLength: 3 }) }),
  page: fc.integer({ min: 1, max: 30 }),
});

const COUNTS = [
  ...(['delivered', 'waiting', 'dead', 'dropped', 'missing', 'elsewhere', 'copies'] as const),
  ...(['cleared', 'strangers'] as const),
];

/** Ids in the files, each as often as there are records of it; counts; ids that are to be named. */
interface Expected {
  readonly records: string[];
  readonly count: Record<(typeof COUNTS)[number], number>;
  readonly missing: string[];
  readonly strangers: string[];
}

interface Journal {
  readonly heads: EventHead[];
  readonly deadLetters: DeadLetterSummary[];
  readonly dropped: { id: string; sink: string }[];
}

/** Lays out a world, and counts by hand what is to be said of it. */
function layOut({ events, passed, strangers }: World): Journal & { sinks: Record<SinkName, Expected> } {
  const sinks = { one: nothing(), two: nothing() };
  const journal: Journal = { heads: [], deadLetters: [], dropped: [] };
  // Cleared events were first, and what is late comes last.
  const order = ['cleared', 'earlier', 'held', 'erased', 'late'];
  const sorted = events.toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
  for (const [n, event] of sorted.entries()) {
    const { type, kind, fates, isAhead } = event;
    const seq = n + 1;
    const id = `${event.name}#${n}`;
    const receivedAt = kind === 'earlier' ? SINCE - 1 : SINCE + n;
    const head = { seq, id, type, receivedAt, only: null, replayed: false, erased: kind === 'erased' };
    if (kind !== 'cleared') journal.heads.push(head);
    for (const sink of SINKS) {
      const to = sinks[sink];
      const isDue = TYPES[type]?.includes(sink) === true;
      if (kind === 'held' && !isDue) to.count.elsewhere += 1;
      if (kind === 'erased' || kind === 'earlier' || !isDue) continue;
      if (kind === 'late') {
        if (isAhead) to.records.push(id);
      } else if (kind === 'cleared') {
        if (isAhead) {
          to.records.push(id);
          to.strangers.push(id);
          to.count.cleared += 1;
        }
      } else if (seq > passed[sink]) {
        if (isAhead) to.records.push(id);
        to.count[isAhead ? 'delivered' : 'waiting'] += 1;
      } else meet(fates[sink], id, sink, to, journal);
    }
  }
  for (const sink of SINKS) {
    for (const [n, name] of strangers[sink].entries()) {
      sinks[sink].records.push(`${name}!${n}`);
      sinks[sink].strangers.push(`${name}!${n}`);
      sinks[sink].count.strangers += 1;
    }
  }
  return { ...journal, sinks };
}

function meet(
  what: (typeof FATES)[number],
  id: string,
  sink: SinkName,
  { records, count, missing }: Expected,
  { deadLetters, dropped }: Journal,
): void {
  if (what.includes('delivered')) {
    records.push(id);
    count.delivered += 1;
  }
  if (what === 'delivered twice') {
    records.push(id);
    count.copies += 1;
  }
  if (what.startsWith('dead')) deadLetters.push(deadLetterOf(id, sink, deadLetters.length + 1));
  if (what === 'dead') count.dead += 1;
  if (what === 'dropped') {
    dropped.push({ id, sink });
    count.dropped += 1;
  }
  if (what === 'missing') {
    missing.push(id);
    count.missing += 1;
  }
}

function deadLetterOf(id: string, sink: string, key: number): DeadLetterSummary {
  const at = new Date(SINCE + 1).toISOString();
  const envelope = { event_type: 'both.x', team_id: null, user_id: null, client_user_id: null, bytes: 2 };
  const why = { destination: null, code: 'made_up', reason: 'made up', attempts: 1, died_at: at };
  return { key, id, received_at: at, sink, ...envelope, ...why };
}

function nothing(): Expected {
  const count = Object.fromEntries(COUNTS.map((name) => [name, 0])) as Expected['count'];
  return { records: [], count, missing: [], strangers: [] };
}

/** 16 bytes in hex. */
const KEY = '6d61646520757020'.repeat(2);
const hashOf = (id: string): string =>
  createHmac('sha256', Buffer.from(KEY, 'hex')).update(id).digest('hex').slice(0, 32);

/** The operations on a journal that has these heads and dead letters. */
function operationsOn(
  { heads, deadLetters, dropped }: Journal,
  { events, passed, page }: World,
): Pick<Operations, 'account' | 'listHeads' | 'listQuarantine' | 'listDeadLetters'> {
  const kinds = events.map(({ kind }) => kind);
  const cleared = kinds.filter((kind) => kind === 'cleared').length;
  const lastSeq = kinds.filter((kind) => kind !== 'late').length;
  const accepted = kinds.filter((kind) => kind !== 'late' && kind !== 'earlier').length;
  const account: JournalAccount = {
    firstSeq: cleared + 1,
    lastSeq,
    cursors: SINKS.map((sink) => [sink, Math.min(passed[sink], lastSeq)]),
    counts: [{ hour: SINCE, kind: 'accepted', n: accepted }],
    countedSince: SINCE,
    started: [],
    dropped: { key: KEY, events: dropped.map(({ id, sink }) => ({ id: hashOf(id), sink })) },
    routes: { eras: [{ after: 0, tables: [ROUTES] }], successors: [], left: [], forgotten: false },
  };
  return {
    account: () => Promise.resolve(account),
    listHeads: (after) => Promise.resolve(heads.filter(({ seq }) => seq > after).slice(0, page)),
    listQuarantine: () => Promise.resolve([]),
    listDeadLetters: ({ after = 0 }: Selection) =>
      Promise.resolve(deadLetters.filter(({ key }) => key > after).slice(0, page)),
  };
}

/** Spreads records over files, every other one compressed, with some that were received outside of the window. */
function writeFiles(folder: string, ids: readonly string[]): void {
  mkdirSync(folder, { recursive: true });
  const outside = { ...contractEvent(0), receivedAt: SINCE + HOUR };
  const files: Event[][] = [[outside], [outside], []];
  for (const [n, id] of ids.entries()) files[n % 3]?.push({ ...contractEvent(0), id, receivedAt: SINCE + 5 });
  for (const [n, events] of files.entries()) {
    const records = formatRecords(events);
    const packed = n % 2 === 0 ? gzipSync(records, { level: 1 }) : records;
    writeFileSync(join(folder, `${n}.ndjson${n % 2 === 0 ? '.gz' : ''}`), packed);
  }
}

const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));
const named = (ids: readonly string[]): string[] => ids.toSorted(byBytes).slice(0, 20);

function differencesOf(report: ReconcileReport): unknown[] {
  return report.differences.map(({ code, sink, count, ids }) => [code, sink, count, ids]);
}

test('accounts and names are those of a count by hand, whatever became of the events', async () => {
  const folder = await temporaryFolder();
  let run = 0;
  const check = async (world: World): Promise<void> => {
    const { sinks: expected, ...journal } = layOut(world);
    const place = join(folder, String((run += 1)));
    for (const sink of SINKS) writeFiles(join(place, sink), expected[sink].records);
    const report = await reconcile({
      logHead: null,
      places: new Places(),
      operations: operationsOn(journal, world) as Operations,
      earlier: new Map(),
      sinks: SINKS.map((name) => ({ name, type: 'files', archive: { path: join(place, name) } })),
      window: { since: SINCE, until: SINCE + HOUR },
      signal,
    });
    const of = (kind: MadeUp['kind']): number => world.events.filter((event) => event.kind === kind).length;
    const differences: unknown[] = [];
    for (const [n, sink] of SINKS.entries()) {
      const { count, missing, strangers } = expected[sink];
      const { cleared, strangers: strange, delivered, ...rest } = count;
      const past = of('cleared');
      // A foreign event looks like one that retention has removed, unless there are too many.
      const placed = Math.min(past, cleared + strange);
      const tooMany = cleared + strange - past;
      expect(report.sinks[n]).toEqual({
        ...rest,
        sink,
        type: 'files',
        counted_from: 'files',
        received: of('held') + of('erased') + past,
        delivered: delivered + placed,
        untold: past - placed,
        erased: of('erased'),
        duplicates: 0,
        quarantined: 0,
        sealed: 0,
      });
      if (missing.length > 0) differences.push(['missing', sink, missing.length, named(missing)]);
      if (tooMany > 0) differences.push(['not_received', sink, tooMany, named(strangers)]);
    }
    expect(differencesOf(report)).toEqual(differences);
    expect(report.nowhere).toBe(
      world.events.filter(({ kind, type }) => kind === 'held' && type === 'none.x').length,
    );
    await rm(place, { recursive: true });
  };
  await fc.assert(fc.asyncProperty(worlds, check), { numRuns: runCount({ quick: 40, long: 200 }) });
});
