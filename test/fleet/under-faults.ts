import { mkdirSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { temporaryFolder } from '../support/folders.ts';
import { describeOnKafka, type KafkaCluster } from '../support/kafka/cluster.ts';
import { seededRandom } from '../support/random.ts';
import { SEED } from '../support/run-count.ts';
import { until } from '../support/until.ts';
import { Faults } from './faults.ts';
import { Fleet } from './fleet.ts';
import { makeMutant } from '../support/mutant.ts';
import { MUTANTS } from './mutants.ts';

/** A folder where histories and logs are kept; without it they are gone with their test. */
const KEPT = process.env['MILLRACE_TEST_KEEP'] ?? null;
const USERS = 24;
/** Milliseconds without a delivery after which none comes any more: what is missing by then is lost. */
const QUIET = 60_000;
/** A busy machine may give what is left out no chance to show. */
const TRIES = 6;

const historyFolder = async (): Promise<string> => {
  if (KEPT === null) return temporaryFolder();
  mkdirSync(KEPT, { recursive: true });
  return mkdtempSync(join(KEPT, 'history-'));
};
/** How the fleet of a test is made. */
export interface SceneOptions {
  readonly main?: string;
  /** Milliseconds that the sinks take for a batch. */
  readonly ms?: number;
  readonly partitions?: number;
  readonly session?: string;
  /** A sink that hangs while a file is there, by its name in the fleet's folder. */
  readonly stalls?: string;
  readonly only?: string;
}

/** A fleet of two receivers and three deliverers, and what may be done to it. */
export interface Scene {
  readonly cluster: KafkaCluster;
  readonly fleet: Fleet;
  readonly faults: Faults;
}

export type Work = (scene: Scene) => Promise<void>;

/** Tests with three brokers behind proxies. Faults take seconds each: sessions run out, brokers start. */
export function describeUnderFaults(
  title: string,
  body: (makeScene: MakeScene, cluster: KafkaCluster) => void,
): void {
  const proxies: CuttingProxy[] = [];
  const advertised = async (port: number): Promise<number> => {
    const started = await CuttingProxy.start(port);
    proxies.push(started.proxy);
    return started.port;
  };
  describeOnKafka(title, { brokers: 3, advertised }, (cluster) =>
    body((options) => makeScene(cluster, proxies, options), cluster),
  );
}

export type MakeScene = (options?: SceneOptions) => Promise<Scene>;

async function makeScene(
  cluster: KafkaCluster,
  proxies: readonly CuttingProxy[],
  { main, ms = 20, partitions = 6, session = '3s', stalls, only }: SceneOptions = {},
): Promise<Scene> {
  const folder = await historyFolder();
  const sink = { ms, batch: 5, ...(stalls === undefined ? {} : { stalls: join(folder, stalls), only }) };
  const fleet = await Fleet.make(cluster, { folder, partitions, replicas: 3, sink, session });
  const random = seededRandom(SEED);
  const faults = new Faults(fleet, cluster, { proxies, random, ...(main === undefined ? {} : { main }) });
  for (const name of ['r1', 'r2', 'd1', 'd2', 'd3']) await faults.start(name);
  return { cluster, fleet, faults };
}

/** Sends until the work is over, and waits for it all. @param pause milliseconds between two events of a user */
export async function underLoad(
  { fleet, faults }: Scene,
  work: () => Promise<unknown>,
  pause = 60,
): Promise<void> {
  const over = new AbortController();
  const users = Array.from({ length: USERS }, async (_, n) => {
    for (let at = 0; !over.signal.aborted; at += 1) {
      await fleet.send(`user-${n}`, () => faults.urls, at % 3 === 0 ? 1 : 0);
      await wait(pause);
    }
  });
  try {
    await until('the load to begin', () => fleet.acknowledged > USERS);
    await work();
  } finally {
    over.abort();
    await Promise.all(users);
  }
}

async function deliveredOrLost(fleet: Fleet): Promise<void> {
  const count = (): number => fleet.sinks.reduce((sum, sink) => sum + fleet.given(sink).length, 0);
  for (let [given, since] = [count(), performance.now()]; !fleet.isDelivered; await wait(200)) {
    const now = count();
    if (now > given) [given, since] = [now, performance.now()];
    else if (performance.now() - since > QUIET) return;
  }
}

/** What the judge says once all is delivered: whether all is there, once, in order, but for what a fault explains. */
export async function verdictOn({ fleet }: Scene): Promise<ReturnType<Fleet['judge']>> {
  await deliveredOrLost(fleet);
  return fleet.judge();
}

/** The same of the program with one thing left out. @returns whether the judge notices, and says `reason` */
export async function verdictWithout(
  makeOne: MakeScene,
  name: keyof typeof MUTANTS,
  reason: string,
  work: Work,
  options: SceneOptions = {},
): Promise<{ readonly isNoticed: boolean; readonly text: string }> {
  const { main, remove } = makeMutant(name, MUTANTS[name]);
  onTestFinished(remove);
  const scene = await makeOne({ ...options, main });
  for (let tried = 1; ; tried += 1) {
    await work(scene);
    const { text } = await verdictOn(scene);
    const isNoticed = text.includes(reason);
    if (isNoticed || tried === TRIES) return { isNoticed, text };
  }
}
