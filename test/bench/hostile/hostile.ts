import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { newDeliveryId } from '../../../src/sandbox/made-up-events.ts';
import { signStandardWebhooks } from '../../../src/verify/sign-standard-webhooks.ts';
import type { Bench, BenchContext, BenchResult, Target } from '../bench.ts';
import { Load, ReceiverProcess } from '../ingest/children.ts';
import { mealBody, newSecret } from '../ingest/requests.ts';
import { median, round } from '../report.ts';
import { PATH } from '../rivals/announce.ts';
import { attack } from './attack.ts';
import { type Kind, makeKinds, PLAIN, PLAIN_ALONE } from './kinds.ts';

const HELP = `Flags:
  --rounds N    rounds, each with every kind once (default 5)
  --requests N  hostile requests of a kind in a round (default 1000)
  --rate N      genuine deliveries a second, and hostile requests a second beside them (default 500)
`;

/** From one address, and from an address for each request. */
const MOST_CPU = 3;
const MOST_CPU_SPREAD = 5;
const MOST_P99 = 50;
const CONNECTIONS = 64;
/** Genuine deliveries that are compressed: their size, and the pause after each, milliseconds. */
const LARGE_BYTES = 200_000;
const LARGE_EVERY = 20;
/** So few that 1,000 idle connections are more than there is room for. */
const MAX_CONNECTIONS = 800;

/** What a forged request costs the receiver, beside one without a signature, and what it costs genuine senders. */
export const hostile: Bench = {
  summary: 'CPU of hostile requests beside plain 401s, and p99 of genuine deliveries beside them',
  help: HELP,
  run: async (argv, context) => {
    const options = parseOptions(argv);
    const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
    const cleanups = [(): Promise<void> => Promise.resolve(rmSync(folder, { recursive: true, force: true }))];
    try {
      return await measure(options, context, folder, cleanups);
    } finally {
      for (const cleanup of cleanups.toReversed()) await cleanup();
    }
  },
};

interface Options {
  readonly rounds: number;
  readonly requests: number;
  readonly rate: number;
}

