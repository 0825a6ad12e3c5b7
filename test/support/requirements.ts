import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Why a test cannot run here, or null when it can. */
export type Lack = string | null;

/** The first thing that is lacking. */
export function firstLack(...lacks: readonly Lack[]): Lack {
  return lacks.find((lack) => lack !== null) ?? null;
}

export function lacksRoot(): Lack {
  return process.getuid?.() === 0 ? null : 'needs root';
}

export function lacksProgram(name: string): Lack {
  const found = (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  return found ? null : `needs ${name}`;
}

/** What trials of programs have shown; the files of a worker ask for the same ones. */
const tried = new Map<string, Lack>();

/** Lacking when a trial of the program ends in any other way than well. */
export function lacksWorking(what: string, program: string, args: readonly string[]): Lack {
  const trial = JSON.stringify([program, args]);
  const known = tried.get(trial);
  if (known !== undefined) return known;
  const works = spawnSync(program, args, { stdio: 'ignore' }).status === 0;
  const lack = works ? null : `${what} does not work here`;
  tried.set(trial, lack);
  return lack;
}

/** Ends the title of a test that is skipped for the lack of something, so that the report says why. */
export function skipped(lack: Lack): string {
  return lack === null ? '' : ` (skipped: ${lack})`;
}
