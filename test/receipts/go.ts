import { spawnSync } from 'node:child_process';
import { buildGo } from './build-go.ts';

/** What a proof is of, as the other program takes it. */
export interface Claim {
  readonly key: string;
  readonly entry: Buffer;
  readonly proof: string;
}

const { lack, program } = buildGo('.');

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
