import { hash } from 'node:crypto';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { namesIn, readIfThere } from '../lib/durable.ts';
import { writeDurably } from '../lib/new-file.ts';
import { membersIn } from '../lib/parsed.ts';
import { readState } from '../lib/work-folder.ts';

export interface Finished {
  readonly id: string;
  /** ISO 8601. */
  readonly finished_at: string;
}

/** The same for the same command with its state in the same folder. */
export interface FinishedKey {
  readonly fingerprint: string;
  readonly state: string;
}

const ENDING = '.finished.json';
/** Number of remembered replays; the newest stay. */
const KEPT = 100;

/** Remembers that a replay is finished: like one that was never begun, it leaves no state. */
export async function noteFinished(folder: string, key: FinishedKey, id: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const note: Finished = { id, finished_at: new Date().toISOString() };
  await writeDurably(folder, nameOf(key), `${JSON.stringify(note)}\n`, 0o600);
  const names = (await readdir(folder)).filter((name) => name.endsWith(ENDING));
  if (names.length <= KEPT) return;
  const dated = await Promise.all(
    names.map(async (name) => {
      // Another replay may have removed it.
      const { mtimeMs } = await stat(join(folder, name)).catch(() => ({ mtimeMs: 0 }));
      return [mtimeMs, name] as const;
    }),
  );
  const old = dated.toSorted(([one], [other]) => other - one).slice(KEPT);
  for (const [, name] of old) await rm(join(folder, name), { force: true });
}

/** Null for a replay that is not finished, or no longer remembered. */
export function finishedBefore(folder: string, key: FinishedKey): Finished | null {
  return readState(folder, nameOf(key)) as Finished | null;
}

/** Whether a replay of this id is remembered as finished. */
export function hasFinished(folder: string, id: string): boolean {
  const notes = namesIn(folder).filter((name) => name.endsWith(ENDING));
  return notes.some((name) => membersIn(readIfThere(join(folder, name)) ?? '')['id'] === id);
}

export async function forgetFinished(folder: string, key: FinishedKey): Promise<void> {
  await rm(join(folder, nameOf(key)), { force: true });
}

function nameOf({ fingerprint, state }: FinishedKey): string {
  return `${hash('sha256', JSON.stringify([fingerprint, state])).slice(0, 12)}${ENDING}`;
}
