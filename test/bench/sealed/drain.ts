import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { KeyStore } from '../../../src/seal/key-store.ts';
import { Load, ReceiverProcess } from '../ingest/children.ts';
import { MemoryWatch } from '../ingest/memory.ts';
import { newSecret } from '../ingest/requests.ts';

export const SINK = 'archive';
const MASTER_KEY = Buffer.alloc(32, 7);
const KEYS = 'keys';
const CONNECTIONS = 32;

/** How much of the journal is delivered before the clock starts: by then code is compiled and threads have started. */
const WARM_UP = 0.2;

export interface Drained {
  readonly perSecond: number;
  /** CPU time of an event, microseconds: of the thread that receives, and of all of them. */
  readonly mainUs: number;
  readonly allUs: number;
  readonly memory: ReturnType<MemoryWatch['figures']>;
}

export interface DrainOrder {
  /** A journal in which all events wait for the sink; null for an empty one. */
  readonly journal: string | null;
  readonly events: number;
  readonly sealed: boolean;
  /** The program; this tree's when left out. */
  readonly main: string | undefined;
  /** Made for this run, and removed. */
  readonly folder: string;
  readonly profile: string | null;
}

/** A receiver started on a full journal, until the sink has all of it. @throws Error when an event is not in the archive once */
export async function drain(order: DrainOrder): Promise<Drained> {
  const { events } = order;
  return await withReceiver(order, newSecret(), async (receiver) => {
    const counted = await receiver.untilWaiting(events * (1 - WARM_UP));
    const memory = new MemoryWatch(() => receiver.memory());
    memory.start();
    const before = { at: performance.now(), main: receiver.mainThreadSeconds(), all: receiver.cpuSeconds() };
    await receiver.untilDelivered().finally(() => memory.pause());
    const drained: Drained = {
      perSecond: (counted * 1000) / (performance.now() - before.at),
      mainUs: ((receiver.mainThreadSeconds() - before.main) / counted) * 1e6,
      allUs: ((receiver.cpuSeconds() - before.all) / counted) * 1e6,
      memory: memory.figures(),
    };
    const opener = order.sealed ? await KeyStore.read(join(order.folder, KEYS), MASTER_KEY) : undefined;
    const { records, ids } = await receiver.settle(opener);
    if (records !== events || ids !== events)
      throw new Error(`${records} records with ${ids} ids are in the archive, of ${events} events`);
    return drained;
  });
}

/** p99 of deliveries at an even rate, milliseconds, while it drains. @throws Error when the journal was drained before the last of them */
export async function latency(order: DrainOrder, perSecond: number, seconds: number): Promise<number> {
  const secret = newSecret();
  const load = new Load();
  try {
    return await withReceiver(order, secret, async (receiver) => {
      const to = { port: receiver.port, connections: CONNECTIONS };
      const posts = { op: 'pace', ...to, rate: perSecond } as const;
      // Until its code is compiled.
      await load.make(perSecond, secret);
      await load.run({ op: 'flood', ...to });
      await load.make(perSecond * seconds, secret);
      const { p99 } = await load.run(posts);
      // Asked once and afterwards: the answer takes the threads that deliveries wait for. What the posts leave waiting is less.
      if (order.journal !== null && (await receiver.untilWaiting(Infinity)) <= perSecond / 2)
        throw new Error('drained before the last POST: give more --events or fewer --seconds');
      return p99;
    });
  } finally {
    await load.stop();
  }
}

async function withReceiver<T>(
  { journal, sealed, main, folder, profile }: DrainOrder,
  secret: string,
  work: (receiver: ReceiverProcess) => Promise<T>,
): Promise<T> {
  mkdirSync(join(folder, 'journal'), { recursive: true, mode: 0o700 });
  if (journal !== null) cpSync(journal, join(folder, 'journal'), { recursive: true });
  const encrypt = { store: join(folder, KEYS), masterKey: MASTER_KEY.toString('base64') };
  const receiver = await ReceiverProcess.start({
    folder,
    secret,
    profile,
    sink: sealed ? { encrypt } : {},
    ...(main === undefined ? {} : { main }),
  });
  try {
    return await work(receiver);
  } finally {
    await receiver.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}
