import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../../../src/core/clock.ts';
import type { JournalEvent } from '../../../src/core/event.ts';
import type { ObjectStore } from '../../../src/core/storage.ts';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import * as files from '../../../src/sinks/files/sink.ts';
import { openStore } from '../../../src/storage/open.ts';
import { storageSettings } from '../../support/object-stores/emulators.ts';
import type { Bench, BenchContext, BenchResult } from '../bench.ts';
import { median, rangeOf, round } from '../report.ts';
import { quiet } from '../sinks/from-journal.ts';
import { type Rival, RIVALS } from './plain.ts';

const BATCH = 500;
/** Made, and sent again and again: the events of a receiver do not all live at once, and the collector looks at those that do. */
const MADE = 10_000;
const LEAST_SHARE = 0.9;
/** Sends between two looks at the memory. */
const LOOKS = 20;

interface Options {
  readonly events: number;
  readonly rounds: number;
}

/** Seconds that the same bytes took, in files of the same sizes. */
interface Round {
  /** Bytes of this process while the sink writes. */
  readonly memory: readonly number[];
  readonly sink: number;
  readonly store: number;
  readonly plain: number;
  readonly bytes: number;
}

/** The files sink into a store, against an upload of the same bytes by the vendor's SDK. */
export const storage: Bench = {
  summary: 'events a second through the files sink into an object store, as a share of an upload by the SDK',
  help: `Flags:
  --events N   events of a round, 1.2 KB each (150000)
  --rounds N   rounds for each store (5)
  --store S    only this one: ${Object.keys(RIVALS).join(', ')}
`,
  run: async (argv, context) => {
    const { values } = parseArgs({
      args: [...argv],
      options: { events: { type: 'string' }, rounds: { type: 'string' }, store: { type: 'string' } },
    });
    const options = { events: Number(values.events ?? 150_000), rounds: Number(values.rounds ?? 5) };
    const results: (readonly [string, readonly Round[]])[] = [];
    for (const [scheme, rival] of Object.entries(RIVALS)) {
      if (values.store !== undefined && values.store !== scheme) continue;
      if (rival.lack === null) results.push([scheme, await compare(scheme, rival, options, context)]);
      else context.note(`${scheme} is left out: ${rival.lack}`);
    }
    if (results.length === 0) throw new Error('there is no store to measure');
    return report(results, options);
  },
};

