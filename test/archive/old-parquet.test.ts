import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ManifestWriter } from '../../src/archive/manifest-writer.ts';
import { SILENT } from '../../src/core/sink.ts';
import { eventOf, userId } from '../privacy/erase/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { postSigned } from '../support/signed-events.ts';

const FILE = 'dt=2026-11-20/20261120T000000000Z-0123456789ab.records.parquet';

test('a file of an archive of Parquet files is an error of each command that reads it, with what to do', async () => {
  const folder = await temporaryFolder();
  const place = join(folder, 'archive');
  const config = writeConfig(folder, {
    erasure: { path: join(folder, 'erasure') },
    sinks: { archive: { type: 'files', path: place }, copy: { type: 'files', path: join(folder, 'copy') } },
    routes: [{ match: '*', to: 'archive' }],
  });
  const receiver = await Receiver.start(config);
  const event = eventOf(1, 1);
  await postSigned(receiver.url, event.body, { id: event.id });
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  mkdirSync(join(place, 'dt=2026-11-20'));
  writeFileSync(join(place, FILE), 'PAR1 made up PAR1');
  const at = '2026-11-20T00:00:00.000Z';
  await new ManifestWriter(place, SILENT).append({
    file: FILE,
    records: 1,
    bytes: 17,
    sha256: '',
    first_received_at: at,
    last_received_at: at,
    types: { 'daily.data.meal.created': 1 },
  });
  const commands: [code: number, ...args: string[]][] = [
    [4, 'archive', 'verify', place],
    [3, 'replay', place, '--to', 'copy'],
    [3, 'replay', join(place, FILE), '--to', 'copy'],
    [3, 'export', place, '--out', join(folder, 'rows'), '--table', 'events'],
    [4, 'reconcile', '--since', '2020-01-01'],
    [3, 'erase', userId(1), '--now'],
  ];
  for (const [expected, ...args] of commands) {
    const { code, stdout, stderr } = await millrace([...args, '--config', config]);
    const said = `${stdout}${stderr}`;
    expect([args[0], code, said]).toEqual([args[0], expected, expect.stringContaining(FILE)]);
    expect(said).toContain('replay the archive into a files sink of NDJSON');
  }
});
