import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { checkChains, recordsIn } from '../sinks/store-support.ts';
import { describeOnStores, type Emulator } from '../support/object-stores/emulators.ts';
import { writtenBy, type Fault } from '../support/object-stores/fault-proxy.ts';
import { seededRandom } from '../support/random.ts';
import type { ReceiverProcess } from '../support/receiver-process.ts';
import { runCount, SEED } from '../support/run-count.ts';
import { until } from '../support/until.ts';
import { expectVerified, scene, Sender } from './store-scene.ts';

/** Kills of one run; 200 and more take minutes. */
const KILLS = runCount({ long: 1 });

/** What a request writes. An upload in parts is begun, has parts, and is ended by what makes the object of them. */
type Kind = 'begin' | 'part' | 'end' | 'object' | 'manifest' | 'other';

/** What the kills are aimed at: before such a request is passed on, or when the store has done it. */
type Moment = `${Exclude<Kind, 'other'>} ${'before' | 'after'}` | 'cursor' | 'any time';

const SMALL = [
  'object before',
  'object after',
  'manifest before',
  'manifest after',
  'cursor',
  'any time',
] as const;
/** The first is that of a short run. */
const IN_PARTS = [
  'end after',
  'part after',
  'cursor',
  'end before',
  'begin after',
  'part before',
  'manifest before',
  'manifest after',
  'any time',
] as const;
/** Writes after which a kill no longer waits for one of its kind: Azure's uploads have no beginning. */
const ENOUGH = 20;
/** Milliseconds after a line of the manifest in which the journal notes how far the sink is. */
const NOTING = 50;
/** What goes wrong besides, with one request in ten. */
const FAULTS: readonly Fault[] = ['429', '500', '503', 'cut', 'lost', 'half'];
/** The same, and nothing comes back until the time-out. */
const SILENT: readonly Fault[] = ['hang', 'mute'];
const TIMEOUT = '10s';
/** Events sent ahead of objects in parts, at most: gigabytes would wait in the end, as a kill costs more time than an event. */
const AHEAD = 100;
/** Milliseconds in which all is to be put that waits when the kills are over: hundreds of files, on a busy machine some ten a second. */
const FLUSHED = 600_000;
const MIB = 2 ** 20;
/** Of 1.5 MiB, in 6 MiB. */
const EVENTS_OF_AN_OBJECT = 4;

interface Scene {
  readonly of: string;
  readonly moments: readonly Moment[];
  readonly eventBytes: number;
  readonly lanes: number;
  readonly sink: object;
  readonly storage: object;
}

const SCENES: readonly Scene[] = [
  {
    of: 'small objects',
    moments: SMALL,
    eventBytes: 0,
    lanes: 4,
    sink: { partitionBy: ['type'], rotate: { bytes: '16KiB', every: '1s' } },
    storage: { timeout: TIMEOUT },
  },
  {
    // The least that S3 takes: an object has two parts.
    of: 'objects in parts',
    moments: IN_PARTS,
    eventBytes: 1.5 * MIB,
    lanes: 2,
    sink: { partitionBy: [], compress: 'none', rotate: { bytes: '6MiB', every: '1h' } },
    storage: { timeout: TIMEOUT, partBytes: '5MiB' },
  },
];

function kindOf(incoming: IncomingMessage, body: Buffer): Kind {
  const { method = '', url = '' } = incoming;
  const query = new URL(url, 'http://localhost').searchParams;
  if (
    method === 'POST' &&
    (query.has('uploads') || (query.get('uploadType') === 'resumable' && !query.has('upload_id')))
  )
    return 'begin';
  if (method === 'PUT' && query.get('comp') === 'block') return 'part';
  if (query.get('comp') === 'blocklist') return 'end';
  if (method === 'PUT' && query.has('partNumber')) return 'part';
  if (method === 'POST' && query.has('uploadId')) return 'end';
  if (method === 'PUT' && query.has('upload_id')) {
    const [, last, total] = /-(\d+)\/(\d+)$/.exec(String(incoming.headers['content-range'])) ?? [];
    return Number(last) + 1 === Number(total) ? 'end' : 'part';
  }
  const written = writtenBy(incoming, body);
  if (written === null) return 'other';
  return written.includes('_manifest/') ? 'manifest' : 'object';
}

/** The kill that is aimed at `moment`, at the earliest when `passed` of its kind have come by. */
class Aim {
  readonly #moment: Moment;
  readonly #kill: () => void;
  readonly #delay: number;
  #passed: number;
  #writes = 0;

