import type { BackfillProgress } from '../../backfill/run.ts';
import type { Activity } from '../../core/activity.ts';
import { ActivityReport } from '../activity-report.ts';
import type { Io } from '../io.ts';
import { configOf } from '../config-options.ts';
import { StatusLine } from '../status-line.ts';

/** Milliseconds between two lines. */
const EVERY = 2000;

/** Writes a line of progress now and then; each phase has a pace of its own. */
export function backfillProgress(io: Io): (progress: BackfillProgress) => void {
  let status = new StatusLine(io, EVERY);
  let phase = '';
  return (progress) => {
    const { done, left, text } = describe(progress);
    const isNew = progress.phase !== phase;
    if (isNew) [phase, status] = [progress.phase, new StatusLine(io, EVERY)];
    status.show(() => `${phase.padEnd(8)} ${text}${status.pace(done, done + left)}`, isNew || left === 0);
  };
}

/** What a running receiver is told of a backfill, for its console; null where no config says which receiver that is. */
export function backfillReport(io: Io, config: string | undefined, title: string): ActivityReport | null {
  try {
    const loaded = configOf({ config }, io);
    const id = `${process.pid}-${Date.now()}`;
    return new ActivityReport(loaded, { kind: 'backfill', id, title, unit: 'requests' });
  } catch {
    return null;
  }
}

export function newsOf(progress: BackfillProgress): Pick<Activity, 'done' | 'total' | 'detail'> {
  const { done, left, text } = describe(progress);
  const total = progress.phase === 'write' ? null : done + left;
  return { done, total, detail: `${progress.phase}: ${text}` };
}

function describe(progress: BackfillProgress): { done: number; left: number; text: string } {
  switch (progress.phase) {
    case 'trigger': {
      const { provider, processed: done, pending: left } = progress;
      return { done, left, text: `${provider}: ${done} processed, ${left} pending` };
    }
    case 'follow': {
      const { finished: done, total, retrying, failed } = progress;
      const text = `${done} of ${total} pulls, ${retrying} retrying, ${failed} failed`;
      return { done, left: total - done, text };
    }
    case 'pull': {
      const { done, total, meals } = progress;
      return { done, left: total - done, text: `${done} of ${total} requests, ${meals} meals` };
    }
    case 'write':
      return { done: 0, left: 0, text: 'putting the files together' };
    default:
      return progress satisfies never;
  }
}
