import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { seededRandom } from '../support/random.ts';
import { drawLength, drawSteps } from './history.ts';
import { readKept, record } from './record.ts';
import { buildRecorder } from './recorder.ts';
import type { Recording } from './recording.ts';
import { describeLoss, shrink } from './shrink.ts';
import { kindOf, Tries, type Tried } from './torture.ts';

/** What one process of a run is to do. */
export interface Order {
  /** Its histories have these seeds: the first, and every `stride`th after it. */
  readonly seed: number;
  readonly stride: number;
  /** States at each crash point, at most. */
  readonly perPoint: number;
  /** Folder for what it works on; in memory where there is such a place. */
  readonly base: string;
  /** Folder of a kept history, and the only state of it that is wanted. */
  readonly kept?: string | undefined;
  readonly only?: string | undefined;
  /** One in so many is recovered by the whole program. */
  readonly served: number;
}

export interface Counts {
  histories: number;
  points: number;
  /** Different ones. */
  states: number;
  recoveries: number;
  /** Of these, by the whole program. */
  served: number;
  failed: number;
}

export interface Failure {
  readonly seed: number;
  /** Null when there is no record of this history. */
  readonly state: string | null;
  readonly faults: readonly string[];
  /** What has to be lost for it. */
  readonly lost: readonly string[];
  /** Where the history was kept. */
  readonly folder: string;
  /** Whether it takes the whole program. */
  readonly whole: boolean;
}

export type Report =
  | { readonly kind: 'counts'; readonly counts: Counts; readonly at: string }
  | { readonly kind: 'failure'; readonly failure: Failure }
  | { readonly kind: 'over' };

/** Kinds of faults of one history that are looked into. */
const KINDS = 5;
/** Milliseconds between two counts. */
const EVERY = 10_000;

process.on('message', (order: Order) => {
  work(order).then(
    () => process.exit(0),
    (error: unknown) => {
      process.stderr.write(`${(error as Error).stack}\n`);
      process.exit(1);
    },
  );
});
// It is over, or the parent is gone: nobody wants to know.
process.on('disconnect', () => process.exit(0));
process.on('SIGINT', () => undefined);

async function work(order: Order): Promise<void> {
  const folder = mkdtempSync(join(order.base, 'job-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const counts: Counts = { histories: 0, points: 0, states: 0, recoveries: 0, served: 0, failed: 0 };
  if (order.kept !== undefined) {
    await tryAll(readKept(order.kept), order, { counts, folder, keep: () => order.kept as string });
    return send({ kind: 'over' });
  }
  const library = buildRecorder(folder);
  for (let { seed } = order; ; seed += order.stride) {
    const random = seededRandom(seed);
    const steps = drawSteps(random, drawLength(random));
    const recorded = await record(folder, library, seed, steps).catch((error: unknown) => error as Error);
    if (recorded instanceof Error) {
      counts.failed += 1;
      const faults = [`it was not recorded: ${recorded.stack}`];
      send({ kind: 'failure', failure: { seed, state: null, faults, lost: [], folder, whole: false } });
      continue;
    }
    const { recording, keep } = recorded;
    const place = join(order.base, `failed-${seed}`);
    await tryAll(recording, order, { counts, folder, keep: () => (keep(place), place) });
    rmSync(join(recording.history.root, '..'), { recursive: true, force: true });
  }
}

async function tryAll(
  recording: Recording,
  { perPoint, only, served }: Order,
  { counts, folder, keep }: { readonly counts: Counts; readonly folder: string; readonly keep: () => string },
): Promise<void> {
  const { seed } = recording.history;
  const tries = new Tries(recording, { config: join(folder, 'config.json'), served });
  const before = { ...counts };
  const kinds = new Set<string>();
  let told = performance.now();
  const tell = (at: string): void => {
    counts.points = before.points + tries.points;
    counts.states = before.states + tries.states;
    counts.recoveries = before.recoveries + tries.recoveries;
    counts.served = before.served + tries.served;
    send({ kind: 'counts', counts, at: `${seed} ${at}` });
    told = performance.now();
  };
  for await (const tried of tries.run({ perPoint: () => perPoint, only, seed })) {
    if (tried.faults.length > 0) {
      counts.failed += 1;
      const kind = kindOf(tried.faults);
      if (!kinds.has(kind) && kinds.size < KINDS)
        send({ kind: 'failure', failure: await lookInto(tried, tries, seed, keep()) });
      kinds.add(kind);
    }
    if (performance.now() - told > EVERY) tell(tried.state);
  }
  counts.histories += 1;
  tell('over');
}

async function lookInto(
  { state, disk, fate, faults, whole }: Tried,
  tries: Tries,
  seed: number,
  folder: string,
): Promise<Failure> {
  const kind = kindOf(faults);
  const point = Number(state.split('.')[0]);
  const smallest = await shrink(
    disk,
    fate,
    async (candidate) => kindOf(await tries.check(disk, candidate, point, whole)) === kind,
  );
  return { seed, state, faults, lost: describeLoss(disk, smallest), folder, whole };
}

function send(report: Report): void {
  process.send?.(report);
}
