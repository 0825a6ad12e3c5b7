import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { eraseCommand } from '../../../src/cli/erase/command.ts';
import { EXIT } from '../../../src/core/errors.ts';
import { leftSpools, warnOfLeftSpools } from '../../../src/privacy/erase/left-spools.ts';
import { WorkFolder } from '../../../src/lib/work-folder.ts';
import { describe as describeFiles } from '../../../src/sinks/files/config.ts';
import { run } from '../../cli/run.ts';
import { batchOf, writeFiles } from '../../support/archives.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { writeConfig } from '../../support/millrace.ts';
import { eventOf, find, QUIET, secretOf, userId } from './support.ts';

const LEFT = '0123456789ab';

/** What a sink leaves in its spool that was killed, or whose path was changed, before its file was sent. */
async function leave(spool: string): Promise<void> {
  await writeFiles(spool, [batchOf(eventOf(1, 0), eventOf(2, 0))], { killed: true });
}

function spooling(
  journal: string,
  sink: Readonly<Record<string, unknown>>,
): Parameters<typeof leftSpools>[0] {
  return {
    journal: { path: journal },
    sinks: {
      lake: { description: describeFiles(sink, { tables: [], spool: join(dirname(journal), 'spool') }) },
    },
  };
}

test('an erasure searches the spools of sinks that the config has no more', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  const spool = join(folder, 'spool', LEFT);
  await leave(spool);
  expect(find([spool], [userId(1)])).toHaveLength(1);
  const { exit, stdout } = await run(eraseCommand, [userId(1), '--now', '--json', '--config', config]);
  expect([exit, JSON.parse(stdout)]).toMatchObject([
    EXIT.done,
    { receipts: [{ records_removed: 1 }], left: [] },
  ]);
  expect(find([folder], [userId(1), secretOf(1)])).toEqual([]);
  expect(find([spool], [userId(2)])).toHaveLength(1);
});

test('an erasure takes out what replays have noted of why a sink refused a user’s events, once they have ended', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  const state = join(folder, 'replay', LEFT);
  mkdirSync(state, { recursive: true });
  const lines = [1, 2].map((user) => `${JSON.stringify({ found: 'x:1', reason: `no ${userId(user)}` })}\n`);
  writeFileSync(join(state, 'refused.ndjson'), lines.join(''));
  writeFileSync(join(folder, 'replay', 'console-made-up_name.json'), '{}');
  const running = await WorkFolder.take(state);
  const erase = () => run(eraseCommand, [userId(1), '--now', '--json', '--config', config]);
  const during = await erase();
  expect([during.exit, during.stdout]).toEqual([EXIT.partial, expect.stringContaining(LEFT)]);
  running.release();
  expect((await erase()).exit).toBe(EXIT.done);
  expect(readFileSync(join(state, 'refused.ndjson'), 'utf8')).toBe(lines[1]);
});

test('they are found beside the journal and beside the spools of today, which are none', async () => {
  const folder = await temporaryFolder();
  const journal = join(folder, 'journal');
  const named = join(folder, 'named');
  for (const [parent, sink] of [
    [join(folder, 'spool'), { type: 'files', path: 's3://made-up/a' }],
    [named, { type: 'files', path: 's3://made-up/a', spool: named }],
  ] as const) {
    const [today] = spooling(journal, sink).sinks['lake']?.description.folders ?? [];
    mkdirSync(today?.path ?? '', { recursive: true });
    mkdirSync(join(parent, 'of-somebody-else'));
    mkdirSync(join(parent, LEFT));
    expect(leftSpools(spooling(journal, sink))).toContain(join(parent, LEFT));
    expect(leftSpools(spooling(journal, sink))).not.toContain(today?.path);
    expect(leftSpools(spooling(journal, sink))).not.toContain(join(parent, 'of-somebody-else'));
  }
  expect(leftSpools({ journal: { path: join(folder, 'nowhere', 'journal') }, sinks: {} })).toEqual([]);
});

test('a start warns of one in which events lie, and of no other', async () => {
  const folder = await temporaryFolder();
  const warned: object[] = [];
  const log = { ...QUIET, warn: (fields: object) => void warned.push(fields) };
  const config = { journal: { path: join(folder, 'journal') }, sinks: {} };
  mkdirSync(join(folder, 'spool', 'ba9876543210'), { recursive: true });
  writeFileSync(join(folder, 'spool', 'ba9876543210', '.millrace-lock'), '');
  const left = join(folder, 'spool', LEFT);
  await warnOfLeftSpools(config, () => Promise.resolve([]), log);
  expect(warned).toEqual([]);
  await leave(left);
  // What is noted is finished by the receiver.
  await warnOfLeftSpools(config, () => Promise.resolve([left]), log);
  expect(warned).toEqual([]);
  await warnOfLeftSpools(config, () => Promise.resolve([]), log);
  expect(warned).toEqual([{ folder: left, files: 1 }]);
});
