import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { test } from 'vitest';

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

/** Lacking when a trial of the program ends in any other way than well. */
export function lacksWorking(what: string, program: string, args: readonly string[]): Lack {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0 ? null : `${what} does not work here`;
}

/** A test that is skipped, with the reason in its title, where something it needs is lacking. */
export function testUnless(lack: Lack, title: string, timeout: number, run: () => Promise<void>): void {
  if (lack === null) test(title, { timeout }, run);
  else test.skip(`${title} (skipped: ${lack})`);
}
