import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { kept } from '../support/kept.ts';
import { lacksProgram, type Lack } from '../support/requirements.ts';

/** Builds a program of `verifier/`, once in a run of the tests. @param folder of its source, as Go names it */
export function buildGo(folder: string): { readonly lack: Lack; readonly program: string } {
  const lack = lacksProgram('go');
  if (lack !== null) return { lack, program: '' };
  const cwd = join(import.meta.dirname, 'verifier');
  const made = kept(`verifier-${basename(folder)}`, (empty) => {
    spawnSync('go', ['build', '-o', join(empty, 'program'), folder], { cwd, stdio: 'ignore' });
  });
  const program = join(made, 'program');
  return { lack: existsSync(program) ? null : 'needs golang.org/x/mod', program };
}
