import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { seededRandom } from '../support/random.ts';
import { runHistory, type History, type Step } from './history.ts';
import { readLog } from './log.ts';
import { makeLog } from './recorder.ts';
import { differencesFromReal, takeApart, type Recording } from './recording.ts';

/** A kill from outside can fall between an operation and its record; such a run is done again. */
const TRIES = 5;

export interface RecordedRun {
  readonly recording: Recording;
  /** Keeps it in a folder, so that its states can be had again: the same seed makes the same plan, not the same moments. */
  keep(folder: string): void;
}

/**
 * Runs a receiver under the recorder, on a folder of its own below `base`.
 * @throws when the recorder has missed something
 */
export async function record(
  base: string,
  library: string,
  seed: number,
  steps: readonly Step[],
): Promise<RecordedRun> {
  for (let attempt = 1; ; attempt += 1) {
    const folder = mkdtempSync(join(base, 'run-'));
    const root = join(folder, 'root');
    const file = join(folder, 'log');
    makeLog(file);
    mkdirSync(root);
    const history = await runHistory({ seed, random: seededRandom(seed), folder, library, steps });
    const log = readLog(file);
    rmSync(file);
    const recording = takeApart(history, log);
    const missed = differencesFromReal(recording.ops, root);
    if (missed.length === 0) return { recording, keep: (to) => keep(to, history, log) };
    if (!history.isKilled || attempt === TRIES)
      throw new Error(`the recorder has missed a change of ${missed.join(', ')}`);
  }
}

function keep(folder: string, history: History, log: Buffer): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'log.gz'), gzipSync(log));
  writeFileSync(join(folder, 'history.json'), JSON.stringify(history));
}

/** What `keep` has kept. Its states are laid out where they were recorded: paths stand in the files. */
export function readKept(folder: string): Recording {
  const history = JSON.parse(readFileSync(join(folder, 'history.json'), 'utf8')) as History;
  mkdirSync(history.root, { recursive: true });
  return takeApart(history, gunzipSync(readFileSync(join(folder, 'log.gz'))));
}
