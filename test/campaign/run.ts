import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../../src/core/errors.ts';
import { seededRandom } from '../support/random.ts';
import type { Campaign, Failure, RunOptions, Tally } from './campaign.ts';
import { Load } from './load.ts';
import { Scene } from './scene.ts';

/** Cycles on one journal and its archives; then everything is checked, and the next history begins with new ones. */
const HISTORY = 5;
/** The same for what is broken on purpose: one fault should be enough to find it, and is audited at once. */
const BROKEN_HISTORY = 1;
/** Histories that may fail before a run is given up. */
const ENOUGH = 5;
/** Findings of one history that are printed. */
const SHOWN = 20;

export interface RunContext {
  note(line: string): void;
  /** Ends the run after the cycle of now. */
  readonly signal: AbortSignal;
}

/** Runs cycle after cycle. History number h of a run with seed s is the first one of a run with seed s + h. */
export async function run(
  campaign: Campaign,
  { cycles, seed, broken }: RunOptions,
  { note, signal }: RunContext,
): Promise<Tally> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-campaign-'));
  const load = new Load();
  const failures: Failure[] = [];
  const sum = { cycles: 0, faults: 0, acknowledged: 0, lost: 0, repeated: 0 };
  try {
    for (let own = seed; sum.cycles < cycles && failures.length < ENOUGH && !signal.aborted; own += 1) {
      const scene = new Scene({
        folder: mkdtempSync(join(folder, 'history-')),
        random: seededRandom(own),
        load,
        broken,
      });
      load.forget(broken && campaign.breaksAnswers === true);
      const done = await history(
        campaign,
        scene,
        Math.min(broken ? BROKEN_HISTORY : HISTORY, cycles - sum.cycles),
        signal,
      );
      sum.cycles += done;
      sum.faults += scene.faults;
      sum.acknowledged += scene.events.filter(({ acknowledged }) => acknowledged).length;
      sum.lost += scene.verdict.lost.length;
      sum.repeated += scene.verdict.repeated;
      if (scene.findings.length > 0) {
        failures.push({ seed: own, cycles: done, findings: scene.findings });
        for (const text of scene.findings.slice(0, SHOWN)) note(`  ${text}`);
        if (scene.findings.length > SHOWN) note(`  and ${scene.findings.length - SHOWN} more`);
      }
      note(counted({ ...sum, failures }, cycles));
      if (broken && failures.length > 0) break;
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return { ...sum, failures };
}

/** Runs one, and leaves what it found in the scene. Returns how many cycles it took. */
async function history(
  campaign: Campaign,
  scene: Scene,
  cycles: number,
  signal: AbortSignal,
): Promise<number> {
  let done = 0;
  try {
    const cycle = campaign.prepare(scene);
    while (done < cycles && scene.findings.length === 0 && !signal.aborted) {
      done += 1;
      await cycle();
    }
    // What was broken on purpose is found; the rest of it means nothing.
    if (!scene.broken || scene.findings.length === 0) await scene.audit();
  } catch (error) {
    // One that was interrupted has found nothing.
    if (!signal.aborted) scene.findings.push(messageOf(error), ...scene.lastLines());
  } finally {
    await scene.close();
    rmSync(scene.folder, { recursive: true, force: true });
  }
  return done;
}

/** One line: what a run has counted. */
export function counted(
  { cycles, faults, acknowledged, lost, repeated, failures }: Tally,
  of: number,
): string {
  const parts = [
    `${cycles} of ${of} cycles`,
    `${faults} faults`,
    `${acknowledged} acknowledged`,
    `${lost} lost`,
    `${repeated} repeated`,
  ];
  if (failures.length > 0) parts.push(`failed with seed ${failures.map(({ seed }) => seed).join(', ')}`);
  return parts.join(', ');
}
