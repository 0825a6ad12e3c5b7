import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { kept } from './kept.ts';

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

/** Lacking when a trial of the program ends in any other way than well. Each is tried once in a run of the tests. */
export function lacksWorking(what: string, program: string, args: readonly string[]): Lack {
  const trial = createHash('sha256')
    .update(JSON.stringify([program, args]))
    .digest('hex');
  const folder = kept(`trial-${trial}`, (made) => {
    if (spawnSync(program, args, { stdio: 'ignore' }).status === 0) writeFileSync(join(made, WORKS), '');
  });
  return existsSync(join(folder, WORKS)) ? null : `${what} does not work here`;
}

const WORKS = 'works';

/** Ends the title of a test that is skipped for the lack of something, so that the report says why. */
export function skipped(lack: Lack): string {
  return lack === null ? '' : ` (skipped: ${lack})`;
}
