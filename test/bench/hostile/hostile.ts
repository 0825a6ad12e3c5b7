import { generateKeyPairSync } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { newDeliveryId } from '../../../src/sandbox/made-up-events.ts';
import { signStandardWebhooks } from '../../../src/receive/verify/sign-standard-webhooks.ts';
import { SECRET } from '../../support/signed-events.ts';
import { bench, type BenchContext, ROUNDS } from '../bench.ts';
import { type Figure, round } from '../figures.ts';
import { Load, ReceiverProcess } from '../ingest/children.ts';
import { mealBody } from '../ingest/requests.ts';
import { cpuSecondsOf } from '../processes.ts';
import { attack } from './attack.ts';
import { type Kind, makeKinds, PLAIN, PLAIN_ALONE } from './kinds.ts';

const CONNECTIONS = 64;
/** Genuine deliveries that are compressed: their size, and the pause after each, milliseconds. */
const LARGE_BYTES = 200_000;
const LARGE_EVERY = 20;
/** So few that 1,000 idle connections are more than there is room for. */
const MAX_CONNECTIONS = 800;
/** What all strangers together may do is whole again then. */
const PAUSE = 10_000;

/** What a forged request costs the receiver, beside one without a signature, and what it costs genuine senders. */
export const hostile = bench(
  'CPU of hostile requests beside plain 401s, and p99 of genuine deliveries beside them',
  {
    rounds: ROUNDS,
    requests: [1000, 'hostile requests of a kind in a round'],
    rate: [500, 'genuine deliveries a second, and hostile requests a second beside them'],
  },
  async ({ rounds, requests, rate }, context) => {
    const receiver = await ReceiverProcess.start(context.folder, {
      config: { server: { maxConnections: MAX_CONNECTIONS }, signing: { secrets: [SECRET, publicKey()] } },
    });
    context.atEnd(() => receiver.kill('SIGKILL'));
    const arena = new Arena(receiver, new Load(context), requests, rate);
    await arena.warmUp();
    for (let at = 1; at <= rounds; at += 1) await arena.round(context, at);
    return arena.figures();
  },
);

/** What one kind has cost, by round. */
interface Measured {
  readonly name: string;
  readonly kind: Kind;
  /** Whether each request has an address, and so a connection, of its own. */
  readonly isSpread: boolean;
  /** CPU milliseconds of the receiver for all requests of a round, all its threads together. */
  readonly cpu: number[];
  /** The same against plain ones of that round. */
  readonly ratios: number[];
  /** p99 of genuine deliveries beside, milliseconds. */
  readonly p99: number[];
  readonly statuses: Record<string, number>;
}

class Arena {
  readonly #receiver: ReceiverProcess;
  readonly #load: Load;
  readonly #requests: number;
  readonly #rate: number;
  readonly #kinds = makeKinds();
  readonly #all: readonly Measured[];
  /** p99 of genuine deliveries alone, milliseconds. */
  readonly #alone: number[] = [];
  /** Answers to genuine deliveries that are compressed, by status. */
  readonly #large: Record<string, number> = {};
  #address = 0;

