import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Bench, BenchContext, BenchResult, Target } from '../bench.ts';
import { Load, ReceiverProcess } from '../ingest/children.ts';
import { newSecret } from '../ingest/requests.ts';
import { median, round } from '../report.ts';
import { attack } from './attack.ts';
import { type Kind, makeKinds, PLAIN, PLAIN_ALONE } from './kinds.ts';

const HELP = `Flags:
  --rounds N    rounds, each with every kind once (default 5)
  --requests N  hostile requests of a kind in a round (default 1000)
  --rate N      genuine deliveries a second, and hostile requests a second beside them (default 500)
`;

const MOST_CPU = 3;
const MOST_P99 = 50;
const CONNECTIONS = 64;
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
  const all: Measured[] = makeKinds().map((kind) => ({ kind, cpu: [], ratios: [], p99: [], statuses: {} }));

  // Until code is compiled; counts for nothing.
  await load.make(5000, secret);
  await load.run({ op: 'flood', port, connections: CONNECTIONS });
  for (const { kind } of all) await attack(kind, { port, from: '127.2.0.1', count: requests, rate: null });

  const alone: number[] = [];
  const beside = async (kind: Kind | null): Promise<number> => {
    await load.make(Math.ceil(requests * 1.1), secret);
    // From the same address as the genuine ones: neither may be in the other's way.
    const [{ p99 }] = await Promise.all([
      load.run({ op: 'pace', port, connections: CONNECTIONS, rate }),
      kind === null ? null : attack(kind, { port, from: '127.0.0.1', count: requests, rate }),
    ]);
    return p99;
  };
  let address = 0;
  /** CPU milliseconds. From an address that has done nothing yet: what it may do before it is stopped is part of it. */
  const costOf = async ({ kind, statuses }: Measured): Promise<number> => {
    address += 1;
    await receiver.untilDelivered();
    await wait(200);
    const before = receiver.cpuSeconds();
    const from = `127.3.${address >> 8}.${address & 255}`;
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
    for (const { kind, cpu, ratios } of all) {
      const name = kind.keepsAlive || kind.requests === null ? PLAIN : PLAIN_ALONE;
      const plain = all.find((one) => one.kind.name === name)?.cpu.at(-1) ?? Number.NaN;
      ratios.push((cpu.at(-1) ?? 0) / plain);
    }
    for (const { kind, p99 } of all) {
      signal.throwIfAborted();
      p99.push(await beside(kind));
    }
    note(`round ${at}: ${all.map(({ cpu }) => round(cpu.at(-1) ?? 0)).join(' ')} ms of CPU`);
  }
  return resultOf(all, alone, requests);
}

function isPlain({ kind }: Measured): boolean {
  return kind.name === PLAIN || kind.name === PLAIN_ALONE;
}

function resultOf(all: readonly Measured[], alone: readonly number[], requests: number): BenchResult {
  const targets: Target[] = [];
  for (const measured of all) {
    const { kind, ratios, p99, statuses } = measured;
    const wrong = Object.keys(statuses).filter((status) => status.startsWith('2'));
    if (wrong.length > 0) throw new Error(`${kind.name} was answered ${JSON.stringify(statuses)}`);
    const delayed = median(p99);
    if (!isPlain(measured) && kind.isCheap) {
      targets.push({
        name: `CPU, ${kind.name}`,
        wanted: `≤ ${MOST_CPU} × plain 401s`,
        measured: `${spread(ratios, 2)} ×`,
        met: median(ratios) <= MOST_CPU,
      });
    }
    targets.push({
      name: `p99 of genuine ones beside ${kind.name}`,
      wanted: `< ${MOST_P99} ms`,
      measured: `${spread(p99, 1)} ms`,
      met: delayed < MOST_P99,
    });
  }
  return {
    figures: {
      requests,
      p99_alone_ms: round(median(alone), 1),
      kinds: all.map(({ kind, cpu, ratios, p99, statuses }) => ({
        kind: kind.name,
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
      ...all.map(({ kind, cpu, statuses }): [string, string] => [
        kind.name,
        `${spread(cpu, 0)} ms of CPU for ${requests}; ${JSON.stringify(statuses).replaceAll('"', '')}`,
      ]),
    ],
    targets,
  };
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
