import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { kept } from '../../support/kept.ts';
import { lacksProgram, type Lack } from '../../support/requirements.ts';

/** What a proof is of, as the other program takes it. */
export interface Claim {
  readonly key: string;
  readonly entry: Buffer;
  readonly proof: string;
}

const { lack, program } = build();

/** Why Go cannot verify here, or null. */
export const LACKS_GO = lack;

/** Asks a program in Go that shares nothing with ours. @returns `ok SIZE INDEX` for each, or why not */
export function verifyInGo(claims: readonly Claim[]): string[] {
  const lines = claims.map(
    ({ key, entry, proof }) =>
      `${key} ${entry.toString('base64')} ${Buffer.from(proof).toString('base64')}\n`,
  );
  const { stdout } = spawnSync(program, { input: lines.join(''), encoding: 'utf8' });
  return stdout.trim().split('\n');
}

/** Builds the program in `verifier/`, once in a run of the tests. */
function build(): { readonly lack: Lack; readonly program: string } {
  const missing = lacksProgram('go');
  if (missing !== null) return { lack: missing, program: '' };
  const cwd = join(import.meta.dirname, 'verifier');
  const made = kept('verifier', (empty) => {
    spawnSync('go', ['build', '-o', join(empty, 'program'), '.'], { cwd, stdio: 'ignore' });
  });
  const built = join(made, 'program');
  return { lack: existsSync(built) ? null : 'needs golang.org/x/mod', program: built };
}
