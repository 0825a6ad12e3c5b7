import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstLack, lacksProgram, type Lack } from '../support/requirements.ts';

/** What a proof is of, as the other program takes it. */
export interface Claim {
  readonly key: string;
  readonly entry: Buffer;
  readonly proof: string;
}

function built(): { readonly lack: Lack; readonly program: string } {
  const program = join(mkdtempSync(join(tmpdir(), 'millrace-verifier-')), 'verifier');
  const lack = firstLack(lacksProgram('go'));
  if (lack !== null) return { lack, program };
  const cwd = join(import.meta.dirname, 'verifier');
  const { status } = spawnSync('go', ['build', '-o', program, '.'], { cwd, stdio: 'ignore' });
  return { lack: status === 0 ? null : 'needs golang.org/x/mod', program };
}

const { lack, program } = built();

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
