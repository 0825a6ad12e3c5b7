import { readdirSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Places } from '../../src/archive/places.ts';
import { verifyArchive } from '../../src/archive/verify.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { openStore } from '../../src/storage/open.ts';
import { checkChains, recordsIn } from '../sinks/store-support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millraceProcess, writeConfig } from '../support/millrace.ts';
import { describeOnStores, storageSettings, type Emulator } from '../support/object-stores/emulators.ts';
import { startFaultProxy, type Fault } from '../support/object-stores/fault-proxy.ts';
import { seededRandom } from '../support/random.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

/** Kills of one run; 200 and more take minutes. */
const KILLS = Number(process.env['MILLRACE_STORE_KILLS'] ?? 1);
const SEED = Number(process.env['MILLRACE_STORE_SEED'] ?? 1);

/** What the kills are aimed at: before a request is passed on, or when the store has done it. */
const MOMENTS = ['data before', 'data after', 'manifest before', 'manifest after', 'any time'] as const;
/** Writes after which a kill no longer waits for one of its kind. */
const ENOUGH = 20;
/** What goes wrong besides, with one request in ten. */
const FAULTS: readonly Fault[] = ['429', '500', '503', 'cut', 'lost'];

/** Secrets of a config have to come from the environment. */
function inEnvironment(settings: object): { readonly storage: object; readonly env: Record<string, string> } {
  const env: Record<string, string> = {};
  const text = JSON.stringify(settings, (key, value: unknown) => {
    if (typeof value !== 'string' || !/key|secret|token|connection/i.test(key)) return value;
    env[`STORE_${key}`] = value;
    return `\${STORE_${key}}`;
  });
  return { storage: JSON.parse(text) as object, env };
}

/** Sends one after the other, again and again until each is answered: only then does it count. */
class Sender {
  readonly acknowledged: string[] = [];
  url = '';
  #stopped = false;
  #n = 0;

