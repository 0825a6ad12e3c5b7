import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { segmentsOf } from '../support/journal-files.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';

const EVENTS = Array.from({ length: 70 }, (_, n) => madeUpEvent(n));

/** A killed receiver's folder in which 70 events wait for a sink. */
async function waiting() {
  const folder = await temporaryFolder();
  const gated = { type: new URL('./gated-sink.ts', import.meta.url).pathname, folder };
  const config = writeConfig(folder, { sinks: { gated }, routes: [{ match: '*', to: ['gated'] }] });
  const receiver = await ReceiverProcess.start(config);
  for (const { id, body } of EVENTS) expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
  await receiver.kill('SIGKILL');
  return { folder, config, journal: join(folder, 'journal') };
}

const delivered = (folder: string): ReadonlySet<string> => {
  const file = join(folder, 'delivered');
  return new Set(existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : []);
};

/** Starts it again, lets the sink take what it gets, and stops. */
async function drained({ folder, config }: { folder: string; config: string }): Promise<string> {
  const receiver = await ReceiverProcess.start(config);
  writeFileSync(join(folder, 'gate'), '');
  await receiver.drained();
  await receiver.kill('SIGTERM');
  return receiver.stderr;
}

const HARM: Readonly<Record<string, (journal: string) => void>> = {
  'a sink’s name in its database has one bit flipped': (journal) => {
    const db = new Database(join(journal, 'journal.db'));
    db.pragma('wal_checkpoint(TRUNCATE)');
    db.close();
    const file = join(journal, 'journal.db');
    const bytes = readFileSync(file);
    const at = bytes.indexOf(Buffer.from('gated', 'latin1'));
    expect(at).toBeGreaterThan(0);
    for (let found = at; found !== -1; found = bytes.indexOf('gated', found + 1)) bytes[found + 4] = 0x65;
    writeFileSync(file, bytes);
  },
  'its database is empty': (journal) => {
    rmSync(join(journal, 'journal.db-wal'), { force: true });
    writeFileSync(join(journal, 'journal.db'), '');
  },
  'its database is gone': (journal) => {
    for (const name of readdirSync(journal)) if (name.startsWith('journal.db')) rmSync(join(journal, name));
  },
};

for (const [what, harm] of Object.entries(HARM)) {
  test(`fault 48: ${what}: all that waits is delivered, and the log says what was mended`, async () => {
    const place = await waiting();
    harm(place.journal);
    const said = await drained(place);
    expect(delivered(place.folder).size).toBe(EVENTS.length);
    expect(said).toContain('the journal was damaged');
  });
}

test('fault 48: with one bit of a record’s head flipped the rest is delivered, and reconcile names the one', async () => {
  const place = await waiting();
  const [segment = ''] = segmentsOf(place.journal);
  const bytes = readFileSync(segment);
  // In the head of the record in front of this body.
  const at = bytes.indexOf(EVENTS[9]?.id ?? '') - 20;
  bytes[at] = (bytes[at] ?? 0) ^ 4;
  writeFileSync(segment, bytes);
  await drained(place);
  expect(delivered(place.folder).size).toBe(EVENTS.length - 1);
  const report = await millrace(['reconcile', '--config', place.config]);
  expect(report.code).toBe(4);
  expect(report.stdout).toMatch(
    /difference gated: missing: 1 never delivered to it: journal record \d+ is damaged/,
  );
});

test('fault 49: a segment that is gone is named in the log, in the status and by reconcile', async () => {
  const place = await waiting();
  for (const segment of segmentsOf(place.journal)) rmSync(segment);
  const said = await drained(place);
  expect(said).toMatch(/segment events-\S+ is gone, with at least the events 1 to/);
  const report = await millrace(['reconcile', '--config', place.config]);
  expect(report.code).toBe(4);
  expect(report.stdout).toMatch(/difference gated: missing: \d+ never delivered to it: segment/);
  expect((await millrace(['status', '--config', place.config])).stdout).toMatch(/damaged +\d+ records/);
});

test('fault 48: after a restore without database and note the start is refused, and journal recover resolves it', async () => {
  const place = await waiting();
  const backup = join(place.folder, 'backup');
  mkdirSync(backup);
  for (const segment of segmentsOf(place.journal))
    cpSync(segment, join(backup, segment.split('/').at(-1) ?? ''));
  rmSync(place.journal, { recursive: true });
  cpSync(backup, place.journal, { recursive: true });
  const refused = await millrace(['serve', '--config', place.config]);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(
    /with 70 events received from .*, which may all wait.*millrace journal recover/s,
  );
  expect((await millrace(['reconcile', '--config', place.config])).code).toBe(1);
  const recover = (...args: string[]) => millrace(['journal', 'recover', '--config', place.config, ...args]);
  expect((await recover()).stderr).toContain('say from where gated continue');
  expect(await recover('--from-first', 'gated')).toMatchObject({
    code: 0,
    stdout: 'gated: 70 events wait\n',
  });
  expect((await recover('--from', '2026-01-01')).code).toBe(3);
  await drained(place);
  expect(delivered(place.folder).size).toBe(EVENTS.length);
});
