import { closeSync, globSync, openSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { CommandProcess } from '../support/command-process.ts';
import { Place } from '../support/place.ts';
import { until } from '../support/until.ts';

/** A place with an archive of some events and the journal they were in. */
async function prepared(): Promise<Place> {
  const place = await Place.make();
  const receiver = await place.startProcess();
  await receiver.send(40);
  await receiver.drained();
  await receiver.stop();
  writeFileSync(place.at('meals.json'), JSON.stringify({ meals: [{ id: 'made-up' }] }));
  return place;
}

/** Runs a command whose stdout goes to a device that is full, or to somebody who does not read it. */
async function lose(args: readonly string[], where: 'full device' | 'closed pipe', place: Place) {
  const full = where === 'full device' ? openSync('/dev/full', 'w') : null;
  const command = new CommandProcess(args, {
    cwd: place.folder,
    env: { MILLRACE_CONFIG: place.config },
    stdio: ['ignore', full ?? 'pipe', 'pipe'],
  });
  if (full !== null) closeSync(full);
  command.child.stdout?.destroy();
  return { code: await command.ended(), said: command.stderr };
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
  ['erase', '--list', '--json'],
  ['--help'],
  ['--version'],
];

describe.skipIf(process.platform !== 'linux')('output that is not read', () => {
  test('a reader that closes the pipe early ends a command in silence, with its exit code', async () => {
    const at = await prepared();
    for (const args of COMMANDS) {
      const { code, said } = await lose(args, 'closed pipe', at);
      expect([args, code, said]).toEqual([args, 0, expect.not.stringContaining('millrace:')]);
    }
    const file = globSync(at.at('archive/**/*.ndjson.gz'))[0] ?? '';
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

  test('a command that follows ends when its output is not read; a receiver continues', async () => {
    const place = await Place.make({ sinks: { out: { type: 'stdout' } } });
    const receiver = await place.startProcess();
    receiver.loseStdout();
    for (const n of [1, 2]) {
      await receiver.send(1, n);
      await until('a sink whose reader is gone', async () => {
        const { sinks } = await receiver.status();
        return /EPIPE/.test(sinks?.[0]?.lastError ?? '');
      });
    }
    expect(await lose(['tail', '--since', '1h'], 'closed pipe', place)).toEqual({ code: 0, said: '' });
  });

  test('a file that cannot be written is named, and nothing is left of it', async () => {
    const place = await prepared();
    const nowhere = place.at('nowhere', 'out');
    const infer = ['schema', 'infer', place.at('archive'), '--all'];
    const types = ['types', 'ts'];
    for (const [args, out, code, reason] of [
      [infer, nowhere, 1, 'ENOENT'],
      [infer, '/dev/full', 2, 'is there already'],
      [types, nowhere, 1, 'ENOENT'],
      [types, '/dev/full', 1, 'ENOSPC'],
    ] as const) {
      const ended = await place.run(...args, '--out', out);
      expect([args, ended.code]).toEqual([args, code]);
      expect(ended.stderr).toContain(`--out ${out}: ${reason}`);
      expect(ended.stderr).not.toMatch(/^ +at /m);
    }
  });
});
