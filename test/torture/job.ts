import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { obey } from '../support/jobs.ts';
import { seededRandom } from '../support/random.ts';
import { drawLength, drawSteps } from './history.ts';
import { readKept, record } from './record.ts';
import { buildRecorder } from './recorder.ts';
import type { Recording } from './recording.ts';
import { describeLoss, shrink } from './shrink.ts';
import { kindOf, Tries, type Tried } from './torture.ts';

/** One history, and which of its states are tried. */
export interface Order {
  readonly seed: number;
  /** States at each crash point, at most. */
  readonly perPoint: number;
  /** Folder for what it works on; in memory where there is such a place. */
  readonly base: string;
  /** Folder of a kept history, and the only state of it that is wanted. */
  readonly kept?: string | undefined;
  readonly only?: string | undefined;
}

export const NOTHING = { histories: 0, points: 0, states: 0, recoveries: 0, failed: 0 };
/** `states`: different ones. */
export type Counts = typeof NOTHING;

export interface Failure {
  readonly seed: number;
  /** Null when there is no record of this history. */
  readonly state: string | null;
  readonly faults: readonly string[];
  /** What has to be lost for it. */
  readonly lost: readonly string[];
  /** Where the history was kept. */
  readonly folder: string;
}

export interface Report {
  /** What was done since the report before. */
  readonly counts: Partial<Counts>;
  /** The history's seed and the state it is at. */
  readonly at: string;
  readonly failure?: Failure;
}

/** Kinds of faults of one history that are looked into. */
const KINDS = 5;
/** Milliseconds between two counts. */
const EVERY = 10_000;

let place: { readonly folder: string; readonly library: string } | null = null;

if (import.meta.main)
  obey<Report>(async (order: Order, tell) => {
    const { seed, base, kept } = order;
    if (place === null) {
      const folder = mkdtempSync(join(base, 'job-'));
      process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
      place = { folder, library: kept === undefined ? buildRecorder(folder) : '' };
    }
    const { folder, library } = place;
    if (kept !== undefined) return tryAll(readKept(kept), order, { tell, keep: () => kept });
    const random = seededRandom(seed);
    const steps = drawSteps(random, drawLength(random));
    const recorded = await record(folder, library, seed, steps).catch((error: unknown) => error as Error);
    if (recorded instanceof Error) {
      const faults = [`it was not recorded: ${recorded.stack}`];
      const failure = { seed, state: null, faults, lost: [], folder };
      return { counts: { failed: 1 }, at: `${seed}`, failure };
    }
    const { recording, keep } = recorded;
    const to = join(base, `failed-${seed}`);
    const report = await tryAll(recording, order, { tell, keep: () => (keep(to), to) });
    rmSync(join(recording.history.root, '..'), { recursive: true, force: true });
    return report;
  });

async function tryAll(
  recording: Recording,
  { perPoint, only }: Order,
  { tell, keep }: { tell: (report: Report) => void; keep: () => string },
): Promise<Report> {
  const { seed } = recording.history;
  const tries = new Tries(recording);
  let before: Counts = NOTHING;
  let failed = 0;
  let reportedAt = performance.now();
  const newCounts = (): Counts => {
    const { points, states, recoveries } = tries;
    const all = { histories: 0, points, states, recoveries, failed };
    const names = Object.keys(NOTHING) as (keyof Counts)[];
    const counts = Object.fromEntries(names.map((name) => [name, all[name] - before[name]])) as Counts;
    before = all;
    reportedAt = performance.now();
    return counts;
  };
  const kinds = new Set<string>();
  for await (const tried of tries.run({ perPoint: () => perPoint, only, seed })) {
    const at = `${seed} ${tried.state}`;
    if (tried.faults.length > 0) {
      failed += 1;
      const kind = kindOf(tried.faults);
      const isLookedInto = !kinds.has(kind) && kinds.size < KINDS;
      kinds.add(kind);
      if (isLookedInto)
        tell({ counts: newCounts(), at, failure: await lookInto(tried, tries, seed, keep()) });
    }
    if (performance.now() - reportedAt > EVERY) tell({ counts: newCounts(), at });
  }
  return { counts: { ...newCounts(), histories: 1 }, at: `${seed} over` };
}

async function lookInto(
  { state, disk, fate, faults }: Tried,
  tries: Tries,
  seed: number,
  folder: string,
): Promise<Failure> {
  const kind = kindOf(faults);
  const point = Number(state.split('.')[0]);
  const smallest = await shrink(
    disk,
    fate,
    async (candidate) => kindOf(await tries.check(disk, candidate, point)) === kind,
  );
  return { seed, state, faults, lost: describeLoss(disk, smallest), folder };
}