/** One after the other, each of them first in a round in its turn; the first round warms up and is not counted. */
async function compare(
  scheme: string,
  rival: Rival,
  { events, rounds }: Options,
  { note, signal }: BenchContext,
): Promise<Round[]> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-'));
  const emulator = await rival.start();
  try {
    const bucket = await emulator.bucket('bench');
    const plain = rival.plain(emulator.settings(), bucket.replace(/^.*\/\//, ''));
    const open = (place: string): Promise<ObjectStore> =>
      openStore(place, storageSettings(emulator.settings()));
    const batches = makeBatches(Math.min(events, MADE));
    const sends = Math.ceil(events / BATCH);
    const memory: number[] = [];
    let copies: readonly Copy[] = [];
    const inTurn = async (at: number, put: (copy: Copy, n: number) => Promise<void>): Promise<number> => {
      const seconds = await timed(async () => {
        for (const [n, copy] of copies.entries()) await put(copy, n);
      });
      await emptied(await open(`${bucket}/${at}`));
      return seconds;
    };
    const contestants = {
      sink: async (at: number) => {
        const url = `${bucket}/${at}`;
        const seconds = await throughSink(url, join(folder, `${at}`), { batches, sends, memory }, open);
        const sizes = await emptied(await open(url));
        if (at === 0) copies = await makeCopies(folder, sizes);
        return seconds;
      },
      store: async (at: number) => {
        const store = await open(`${bucket}/${at}`);
        const seconds = await inTurn(at, (copy, n) => putWhole(store, `copy-${n}`, copy));
        await store.close();
        return seconds;
      },
      plain: (at: number) => inTurn(at, ({ file }, n) => plain.put(`${at}/plain-${n}`, file)),
    };
    const names = Object.keys(contestants) as (keyof typeof contestants)[];
    const all: Round[] = [];
    for (let at = 0; at <= rounds; at += 1) {
      const took = { sink: 0, store: 0, plain: 0 };
      for (const nth of names.keys()) {
        signal.throwIfAborted();
        const name = names[(at + nth) % names.length] ?? 'sink';
        took[name] = await contestants[name](at);
      }
      const bytes = copies.reduce((sum, { size }) => sum + size, 0);
      if (at > 0) all.push({ ...took, bytes, memory: memory.splice(0) });
      else memory.length = 0;
      const times = names.map((name) => `${name} ${round(took[name], 2)} s`);
      note(`${scheme} round ${at}: ${times.join(', ')}`);
    }
    plain.close();
    return all;
  } finally {
    await emulator.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Removes all objects. @returns how large they were */
async function emptied(store: ObjectStore): Promise<number[]> {
  const objects = await Array.fromAsync(store.list(''));
  for (const { key } of objects) await store.delete(key);
  await store.close();
  return objects.map(({ bytes }) => bytes);
}

interface Flood {
  readonly batches: readonly (readonly JournalEvent[])[];
  readonly sends: number;
  /** Told now and then. */
  readonly memory: number[];
}

/**
 * All events into the store: confirmed means that objects and manifest are there. A receiver opens its sinks once, and the SDK's
 * client is there too when it begins: that does not count.
 */
async function throughSink(
  path: string,
  spool: string,
  { batches, sends, memory }: Flood,
  open: (url: string) => Promise<ObjectStore>,
): Promise<number> {
  const signal = new AbortController().signal;
  const options = files.parseOptions({ path, spool, compress: 'none', rotate: { bytes: '15MiB' } });
  const around = { name: 'bench', log: quiet, clock: systemClock, openStore: open };
  // Nothing is ever lost here, so that no journal has to send anything again.
  const sink = files.createSink(options, { ...around, takeBack: () => Promise.resolve(0) });
  await sink.open(signal);
  const seconds = await timed(async () => {
    for (let at = 0; at < sends; at += 1) {
      if (at % LOOKS === 0) memory.push(process.memoryUsage.rss());
      const batch = batches[at % batches.length] ?? [];
      const results = await sink.send(
        batch.map((event) => ({ event, destination: null })),
        signal,
      );
      const refused = results.find(({ status }) => status !== 'held');
      if (refused !== undefined)
        throw new Error(`the sink did not take an event: ${JSON.stringify(refused)}`);
    }
    const { failed } = (await sink.flush?.()) ?? { failed: ['nothing was flushed'] };
    if (failed.length > 0) throw new Error(failed.join('; '));
  });
  await sink.close(signal);
  return seconds;
}

interface Copy {
  readonly file: string;
  readonly size: number;
  readonly sha256: string;
}

/** Files as large as the archive's objects. */
async function makeCopies(folder: string, sizes: readonly number[]): Promise<Copy[]> {
  const copies: Copy[] = [];
  const content = Buffer.alloc(Math.max(...sizes));
  for (const [n, size] of sizes.entries()) {
    const file = join(folder, `copy-${n}`);
    const bytes = content.fill(`made-up ${n} `).subarray(0, size);
    await writeFile(file, bytes);
    copies.push({ file, size, sha256: createHash('sha256').update(bytes).digest('hex') });
  }
  return copies;
}

async function putWhole(store: ObjectStore, key: string, copy: Copy): Promise<void> {
  const { status } = await store.putIfAbsent(key, copy);
  if (status !== 'written') throw new Error(`${key} is ${status}`);
}

function shown(shares: readonly number[]): string {
  return `${round(median(shares), 2)} (${rangeOf(shares)})`;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

function makeBatches(count: number): JournalEvent[][] {
  const meal = Array.from(
    { length: 24 },
    (_, i) => `"food-${i}":{"energy":${(i * 7919) % 997}.5,"fat":null}`,
  );
  const events = Array.from({ length: count }, (_, n) => {
    const text = `{"n":${n},"data":{${meal.join(',')}}}`.padEnd(1200);
    return contractEvent(n, { id: `made-up-${n}`, body: Buffer.from(text) });
  });
  return Array.from({ length: Math.ceil(count / BATCH) }, (_, n) => events.slice(n * BATCH, (n + 1) * BATCH));
}

/** Medians, in the order in which they were taken. */
function thirdsOf(samples: readonly number[]): number[] {
  const third = Math.ceil(samples.length / 3);
  return [0, 1, 2].map((at) => median(samples.slice(at * third, (at + 1) * third)));
}

function report(
  results: readonly (readonly [string, readonly Round[]])[],
  { events, rounds }: Options,
): BenchResult {
  const rows: [string, string][] = [];
  const targets = [];
  const figures: Record<string, unknown> = { events, rounds };
  for (const [scheme, all] of results) {
    const sink = all.map((one) => one.plain / one.sink);
    const store = all.map((one) => one.plain / one.store);
    figures[scheme] = {
      sinkShare: sink.map((share) => round(share, 3)),
      storeShare: store.map((share) => round(share, 3)),
      eventsPerSecond: all.map((one) => round(events / one.sink)),
      bytes: all.at(-1)?.bytes,
      memoryOfThirds: thirdsOf(all.flatMap(({ memory }) => memory)).map((bytes) => round(bytes / 2 ** 20)),
    };
    const perSecond = all.map((one) => events / one.sink);
    rows.push([
      `${scheme}: events a second through the sink`,
      `${round(median(perSecond))} (${rangeOf(perSecond, 0)})`,
    ]);
    rows.push([`${scheme}: the same bytes through the port, share of the SDK`, shown(store)]);
    const [first = 0, , last = 0] = thirdsOf(all.flatMap(({ memory }) => memory));
    rows.push([
      `${scheme}: memory, last third against first`,
      `${round((last / first - 1) * 100, 1)} %, to ${round(last / 2 ** 20)} MiB`,
    ]);
    targets.push({
      name: `${scheme}: the sink as a share of an upload of the same bytes by the SDK`,
      wanted: `at least ${LEAST_SHARE}`,
      measured: shown(sink),
      met: median(sink) >= LEAST_SHARE,
    });
  }
  return { figures, rows, targets };
}