  constructor(moment: Moment, random: () => number, kill: () => void) {
    this.#moment = moment;
    this.#kill = kill;
    this.#passed = Math.floor(random() * 3);
    this.#delay = random() * NOTING;
  }

  /** What becomes of the request that is to be killed at; null for any other. */
  hit(kind: Kind): Fault | 'pass' | null {
    if (kind !== 'other') this.#writes += 1;
    const [wanted, at] = this.#moment.split(' ');
    const isOne =
      this.#moment === 'any time' ||
      kind === wanted ||
      (this.#moment === 'cursor' && kind === 'manifest') ||
      this.#writes > ENOUGH;
    if (!isOne || (this.#passed -= 1) >= 0) return null;
    if (this.#moment !== 'cursor') {
      this.#kill();
      return at === 'after' ? 'lost' : 'cut';
    }
    setTimeout(this.#kill, this.#delay);
    this.#passed = Number.POSITIVE_INFINITY;
    return 'pass';
  }
}

function chance(random: () => number): Fault | null {
  if (random() >= 0.1) return null;
  const from = random() < 0.1 ? SILENT : FAULTS;
  return from[Math.floor(random() * from.length)] ?? null;
}

/** Kills again and again; what was acknowledged is in the store once, and all verifies. */
async function killAgainAndAgain(emulator: Emulator, kills: number, number: number): Promise<object> {
  const { moments, eventBytes, lanes, sink, storage }: Scene = SCENES[number]!;
  const { proxy, place, url, store } = await scene(emulator, `kills-${number}`, sink, storage);
  const random = seededRandom(SEED);
  const at = new Map<Kind, number>();
  let ended = 0;
  const isAhead = (): boolean =>
    eventBytes > 0 && sender.acknowledged.length - ended * EVENTS_OF_AN_OBJECT > AHEAD;
  const sender: Sender = new Sender(eventBytes, () => !isAhead());
  const start = async (): Promise<ReceiverProcess> => {
    proxy.inject(() => chance(random));
    const receiver = await place.startProcess();
    sender.url = receiver.url;
    return receiver;
  };
  let receiver = await start();
  const sent = Promise.all(Array.from({ length: lanes }, () => sender.lane()));
  for (let kill = 0; kill < kills; kill += 1) {
    const killed = Promise.withResolvers<void>();
    const aim = new Aim(moments[kill % moments.length]!, random, () => {
      receiver.signal('SIGKILL');
      killed.resolve();
    });
    proxy.inject((incoming, body) => {
      const kind = kindOf(incoming, body);
      if (kind === 'end') ended += 1;
      const hit = aim.hit(kind);
      if (hit !== null) at.set(kind, (at.get(kind) ?? 0) + 1);
      return hit === 'pass' ? null : (hit ?? chance(random));
    });
    await killed.promise;
    await receiver.exited;
    receiver = await start();
  }
  proxy.inject(() => null);
  sender.stop();
  await sent;
  // A file that has just failed is tried again by the next flush.
  await until('all to be flushed', async () => (await place.run('flush')).code === 0, FLUSHED);
  await until(
    'all to be in the store',
    async () => (await receiver.status()).journal.cursors[0]?.backlog === 0,
    FLUSHED,
  );
  await receiver.stop();
  const found = (await recordsIn(store)).map(({ id }) => id);
  expect(sender.acknowledged.length).toBeGreaterThan(kills);
  await checkChains(store);
  await expectVerified(url, emulator);
  return {
    kills,
    at: Object.fromEntries(at),
    faults: Object.fromEntries(proxy.injected),
    acknowledged: sender.acknowledged.length,
    // Events that were durable when the receiver was killed, and not answered, are the sender's to send again.
    twice: found.length - new Set(found).size,
    lost: [...new Set(sender.acknowledged).difference(new Set(found))],
  };
}

describeOnStores(' under kills', (emulator, scheme) => {
  for (const [number, { of }] of SCENES.entries()) {
    test(
      `fault 46: ${KILLS} kills around each step of ${of}, and a bad line: what was acknowledged is there once, and all verifies`,
      async () => {
        const counts = await killAgainAndAgain(emulator, KILLS, number);
        expect(counts).toMatchObject({ twice: 0, lost: [] });
        console.info(JSON.stringify({ store: scheme, of, seed: SEED, ...counts }));
      },
      600_000 + KILLS * 60_000,
    );
  }
});
