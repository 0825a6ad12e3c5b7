import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstLack, lacksProgram, type Lack } from '../support/requirements.ts';

/** Builds a program of `verifier/`. @param folder of its source, as Go names it */
export function buildGo(folder: string): { readonly lack: Lack; readonly program: string } {
  const program = join(mkdtempSync(join(tmpdir(), 'millrace-verifier-')), 'program');
  const lack = firstLack(lacksProgram('go'));
  if (lack !== null) return { lack, program };
  const cwd = join(import.meta.dirname, 'verifier');
  const { status } = spawnSync('go', ['build', '-o', program, folder], { cwd, stdio: 'ignore' });
  return { lack: status === 0 ? null : 'needs golang.org/x/mod', program };
}