  constructor(receiver: ReceiverProcess, load: Load, requests: number, rate: number) {
    this.#receiver = receiver;
    this.#load = load;
    this.#requests = requests;
    this.#rate = rate;
    this.#all = [false, true].flatMap((isSpread) =>
      this.#kinds
        // Those that keep their connection from one address only, and idle ones cost the same from anywhere.
        .filter(({ name, requests: made }) => !isSpread || (name !== PLAIN && made !== null))
        .map((kind) => {
          const name = isSpread ? `${kind.name}, an address each` : kind.name;
          return { name, kind, isSpread, cpu: [], ratios: [], p99: [], statuses: {} };
        }),
    );
  }

  /** Until code is compiled; counts for nothing. */
  async warmUp(): Promise<void> {
    const { port } = this.#receiver;
    await this.#load.make(5000);
    await this.#load.run({ op: 'flood', port, connections: CONNECTIONS });
    for (const kind of this.#kinds)
      await attack(kind, { port, from: () => '127.2.0.1', count: this.#requests, rate: null });
  }

  async round({ note, signal }: BenchContext, at: number): Promise<void> {
    this.#alone.push(await this.#beside(null));
    // The plain ones before and after the others, whose ratios are to the mean of the two.
    const before = new Map<Measured, number>();
    for (const measured of this.#all.filter(isPlain)) before.set(measured, await this.#cost(measured));
    for (const measured of this.#all.filter((one) => !isPlain(one))) {
      signal.throwIfAborted();
      measured.cpu.push(await this.#cost(measured));
    }
    for (const [measured, first] of before) measured.cpu.push((first + (await this.#cost(measured))) / 2);
    for (const { kind, isSpread, cpu, ratios } of this.#all) {
      const name = !isSpread && (kind.keepsAlive || kind.requests === null) ? PLAIN : PLAIN_ALONE;
      const plain = this.#all.find((one) => one.kind.name === name && one.isSpread === isSpread);
      ratios.push((cpu.at(-1) ?? 0) / (plain?.cpu.at(-1) ?? Number.NaN));
    }
    for (const measured of this.#all) {
      signal.throwIfAborted();
      measured.p99.push(await this.#beside(measured));
    }
    note(`round ${at}: ${this.#all.map(({ cpu }) => round(cpu.at(-1) ?? 0)).join(' ')} ms of CPU`);
  }

  figures(): Figure[] {
    const refused = Object.entries(this.#large).reduce(
      (sum, [status, times]) => sum + (status === '202' ? 0 : times),
      0,
    );
    return [
      { name: 'genuine compressed deliveries that are refused', values: [refused], wanted: '= 0' },
      { name: 'p99 of genuine ones alone', values: this.#alone, unit: ' ms', digits: 1 },
      ...this.#all.flatMap((measured) => this.#figuresOf(measured)),
    ];
  }

  #figuresOf(measured: Measured): Figure[] {
    const { name, kind, isSpread, cpu, ratios, p99, statuses } = measured;
    const answers = JSON.stringify(statuses).replaceAll('"', '');
    if (Object.keys(statuses).some((status) => status.startsWith('2')))
      throw new Error(`${name} was answered ${answers}`);
    const figures: Figure[] = [
      { name: `CPU of ${this.#requests}, ${name}: ${answers}`, values: cpu, unit: ' ms', digits: 0 },
      { name: `p99 of genuine ones beside ${name}`, values: p99, unit: ' ms', digits: 1, wanted: '< 50' },
    ];
    if (isPlain(measured)) return figures;
    const wanted = kind.isCheap ? (isSpread ? '≤ 5' : '≤ 3') : undefined;
    return [...figures, { name: `CPU, ${name}, times plain 401s`, values: ratios, wanted }];
  }

  /** @returns p99 of genuine deliveries beside so many hostile requests, milliseconds */
  async #beside(measured: Measured | null): Promise<number> {
    const { port, url } = this.#receiver;
    const [count, rate] = [this.#requests, this.#rate];
    await this.#load.make(Math.ceil(count * 1.1));
    // From the same address as the genuine ones: neither may be in the other's way.
    const from = measured?.isSpread === true ? () => this.#newAddress() : () => '127.0.0.1';
    const over = new AbortController();
    const compressed = deliverLarge(url, over.signal, this.#large);
    const [{ p99 }] = await Promise.all([
      this.#load.run({ op: 'pace', port, connections: CONNECTIONS, rate }),
      measured === null ? null : attack(measured.kind, { port, from, count, rate }),
    ]);
    over.abort();
    await compressed;
    return p99;
  }

  /** From addresses that have done nothing yet: what they may do before they are stopped is part of it. @returns CPU milliseconds */
  async #cost({ kind, isSpread, statuses }: Measured): Promise<number> {
    const { pid, port } = this.#receiver;
    await this.#receiver.untilDelivered();
    await wait(PAUSE);
    const own = this.#newAddress();
    const before = cpuSecondsOf(pid);
    const from = isSpread ? () => this.#newAddress() : () => own;
    const answers = await attack(kind, { port, from, count: this.#requests, rate: null });
    await wait(100);
    for (const [status, times] of Object.entries(answers)) statuses[status] = (statuses[status] ?? 0) + times;
    return (cpuSecondsOf(pid) - before) * 1000;
  }

  #newAddress(): string {
    this.#address += 1;
    const address = this.#address;
    return `127.${3 + (address >> 16)}.${(address >> 8) & 255}.${address & 255}`;
  }
}

function isPlain({ kind }: Measured): boolean {
  return kind.name === PLAIN || kind.name === PLAIN_ALONE;
}

/** Sends genuine deliveries that are costly, one after the other, from the address of the others. @param statuses counts answers */
async function deliverLarge(
  url: string,
  signal: AbortSignal,
  statuses: Record<string, number>,
): Promise<void> {
  const body = mealBody(0, LARGE_BYTES);
  const sent = gzipSync(body);
  while (!signal.aborted) {
    const signed = signStandardWebhooks(SECRET, newDeliveryId(), Date.now(), body);
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip', ...signed };
    const response = await fetch(url, { method: 'POST', headers, body: sent });
    await response.arrayBuffer();
    statuses[response.status] = (statuses[response.status] ?? 0) + 1;
    await wait(LARGE_EVERY);
  }
}

/** So that the receiver has something to try v1a signatures with. */
function publicKey(): string {
  const { x = '' } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
  return `whpk_${Buffer.from(x, 'base64url').toString('base64')}`;
}
