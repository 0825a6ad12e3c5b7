import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeConfig } from '../support/millrace.ts';
import { expectConserved, expectOnce, readBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import type { Serving } from '../support/serving.ts';
import { postSigned, SECRET } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const NEW_SECRET = `whsec_${Buffer.from('another made-up secret of the tests').toString('base64')}`;

interface Changeable {
  signing: { secrets: string[] };
  sinks: Record<string, Record<string, string>>;
  routes?: object[];
}

/** Rewrites the config, sends SIGHUP and waits for the log to say what came of it. */
async function reload(
  receiver: Serving,
  file: string,
  change: (config: Changeable) => void,
  message: string,
) {
  const config = JSON.parse(readFileSync(file, 'utf8')) as Changeable;
  change(config);
  writeFileSync(file, JSON.stringify(config));
  const count = (): number => receiver.logLines().filter(({ msg }) => msg === message).length;
  const before = count();
  receiver.signal('SIGHUP');
  await until(`the line "${message}"`, () => count() > before);
}

test('fault 18: a secret is rotated without a restart: old and new are accepted, then the old one is refused', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  const receiver = await Receiver.start(config);
  const statusWith = async (secret: string): Promise<number> =>
    (await postSigned(receiver.url, madeUpEvent(1).body, { id: madeUpEvent(1).id, secret })).status;
  expect([await statusWith(SECRET), await statusWith(NEW_SECRET)]).toEqual([202, 401]);
  await reload(receiver, config, (file) => (file.signing.secrets = [NEW_SECRET, SECRET]), 'reloaded');
  expect([await statusWith(SECRET), await statusWith(NEW_SECRET)]).toEqual([202, 202]);
  await reload(receiver, config, (file) => (file.signing.secrets = [NEW_SECRET]), 'reloaded');
  expect([await statusWith(SECRET), await statusWith(NEW_SECRET)]).toEqual([401, 202]);
});

test('a secret rotated and a route moved under load: no request fails, every event is where it belongs', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  const receiver = await Receiver.start(config);
  const acknowledged = new Map<string, Buffer>();
  const statuses = new Set<number>();
  let secret = SECRET;
  const stop = new AbortController();
  let n = 0;
  const lane = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      const { id, body } = madeUpEvent((n += 1));
      const { status } = await postSigned(receiver.url, body, { id, secret });
      statuses.add(status);
      acknowledged.set(id, body);
    }
  };
  const load = Promise.all(Array.from({ length: 4 }, lane));
  const more = (events: number): Promise<unknown> => {
    const goal = acknowledged.size + events;
    return until('more answers', () => acknowledged.size >= goal);
  };
  await more(50);
  const second = { type: 'files', path: join(folder, 'labs') };
  await reload(
    receiver,
    config,
    (file) => {
      file.signing.secrets = [SECRET, NEW_SECRET];
      file.sinks['labs'] = second;
      file.routes = [
        { match: ['labtest.', 'lab_report.'], to: ['labs'] },
        { match: '*', to: ['archive'] },
      ];
    },
    'reloaded',
  );
  secret = NEW_SECRET;
  await more(50);
  await reload(receiver, config, (file) => (file.signing.secrets = [NEW_SECRET]), 'reloaded');
  await more(50);
  stop.abort();
  await load;
  expect([...statuses]).toEqual([202]);
  await receiver.drained();
  await receiver.kill('SIGTERM');
  const labs = await readBack(join(folder, 'labs'));
  const found = new Map([...(await readBack(join(folder, 'archive'))), ...labs]);
  expectConserved(found, acknowledged);
  expectOnce(found);
  expect(labs.size).toBeGreaterThan(0);
  for (const [copy] of labs.values()) expect(copy?.record.event_type).toMatch(/^(labtest|lab_report)\./);
});