/** What one kind has cost, by round. */
interface Measured {
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

async function measure(
  { rounds, requests, rate }: Options,
  { note, signal }: BenchContext,
  folder: string,
  cleanups: (() => Promise<void>)[],
): Promise<BenchResult> {
  const secret = newSecret();
  const receiver = await ReceiverProcess.start({
    folder,
    secret,
    otherSecrets: [publicKey()],
    maxConnections: MAX_CONNECTIONS,
    profile: null,
  });
  cleanups.push(() => receiver.kill());
  const load = new Load();
  cleanups.push(() => load.stop());
  const { port } = receiver;
  const kinds = makeKinds();
  const all: Measured[] = [false, true].flatMap((isSpread) =>
    kinds
      // Those that keep their connection from one address only, and idle ones cost the same from anywhere.
      .filter(({ name, requests: made }) => !isSpread || (name !== PLAIN && made !== null))
      .map((kind) => ({ kind, isSpread, cpu: [], ratios: [], p99: [], statuses: {} })),
  );

  // Until code is compiled; counts for nothing.
  await load.make(5000, secret);
  await load.run({ op: 'flood', port, connections: CONNECTIONS });
  for (const kind of kinds)
    await attack(kind, { port, from: () => '127.2.0.1', count: requests, rate: null });

  const alone: number[] = [];
  const large: Record<string, number> = {};
  const beside = async (measured: Measured | null): Promise<number> => {
    await load.make(Math.ceil(requests * 1.1), secret);
    // From the same address as the genuine ones: neither may be in the other's way.
    const from = measured?.isSpread === true ? newAddress : () => '127.0.0.1';
    const over = new AbortController();
    const compressed = deliverLarge(receiver.port, secret, over.signal, large);
    const [{ p99 }] = await Promise.all([
      load.run({ op: 'pace', port, connections: CONNECTIONS, rate }),
      measured === null ? null : attack(measured.kind, { port, from, count: requests, rate }),
    ]);
    over.abort();
    await compressed;
    return p99;
  };
  let address = 0;
  const newAddress = (): string => {
    address += 1;
    return `127.${3 + (address >> 16)}.${(address >> 8) & 255}.${address & 255}`;
  };
  /** CPU milliseconds. From addresses that have done nothing yet: what they may do before they are stopped is part of it. */
  const costOf = async ({ kind, isSpread, statuses }: Measured): Promise<number> => {
    await receiver.untilDelivered();
    // What all strangers together may do is whole again then.
    await wait(10_000);
    const own = newAddress();
    const before = receiver.cpuSeconds();
    const from = isSpread ? newAddress : () => own;
    const answers = await attack(kind, { port, from, count: requests, rate: null });
    await wait(100);
    for (const [status, times] of Object.entries(answers)) statuses[status] = (statuses[status] ?? 0) + times;
    return (receiver.cpuSeconds() - before) * 1000;
  };

  for (let at = 1; at <= rounds; at += 1) {
    alone.push(await beside(null));
    // The plain ones before and after the others, whose ratios are to the mean of the two.
    const before = new Map<Measured, number>();
    for (const measured of all.filter(isPlain)) before.set(measured, await costOf(measured));
    for (const measured of all.filter((one) => !isPlain(one))) {
      signal.throwIfAborted();
      measured.cpu.push(await costOf(measured));
    }
    for (const [measured, first] of before) measured.cpu.push((first + (await costOf(measured))) / 2);
    for (const { kind, isSpread, cpu, ratios } of all) {
      const name = !isSpread && (kind.keepsAlive || kind.requests === null) ? PLAIN : PLAIN_ALONE;
      const plain =
        all.find((one) => one.kind.name === name && one.isSpread === isSpread)?.cpu.at(-1) ?? Number.NaN;
      ratios.push((cpu.at(-1) ?? 0) / plain);
    }
    for (const measured of all) {
      signal.throwIfAborted();
      measured.p99.push(await beside(measured));
    }
    note(`round ${at}: ${all.map(({ cpu }) => round(cpu.at(-1) ?? 0)).join(' ')} ms of CPU`);
  }
  return resultOf(all, alone, large, requests);
}

function isPlain({ kind }: Measured): boolean {
  return kind.name === PLAIN || kind.name === PLAIN_ALONE;
}

/** Sends genuine deliveries that are costly, one after the other, from the address of the others. @param statuses counts answers */
async function deliverLarge(
  port: number,
  secret: string,
  signal: AbortSignal,
  statuses: Record<string, number>,
): Promise<void> {
  const body = mealBody(0, LARGE_BYTES);
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
  const sent = gzipSync(body);
  while (!signal.aborted) {
    const signed = signStandardWebhooks(secret, newDeliveryId(), Date.now(), body);
    const options = { method: 'POST', headers: { ...headers, ...signed }, body: sent };
    const response = await fetch(`http://127.0.0.1:${port}${PATH}`, options);
    await response.arrayBuffer();
    statuses[response.status] = (statuses[response.status] ?? 0) + 1;
    await wait(LARGE_EVERY);
  }
}

function resultOf(
  all: readonly Measured[],
  alone: readonly number[],
  large: Readonly<Record<string, number>>,
  requests: number,
): BenchResult {
  const refused = Object.entries(large).reduce(
    (sum, [status, times]) => sum + (status === '202' ? 0 : times),
    0,
  );
  const targets: Target[] = [
    {
      name: 'genuine compressed deliveries beside all of them',
      wanted: 'none refused',
      measured: JSON.stringify(large).replaceAll('"', ''),
      met: refused === 0,
    },
  ];
  for (const measured of all) {
    const { kind, isSpread, ratios, p99, statuses } = measured;
    const name = nameOf(measured);
    const most = isSpread ? MOST_CPU_SPREAD : MOST_CPU;
    const wrong = Object.keys(statuses).filter((status) => status.startsWith('2'));
    if (wrong.length > 0) throw new Error(`${name} was answered ${JSON.stringify(statuses)}`);
    const delayed = median(p99);
    if (!isPlain(measured) && kind.isCheap) {
      targets.push({
        name: `CPU, ${name}`,
        wanted: `≤ ${most} × plain 401s`,
        measured: `${spread(ratios, 2)} ×`,
        met: median(ratios) <= most,
      });
    }
    targets.push({
      name: `p99 of genuine ones beside ${name}`,
      wanted: `< ${MOST_P99} ms`,
      measured: `${spread(p99, 1)} ms`,
      met: delayed < MOST_P99,
    });
  }
  return {
    figures: {
      requests,
      p99_alone_ms: round(median(alone), 1),
      genuine_compressed: large,
      kinds: all.map(({ kind, isSpread, cpu, ratios, p99, statuses }) => ({
        kind: kind.name,
        an_address_each: isSpread,
        cpu_ms: round(median(cpu), 1),
        ratio: round(median(ratios), 2),
        ratio_range: [round(Math.min(...ratios), 2), round(Math.max(...ratios), 2)],
        p99_ms: round(median(p99), 1),
        p99_range_ms: [round(Math.min(...p99), 1), round(Math.max(...p99), 1)],
        statuses,
      })),
    },
    rows: [
      ['p99 of genuine ones alone', `${spread(alone, 1)} ms`],
      ...all.map((measured): [string, string] => [
        nameOf(measured),
        `${spread(measured.cpu, 0)} ms of CPU for ${requests}; ${JSON.stringify(measured.statuses).replaceAll('"', '')}`,
      ]),
    ],
    targets,
  };
}

function nameOf({ kind, isSpread }: Measured): string {
  return isSpread ? `${kind.name}, an address each` : kind.name;
}

/** The median with the range, over rounds. */
function spread(values: readonly number[], digits: number): string {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return `${round(median(values), digits)} (${round(low, digits)} to ${round(high, digits)})`;
}

/** So that the receiver has something to try v1a signatures with. */
function publicKey(): string {
  const { x = '' } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
  return `whpk_${Buffer.from(x, 'base64url').toString('base64')}`;
}

function parseOptions(argv: readonly string[]): Options {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({ args: [...argv], options: { rounds: text, requests: text, rate: text } });
  const number = (name: 'rounds' | 'requests' | 'rate', otherwise: number): number => {
    const value = Number(values[name] ?? otherwise);
    if (Number.isSafeInteger(value) && value > 0) return value;
    throw new TypeError(`--${name} must be a whole number above 0`);
  };
  return { rounds: number('rounds', 5), requests: number('requests', 1000), rate: number('rate', 500) };
}
