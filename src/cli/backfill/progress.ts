import type { BackfillProgress } from '../../backfill/run.ts';
import type { Activity } from '../../core/activity.ts';
import { formatDuration } from '../../lib/units.ts';
import { ActivityReport } from '../activity-report.ts';
import { note, type Io } from '../io.ts';
import { configOf } from '../options.ts';

/** Milliseconds between two lines. */
const EVERY = 2000;

/** Writes a line of progress now and then, with the rate and an estimate of what is left. */
export function backfillProgress(io: Io): (progress: BackfillProgress) => void {
  let next = 0;
  let phase = '';
  let began = 0;
  let first = 0;
  return (progress) => {
    const now = performance.now();
    const done = doneOf(progress);
    if (progress.phase !== phase) {
      phase = progress.phase;
      began = now;
      first = done;
    } else if (now < next && !isLast(progress)) return;
    next = now + EVERY;
    const rate = ((done - first) / Math.max(1, now - began)) * 1000;
    note(io, `${phase.padEnd(8)} ${describe(progress)}${etaOf(progress, done, rate)}`);
  };
}

/** What a running receiver is told of a backfill, for its console; null where no config says which receiver that is. */
export function backfillReport(io: Io, config: string | undefined, title: string): BackfillReport | null {
  try {
    const loaded = configOf({ config }, io);
    const fixed = { kind: 'backfill', id: `${process.pid}-${Date.now()}`, title, unit: 'requests' } as const;
    return new BackfillReport(new ActivityReport(loaded, fixed));
  } catch {
    return null;
  }
}

class BackfillReport {
  readonly #report: ActivityReport;
  #last: Pick<Activity, 'done' | 'total' | 'detail'> = { done: 0, total: null, detail: null };

  constructor(report: ActivityReport) {
    this.#report = report;
  }

  update(progress: BackfillProgress): void {
    const done = doneOf(progress);
    const total = progress.phase === 'write' ? null : done + leftOf(progress, done);
    this.#last = { done, total, detail: `${progress.phase}: ${describe(progress)}` };
    this.#report.update(this.#last);
  }

  end(state: Activity['state']): Promise<void> {
    return this.#report.end({ ...this.#last, state });
  }
}

function describe(progress: BackfillProgress): string {
  switch (progress.phase) {
    case 'trigger':
      return `${progress.provider}: ${progress.processed} processed, ${progress.pending} pending`;
    case 'follow':
      return `${progress.finished} of ${progress.total} pulls, ${progress.retrying} retrying, ${progress.failed} failed`;
    case 'pull':
      return `${progress.done} of ${progress.total} requests, ${progress.meals} meals`;
    case 'write':
      return 'putting the files together';
    default:
      return progress satisfies never;
  }
}

function doneOf(progress: BackfillProgress): number {
  if (progress.phase === 'trigger') return progress.processed;
  if (progress.phase === 'follow') return progress.finished;
  return progress.phase === 'pull' ? progress.done : 0;
}

function leftOf(progress: BackfillProgress, done: number): number {
  if (progress.phase === 'trigger') return progress.pending;
  return progress.phase === 'write' ? 0 : progress.total - done;
}

function isLast(progress: BackfillProgress): boolean {
  return leftOf(progress, doneOf(progress)) === 0;
}

function etaOf(progress: BackfillProgress, done: number, rate: number): string {
  const left = leftOf(progress, done);
  if (left === 0 || rate === 0) return '';
  const seconds = Math.ceil(left / rate);
  return `, ${rate.toFixed(1)}/s, about ${formatDuration(seconds * 1000)} left`;
}