  async lane(): Promise<void> {
    while (!this.#stopped) {
      const { id, body } = madeUpEvent((this.#n += 1));
      while (!this.#stopped) {
        const status = await postSigned(this.url, body, { id }).then(
          (answer) => answer.status,
          () => 0,
        );
        if (status === 202 || status === 200) {
          this.acknowledged.push(id);
          break;
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  stop(): void {
    this.#stopped = true;
  }
}

async function scene(emulator: Emulator, name: string, more: object) {
  const proxy = await startFaultProxy(emulator.url);
  onTestFinished(() => proxy.stop());
  const place = `${await emulator.bucket(name)}/archive`;
  const folder = await temporaryFolder();
  const { storage, env } = inEnvironment(emulator.settings(proxy.url));
  const config = writeConfig(folder, {
    storage,
    sinks: {
      archive: { type: 'files', path: place, rotate: { bytes: '16KiB', every: '1s' }, ...more },
    },
  });
  const store = await openStore(place, storageSettings(emulator.settings()));
  onTestFinished(() => store.close());
  return { proxy, place, config, store, storage, env };
}

/** Kills at the moment that a request of this kind comes by; the answer to whether the request is passed on. */
function strikes(moment: (typeof MOMENTS)[number], { method, url = '' }: IncomingMessage): boolean {
  if (moment === 'any time') return true;
  const kind = decodeURIComponent(url).includes('/_manifest/') ? 'manifest' : 'data';
  return (method === 'PUT' || method === 'POST') && moment.startsWith(kind);
}

async function expectVerified(place: string, emulator: Emulator): Promise<void> {
  const places = new Places(storageSettings(emulator.settings()));
  expect((await verifyArchive(place, { places })).differences).toEqual([]);
  await places.close();
}

describeOnStores(' as an archive', (emulator, scheme) => {
  // The others when it is asked for: what they do differently is held to the port's own tests.
  test.skipIf(scheme !== 'azblob' && process.env['MILLRACE_STORE_KILLS'] === undefined)(
    `fault 46: ${KILLS} kills around each step, and a bad line: what was acknowledged is there once, and all verifies`,
    async () => {
      const { proxy, place, config, store, env } = await scene(emulator, 'kills', { partitionBy: ['type'] });
      const random = seededRandom(SEED);
      const sender = new Sender();
      let receiver = await ReceiverProcess.start(config, { env });
      sender.url = receiver.url;
      const lanes = Promise.all(Array.from({ length: 4 }, () => sender.lane()));
      for (let kill = 0; kill < KILLS; kill += 1) {
        const moment = MOMENTS[kill % MOMENTS.length] ?? 'any time';
        const after = Math.floor(random() * 4);
        const killed = Promise.withResolvers<void>();
        let seen = 0;
        let writes = 0;
        proxy.inject((incoming) => {
          if (incoming.method === 'PUT' || incoming.method === 'POST') writes += 1;
          // Where the name of the object is in the body, the kind cannot be told: then any write will do.
          const hit = strikes(moment, incoming) || writes > ENOUGH;
          if (hit && (seen += 1) > after) {
            receiver.signal('SIGKILL');
            killed.resolve();
            return moment.endsWith('before') ? 'cut' : 'lost';
          }
          return random() < 0.1 ? (FAULTS[Math.floor(random() * FAULTS.length)] ?? null) : null;
        });
        await killed.promise;
        await receiver.exited;
        proxy.inject(() => null);
        receiver = await ReceiverProcess.start(config, { env });
        sender.url = receiver.url;
      }
      proxy.inject(() => null);
      sender.stop();
      await lanes;
      const held = async () => (await receiver.status()).journal.cursors[0]?.backlog === 0;
      await until('all to be in the store', held, 30_000);
      expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
      const found = (await recordsIn(store)).map(({ id }) => id);
      expect(sender.acknowledged.length).toBeGreaterThan(KILLS);
      expect(new Set(sender.acknowledged).difference(new Set(found))).toEqual(new Set());
      // Events that were durable when the receiver was killed, and not answered, are the sender's to send again.
      expect(found.length - new Set(found).size).toBe(0);
      await checkChains(store);
      await expectVerified(place, emulator);
    },
    60_000 + KILLS * 10_000,
  );

  // The rest is the same for all of them.
  if (scheme !== 'azblob') return;

  test('without a spool: acknowledged when it is in the store, and all verifies', async () => {
    const { place, config, store, env } = await scene(emulator, 'direct', { spool: 'none' });
    const receiver = await ReceiverProcess.start(config, { env });
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) {
      const { id, body } = madeUpEvent(n);
      await postSigned(receiver.url, body, { id });
      ids.push(id);
    }
    await until('all to be in the store', async () => (await recordsIn(store)).length === 5);
    expect((await recordsIn(store)).map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    await checkChains(store);
    await expectVerified(place, emulator);
  });

  test('what is held is put before its sink is renamed, and before it leaves', async () => {
    const { place, config, store, storage, env } = await scene(emulator, 'reload', {
      rotate: { every: '1h' },
    });
    const receiver = await ReceiverProcess.start(config, { env });
    const post = async (n: number): Promise<void> => {
      const { id, body } = madeUpEvent(n);
      await postSigned(receiver.url, body, { id });
    };
    const reload = async (sinks: object): Promise<void> => {
      writeConfig(dirname(config), { storage, sinks });
      const before = receiver.logLines().filter(({ msg }) => msg === 'reloaded').length;
      receiver.signal('SIGHUP');
      await until(
        'the reload',
        () => receiver.logLines().filter(({ msg }) => msg === 'reloaded').length > before,
      );
    };
    const held = async () => (await receiver.status()).sinks.reduce((sum, sink) => sum + sink.held, 0);
    for (let n = 0; n < 3; n += 1) await post(n);
    await until('three to be held', async () => (await held()) === 3);
    expect(await recordsIn(store)).toEqual([]);
    const renamed = { type: 'files', path: place, rotate: { every: '1h' }, continues: 'archive' };
    await reload({ lake: renamed });
    await until('them to be put', async () => (await recordsIn(store)).length === 3);
    for (let n = 3; n < 6; n += 1) await post(n);
    await until('three more to be held', async () => (await held()) === 3);
    await reload({ out: { type: 'files', path: join(dirname(config), 'folder') } });
    await until('them to be put', async () => (await recordsIn(store)).length === 6);
    const only = async () =>
      (await receiver.status()).journal.cursors.map(({ sink }) => sink).join() === 'out';
    await until('the sink to have left', only);
    expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    await checkChains(store);
  });

  test('a flush puts what is held, and names the objects', async () => {
    const { config, place, store, env } = await scene(emulator, 'flush', { rotate: { every: '1h' } });
    const receiver = await ReceiverProcess.start(config, { env });
    const { id, body } = madeUpEvent(1);
    await postSigned(receiver.url, body, { id });
    const { code, stdout } = await millraceProcess(['flush', '--config', config], { env });
    const [found] = await recordsIn(store);
    expect([code, found?.id]).toEqual([0, id]);
    expect(stdout).toContain(`${place}/${found?.file}`);
    expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  });

  test('an erasure finds what is held, and leaves nothing of it in the spool', async () => {
    const { config, env } = await scene(emulator, 'erase', { rotate: { every: '1h' } });
    const receiver = await ReceiverProcess.start(config, { env });
    const { id, body } = madeUpEvent(1);
    const { user_id: user } = JSON.parse(body.toString()) as { user_id: string };
    await postSigned(receiver.url, body, { id });
    const held = async () => (await receiver.status()).sinks[0]?.held === 1;
    await until('it to be held', held);
    await millraceProcess(['erase', user, '--now', '--config', config], { env });
    expect((await receiver.status()).sinks[0]?.held).toBe(0);
    const left = readdirSync(join(dirname(config), 'spool'), { recursive: true, encoding: 'utf8' });
    expect(left.filter((name) => /\.(part|sent|ndjson)/.test(name))).toEqual([]);
    expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  });
});