test('a config that cannot be used changes nothing, and the log says why', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  const receiver = await Receiver.start(config);
  const failed = 'reload failed; the previous config stays in force';
  await reload(receiver, config, (file) => (file.routes = [{ match: '*', to: ['nowhere'] }]), failed);
  expect(receiver.stderr).toContain('nowhere');
  writeFileSync(join(folder, 'a-file'), '');
  await reload(
    receiver,
    config,
    (file) => {
      delete file.routes;
      file.sinks['extra'] = { type: 'files', path: join(folder, 'a-file', 'below') };
      file.sinks['archive'] = { ...file.sinks['archive'], compress: 'none' };
    },
    failed,
  );
  expect((await postSigned(receiver.url)).status).toBe(202);
  await receiver.drained();
  await receiver.kill('SIGTERM');
  const found = await readBack(join(folder, 'archive'));
  expect(found.size).toBe(1);
  for (const [copy] of found.values()) expect(copy?.file).toMatch(/\.ndjson\.gz$/);
});

test('a new sink and its route corrected while events wait for it: it gets every one of them', async () => {
  const folder = await temporaryFolder();
  const type = fileURLToPath(new URL('./picky-sink.ts', import.meta.url));
  const config = writeConfig(folder, {
    sinks: { picky: { type, folder, ready: false } },
    routes: [{ match: '*', to: ['picky:wrong'] }],
  });
  const receiver = await Receiver.start(config);
  const events = [1, 2, 3].map((n) => madeUpEvent(n));
  for (const { id, body } of events) {
    expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
  }
  await reload(
    receiver,
    config,
    (file) => (file.sinks['picky'] = { type, folder, ready: true } as never),
    'reloaded',
  );
  await until('the sink to be in trouble', () =>
    receiver.logLines().some(({ msg }) => msg === 'sink paused'),
  );
  await reload(receiver, config, (file) => (file.routes = [{ match: '*', to: ['picky:right'] }]), 'reloaded');
  await receiver.drained();
  await receiver.kill('SIGTERM');
  const delivered = readFileSync(join(folder, 'delivered'), 'utf8').trim().split('\n');
  expect(delivered.sort()).toEqual(events.map(({ id }) => id).sort());
});

test('routes edited while nothing runs: what waits still goes where it was to go, over two starts', async () => {
  const folder = await temporaryFolder();
  const gated = { type: fileURLToPath(new URL('./gated-sink.ts', import.meta.url)), folder };
  const sinks = { gated, archive: { type: 'files', path: join(folder, 'archive') } };
  const configOf = (to: string): string => writeConfig(folder, { sinks, routes: [{ match: '*', to: [to] }] });
  const first = await ReceiverProcess.start(configOf('gated'));
  const waiting = Array.from({ length: 30 }, (_, n) => madeUpEvent(n));
  for (const { id, body } of waiting) expect((await postSigned(first.url, body, { id })).status).toBe(202);
  // The archive has nothing to take of them, and is past them for good.
  await until('the archive to pass them', async () => {
    const { journal } = await first.status();
    return journal?.cursors.find(({ sink }) => sink === 'archive')?.seq === waiting.length;
  });
  await first.kill('SIGKILL');
  const second = await ReceiverProcess.start(configOf('archive'));
  await second.kill('SIGKILL');
  const third = await Receiver.start(configOf('archive'));
  const later = madeUpEvent(30);
  expect((await postSigned(third.url, later.body, { id: later.id })).status).toBe(202);
  writeFileSync(join(folder, 'gate'), '');
  await third.drained();
  await third.kill('SIGTERM');
  const delivered = new Set(readFileSync(join(folder, 'delivered'), 'utf8').trim().split('\n'));
  expect(delivered).toEqual(new Set(waiting.map(({ id }) => id)));
  expect([...(await readBack(join(folder, 'archive'))).keys()]).toEqual([later.id]);
});

test('a SIGHUP that comes before it listens is heeded once it does', async () => {
  const folder = await temporaryFolder();
  const gated = { type: fileURLToPath(new URL('./gated-sink.ts', import.meta.url)), folder, holdOpen: true };
  const receiver = new Receiver(writeConfig(folder, { sinks: { gated } }));
  await until('the sink to be opened', () => existsSync(join(folder, 'opening')));
  receiver.signal('SIGHUP');
  writeFileSync(join(folder, 'gate'), '');
  await receiver.listening();
  await until('the line "reloaded"', () => receiver.logLines().some(({ msg }) => msg === 'reloaded'));
  expect((await postSigned(receiver.url)).status).toBe(202);
});
