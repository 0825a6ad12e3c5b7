import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../../src/core/clock.ts';
import type { JournalEvent } from '../../../src/core/event.ts';
import type { ObjectStore } from '../../../src/core/storage.ts';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import * as files from '../../../src/sinks/files/sink.ts';
import { openStore } from '../../../src/storage/open.ts';
import { storageSettings } from '../../support/object-stores/emulators.ts';
import { bench, type BenchContext, ROUNDS } from '../bench.ts';
import { type Figure, round } from '../figures.ts';
import { mealBody } from '../ingest/requests.ts';
import { inTurns, ratios } from '../rounds.ts';
import { quiet } from '../sinks/from-journal.ts';
import { type Rival, RIVALS } from './plain.ts';

const BATCH = 500;
/** Made, and sent again and again: the events of a receiver do not all live at once, and the collector looks at those that do. */
const MADE = 10_000;

/** The files sink into a store, against an upload of the same bytes by the vendor's SDK. */
export const storage = bench(
  'events a second through the files sink into an object store, as a share of an upload by the SDK',
  {
    events: [150_000, 'events of a round, 1.2 KB each'],
    rounds: ROUNDS,
    store: [Object.keys(RIVALS), 'only this one; may be repeated', Object.keys(RIVALS)],
  },
  async ({ events, rounds, store: stores }, context) => {
    const figures: Figure[] = [];
    for (const [scheme, rival] of Object.entries(RIVALS)) {
      if (!stores.includes(scheme)) continue;
      if (rival.lack === null) figures.push(...(await compare(scheme, rival, events, rounds, context)));
      else context.note(`${scheme} is left out: ${rival.lack}`);
    }
    if (figures.length === 0) throw new Error('there is no store to measure');
    return figures;
  },
);

/** Seconds that the same bytes take, in files of the same sizes. */
async function compare(
  scheme: string,
  rival: Rival,
  events: number,
  rounds: number,
  context: BenchContext,
): Promise<Figure[]> {
  const folder = join(context.folder, scheme);
  const emulator = await rival.start();
  context.atEnd(() => emulator.stop());
  const bucket = await emulator.bucket('bench');
  const upload = rival.plain(emulator.settings(), bucket.replace(/^.*\/\//, ''));
  context.atEnd(() => upload.close());
  const open = (place: string): Promise<ObjectStore> =>
    openStore(place, storageSettings(emulator.settings()));
  const flood = { batches: makeBatches(Math.min(events, MADE)), sends: Math.ceil(events / BATCH) };
  const sink = async (at: number): Promise<readonly [seconds: number, sizes: number[]]> => {
    const url = `${bucket}/${at}`;
    const seconds = await throughSink(url, join(folder, `${at}`), flood, open);
    return [seconds, await emptied(await open(url))];
  };
  // Says how large the objects are.
  const copies = await makeCopies(folder, (await sink(-1))[1]);
  const took = await inTurns(
    {
      sink: async (at) => (await sink(at))[0],
      plain: async (at) => {
        const seconds = await timed(async () => {
          for (const [n, file] of copies.entries()) await upload.put(`${at}/plain-${n}`, file);
        });
        await emptied(await open(`${bucket}/${at}`));
        return seconds;
      },
    },
    { rounds, warmUp: 1, tell: (seconds) => `${round(seconds, 2)} s` },
    context,
  );
  return [
    {
      name: `${scheme}: through the sink`,
      values: took.sink.map((seconds) => events / seconds),
      unit: ' events/s',
      digits: 0,
    },
    {
      name: `${scheme}: the sink, share of an upload of the same bytes by the SDK`,
      values: ratios(took.plain, took.sink, (seconds) => seconds),
      wanted: '≥ 0.9',
    },
  ];
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
}

/**
 * All events into the store: confirmed means that objects and manifest are there. A receiver opens its sinks once, and the SDK's
 * client is there too when it begins: that does not count.
 */
async function throughSink(
  path: string,
  spool: string,
  { batches, sends }: Flood,
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
      const batch = (batches[at % batches.length] ?? []).map((event) => ({ event, destination: null }));
      const results = await sink.send(batch, signal);
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

/** Files as large as the archive's objects. @returns their paths */
async function makeCopies(folder: string, sizes: readonly number[]): Promise<string[]> {
  const content = Buffer.alloc(Math.max(...sizes));
  const copies: string[] = [];
  for (const [n, size] of sizes.entries()) {
    const file = join(folder, `copy-${n}`);
    await writeFile(file, content.fill(`made-up ${n} `).subarray(0, size));
    copies.push(file);
  }
  return copies;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

function makeBatches(count: number): JournalEvent[][] {
  return Array.from({ length: Math.ceil(count / BATCH) }, (_, batch) =>
    Array.from({ length: Math.min(BATCH, count - batch * BATCH) }, (__, at) => {
      const n = batch * BATCH + at;
      return contractEvent(n, { id: `made-up-${n}`, body: mealBody(n) });
    }),
  );
}
