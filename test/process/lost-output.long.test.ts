import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, globSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { childEnvironment, MAIN, millrace, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const EVENTS = 40;

/** A folder with an archive of some events, the journal they were in, and a config that names both. */
async function prepared(): Promise<{ folder: string; config: string }> {
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  const receiver = await ReceiverProcess.start(config);
  for (let n = 1; n <= EVENTS; n += 1) {
    const { id, body } = madeUpEvent(n);
    expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
  }
  await receiver.drained();
  await receiver.kill('SIGTERM');
  writeFileSync(join(folder, 'meals.json'), JSON.stringify({ meals: [{ id: 'made-up' }] }));
  return { folder, config };
}

interface Ended {
  readonly code: number | null;
  readonly said: string;
}

/** Runs a command whose stdout goes to a device that is full, or to somebody who does not read it. */
async function lose(
  args: readonly string[],
  where: 'full device' | 'closed pipe',
  { folder, config }: { readonly folder: string; readonly config: string },
): Promise<Ended> {
  const full = where === 'full device' ? openSync('/dev/full', 'w') : null;
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd: folder,
    env: { ...childEnvironment(), MILLRACE_CONFIG: config },
    stdio: ['ignore', full ?? 'pipe', 'pipe'],
  });
  if (full !== null) closeSync(full);
  child.stdout?.destroy();
  const ended = once(child, 'close');
  const said = await text(child.stderr as Readable);
  await ended;
  return { code: child.exitCode, said };
}

const COMMANDS: readonly (readonly string[])[] = [
  ['archive', 'verify', 'archive'],
  ['ndjson', 'meals.json', '--table', 'meals'],
  ['schema', 'infer', 'archive', '--all'],
  ['route', 'daily.data.meal.created', '--json'],
  ['check'],
  ['status'],
  ['schema'],
  ['schema', '--dialect', 'duckdb'],
  ['types', 'ts'],
  ['audit', 'verify'],
  ['reconcile', '--since', '2020-01-01'],
  ['completion', 'bash'],
  ['erase', '--list', '--json'],
  ['--help'],
  ['--version'],
];

describe.skipIf(process.platform !== 'linux')('output that nobody takes', () => {
  test('a reader that closes the pipe early ends a command in silence, with its exit code', async () => {
    const at = await prepared();
    for (const args of COMMANDS) {
      const { code, said } = await lose(args, 'closed pipe', at);
      expect([args, code, said]).toEqual([args, 0, expect.not.stringContaining('millrace:')]);
    }
    const file = globSync(join(at.folder, 'archive/**/*.ndjson.gz'))[0] ?? '';
    writeFileSync(file, 'damaged');
    expect((await lose(['archive', 'verify', 'archive'], 'closed pipe', at)).code).toBe(4);
  });

  test('a command that prints to a full device has failed, and says so in one line, or in one document', async () => {
    const at = await prepared();
    for (const args of COMMANDS) {
      const { code, said } = await lose(args, 'full device', at);
      expect([args, code, said]).toEqual([args, 1, expect.stringContaining('no space left')]);
      expect(said).not.toMatch(/^ +at /m);
      const last = said.trimEnd().split('\n').at(-1) ?? '';
      if (args.includes('--json'))
        expect(JSON.parse(last)).toMatchObject({ error: { code: 'output_unwritable', exit: 1 } });
      else expect(last).toMatch(/^millrace: Output cannot be written: standard output: /);
    }
  });

  test('who follows until nobody looks is done; a receiver goes on', async () => {
    const folder = await temporaryFolder();
    const config = writeConfig(folder, { sinks: { out: { type: 'stdout' } } });
    const receiver = await ReceiverProcess.start(config);
    receiver.loseStdout();
    for (const n of [1, 2]) {
      const { id, body } = madeUpEvent(n);
      expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
      await until('a sink whose reader is gone', async () => {
        const { sinks } = await receiver.status();
        return /EPIPE/.test(sinks?.[0]?.lastError ?? '');
      });
    }
    expect(await lose(['tail', '--since', '1h'], 'closed pipe', { folder, config })).toEqual({
      code: 0,
      said: '',
    });
  });

  test('a file that cannot be written is named, and nothing is left of it', async () => {
    const { folder, config } = await prepared();
    for (const args of [
      ['schema', 'infer', 'archive', '--all'],
      ['types', 'ts'],
    ]) {
      const nowhere = join(folder, 'nowhere', 'out');
      for (const [out, reason] of [
        [nowhere, 'ENOENT'],
        ['/dev/full', args[0] === 'types' ? 'ENOSPC' : 'is there already'],
      ] as const) {
        const { code, stderr } = await millrace([...args, '--out', out, '--config', config], { cwd: folder });
        expect([args, code]).toEqual([args, reason === 'is there already' ? 2 : 1]);
        expect(stderr).toContain(`--out ${out}: ${reason}`);
        expect(stderr).not.toMatch(/^ +at /m);
      }
    }
  });
});
