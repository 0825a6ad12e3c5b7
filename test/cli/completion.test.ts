import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createProgram } from '../../src/cli/program.ts';
import { commandTree, walk } from '../../src/cli/tree.ts';
import { temporaryFolder } from '../support/folders.ts';
import { lacksProgram, skipped } from '../support/requirements.ts';
import { run } from './run.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** Writes the script of one shell and returns its path. */
async function script(shell: string): Promise<string> {
  const { stdout } = await run(createProgram, ['completion', shell]);
  const file = join(await temporaryFolder(), `millrace.${shell}`);
  writeFileSync(file, stdout);
  return file;
}

function said(program: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', timeout: 120_000 });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout;
}

/** What bash offers for the last of the words. */
function bashOffers(file: string, ...words: readonly string[]): string[] {
  const code = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _millrace; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return said('bash', ['--norc', '-c', code, 'bash', file, 'millrace', ...words])
    .split('\n')
    .filter((word) => word !== '');
}

describe('millrace completion', () => {
  test('every script knows every command and every option', async () => {
    const { stdout: bash } = await run(createProgram, ['completion', 'bash']);
    const { stdout: zsh } = await run(createProgram, ['completion', 'zsh']);
    const { stdout: fish } = await run(createProgram, ['completion', 'fish']);
    let options = 0;
    await run(
      async (io) => {
        const program = await createProgram(io);
        for (const { path, options: all } of walk(commandTree(program))) {
          const name = path.at(-1) ?? 'millrace';
          for (const text of [bash, zsh, fish]) expect(text).toContain(name);
          for (const { long } of all) {
            options += 1;
            expect(fish).toContain(` -l ${long.slice(2)} `);
            expect(bash).toContain(long);
            expect(zsh).toContain(long);
          }
        }
        return program;
      },
      ['completion', 'bash'],
    );
    expect(options).toBeGreaterThan(50);
  });

  test.for(SHELLS)('%s takes its script', async (shell, { skip }) => {
    const lack = lacksProgram(shell);
    skip(lack !== null, lack ?? '');
    expect(said(shell, ['-n', await script(shell)])).toBe('');
  });

  test.skipIf(lacksProgram('bash') !== null)(
    `bash completes commands, options, choices${skipped(lacksProgram('bash'))}`,
    async () => {
      const file = await script('bash');
      expect(bashOffers(file, 'quar')).toEqual(['quarantine']);
      expect(bashOffers(file, 'quarantine', 're')).toEqual(['retry']);
      expect(bashOffers(file, 'quarantine', 'list', '--l')).toEqual(['--limit']);
      expect(bashOffers(file, 'schema', '--dialect', 'sn')).toEqual(['snowflake']);
      expect(bashOffers(file, 'schema', '--dialect', '=', 'sn')).toEqual(['snowflake']);
      // Files are readline's business.
      expect(bashOffers(file, 'archive', 'verify', '')).toEqual([]);
      expect(bashOffers(file, 'serve', '--config', '')).toEqual([]);
    },
  );

  test.skipIf(lacksProgram('fish') !== null)(
    `fish completes commands, options, choices${skipped(lacksProgram('fish'))}`,
    async () => {
      const file = await script('fish');
      const offers = (line: string): string[] =>
        said('fish', ['--no-config', '-c', 'source $argv[1]; complete -C $argv[2]', file, line])
          .split('\n')
          .filter((word) => word !== '')
          .map((word) => word.split('\t', 1)[0] ?? '');
      expect(offers('millrace quar')).toEqual(['quarantine']);
      expect(offers('millrace quarantine re')).toEqual(['retry']);
      expect(offers('millrace quarantine list --l')).toEqual(['--limit']);
      expect(offers('millrace schema --dialect sn')).toEqual(['snowflake']);
    },
  );

  test('another shell is refused', async () => {
    await expect(run(createProgram, ['completion', 'tcsh'])).rejects.toMatchObject({ exitCode: 1 });
  });
});
