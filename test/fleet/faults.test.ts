import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { newMasterKey } from '../../src/seal/master-key.ts';
import { temporaryFolder } from '../support/folders.ts';
import { describeOnKafka, type KafkaCluster } from '../support/kafka/cluster.ts';
import { seededRandom } from '../support/random.ts';
import { until } from '../support/until.ts';
import { Faults } from './faults.ts';
import { Fleet } from './fleet.ts';
import { makeMutant, type MUTANTS } from './mutants.ts';

const FAULTS = Number(process.env['MILLRACE_FLEET_FAULTS'] ?? 12);
const SEED = Number(process.env['MILLRACE_FLEET_SEED'] ?? 1);
/** A folder where histories and logs are kept; without it they are gone with their test. */
const KEPT = process.env['MILLRACE_FLEET_KEEP'] ?? null;
/** With `1` what lies in the topics is sealed. */
const SEALED = process.env['MILLRACE_FLEET_SEALED'] === '1';
const USERS = 24;

const historyFolder = async (): Promise<string> => {
  if (KEPT === null) return temporaryFolder();
  mkdirSync(KEPT, { recursive: true });
  return mkdtempSync(join(KEPT, 'history-'));
};
const proxies: CuttingProxy[] = [];
const advertised = async (port: number): Promise<number> => {
  const started = await CuttingProxy.start(port);
  proxies.push(started.proxy);
  return started.port;
};

/** Sends until the work is over, and waits for it all. */
const underLoad = async (
  fleet: Fleet,
  faults: Faults,
  work: () => Promise<void>,
  pause = 60,
): Promise<void> => {
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
};

const deliver = (fleet: Fleet): Promise<unknown> =>
  until('all to be delivered', async () => fleet.isDelivered || wait(200).then(() => false), 90_000);

// With much waiting in memory, which others have when it comes back.
const pauseDeliverers = (fleet: Fleet, faults: Faults): Promise<void> =>
  underLoad(
    fleet,
    faults,
    async () => {
      await wait(3000);
      for (let n = 0; n < 2; n += 1) await faults.pause('d', 8000);
    },
    3,
  );

// Much lies in the deliverers' memory when nothing can be committed any more; others then have what was not.
const pauseAllBrokers = async (fleet: Fleet, faults: Faults): Promise<void> => {
  // Partitions must not change hands any more.
  await underLoad(fleet, faults, () => wait(2000));
  await deliver(fleet);
  const stalls = join(fleet.folder, 'stalls');
  writeFileSync(stalls, '');
  await underLoad(fleet, faults, () => wait(10_000), 3);
  await until('the other sink to have all', () => fleet.isDeliveredTo('two'));
  await faults.pauseAllBrokers(25_000, () => rmSync(stalls));
  // What comes again comes before this.
  await underLoad(fleet, faults, () => wait(500));
};

/** A sink that hangs while a file is there, by its name in the fleet's folder. */
interface Held {
  readonly stalls?: string;
  readonly only?: string;
}

// Faults take seconds each: sessions run out, brokers start.
describeOnKafka(
  'a fleet under faults',
  { longRun: true, brokers: 3, advertised },
  (cluster: KafkaCluster) => {
    const { addresses, oracle } = cluster;

    const makeFleet = async (
      main?: string,
      ms = 20,
      partitions = 6,
      session = '3s',
      { stalls, only }: Held = {},
    ): Promise<{ fleet: Fleet; faults: Faults }> => {
      const folder = await historyFolder();
      const sink = { ms, batch: 5, ...(stalls === undefined ? {} : { stalls: join(folder, stalls), only }) };
      const encrypt = { store: join(folder, 'keys'), masterKey: newMasterKey() };
      const journal = SEALED ? { encrypt } : {};
      const fleet = new Fleet({ folder, addresses, oracle, partitions, replicas: 3, sink, session, journal });
      await fleet.createTopics();
      onTestFinished(() => fleet.stop());
      const random = seededRandom(SEED);
      const faults = new Faults(fleet, cluster, { proxies, random, ...(main === undefined ? {} : { main }) });
      for (const name of ['r1', 'r2', 'd1', 'd2', 'd3']) await faults.start(name);
      return { fleet, faults };
    };

    test(
      `${FAULTS} faults, seed ${SEED}: nothing is lost, in order, and again only what was under way`,
      { timeout: FAULTS * 15_000 + 120_000 },
      async () => {
        const { fleet, faults } = await makeFleet();
        await underLoad(fleet, faults, async () => {
          for (let n = 0; n < FAULTS; n += 1) {
            await faults.next();
            await wait(500);
          }
        });
        await deliver(fleet).catch(() => undefined);
        const { ok, text } = fleet.judge();
        // oxlint-disable-next-line no-console -- the figures of a campaign
        console.log(text, Object.fromEntries(faults.done));
        expect(ok, text).toBe(true);
      },
    );

    test('scaled from 3 to 1 and to 3 again under load', { timeout: 180_000 }, async () => {
      const { fleet, faults } = await makeFleet();
      await underLoad(fleet, faults, async () => {
        for (const name of ['d3', 'd1']) {
          expect(await faults.running.get(name)?.kill('SIGTERM')).toMatchObject({ code: 0 });
          faults.running.delete(name);
          await wait(1000);
        }
        for (const name of ['d4', 'd5']) await faults.start(name);
        await wait(2000);
      });
      await deliver(fleet);
      const { ok, text } = fleet.judge();
      expect(ok, text).toBe(true);
      // Nothing was under way when they were told to stop.
      expect(text).toContain('"twice":0');
    });

    const judged = async (
      name: keyof typeof MUTANTS,
      work: (fleet: Fleet, faults: Faults) => Promise<void>,
      ms?: number,
      partitions?: number,
      session?: string,
      held?: Held,
    ): Promise<string> => {
      const { main, remove } = makeMutant(name);
      onTestFinished(remove);
      const { fleet, faults } = await makeFleet(main, ms, partitions, session, held);
      await work(fleet, faults);
      await until('all to be delivered', () => fleet.isDelivered, 40_000).catch(() => undefined);
      const { ok, text } = fleet.judge();
      expect(ok, text).toBe(false);
      return text;
    };

    test('the judge notices: no dedup', { timeout: 120_000 }, async () => {
      const text = await judged('no dedup', (fleet, faults) => underLoad(fleet, faults, () => wait(2000)));
      expect(text).toContain('no fault explains it');
    });

    test(
      'deliverers with much to do are paused, and come back when others have it',
      { timeout: 240_000 },
      async () => {
        const { fleet, faults } = await makeFleet(undefined, 150);
        await pauseDeliverers(fleet, faults);
        await deliver(fleet).catch(() => undefined);
        const { ok, text } = fleet.judge();
        expect(ok, text).toBe(true);
      },
    );

    test('the judge notices: no fencing', { timeout: 180_000 }, async () => {
      expect(await judged('no fencing', pauseDeliverers, 150)).toContain('again');
    });

    const held = { stalls: 'stalls', only: 'one' };

    test('nothing can be committed while there is much to send', { timeout: 240_000 }, async () => {
      const { fleet, faults } = await makeFleet(undefined, 20, 6, '20s', held);
      await pauseAllBrokers(fleet, faults);
      await deliver(fleet).catch(() => undefined);
      const { ok, text } = fleet.judge();
      expect(ok, text).toBe(true);
    });

    test('the judge notices: no bound', { timeout: 240_000 }, async () => {
      expect(await judged('no bound', pauseAllBrokers, 20, 6, '20s', held)).toContain('no more of it');
    });

    // Alone, a leader takes what the others have not got, and is lost with it; they are still counted as in sync.
    const loseLeader = async (fleet: Fleet, faults: Faults): Promise<void> => {
      await underLoad(fleet, faults, () => wait(1000));
      const leader = await oracle.leader(fleet.topic);
      const others = cluster.brokers.filter(({ id }) => id !== leader);
      const own = cluster.brokers.find(({ id }) => id === leader);
      const from = Date.now();
      await Promise.all(others.map(async (broker) => broker.pause()));
      const sending = underLoad(fleet, faults, () => wait(3000));
      await wait(2500);
      await own?.kill();
      for (const broker of others) broker.resume();
      await wait(3000);
      await own?.start();
      await sending;
      fleet.noteFault(from, 'a leader was lost that was alone', null);
    };

    test('a leader that was alone is lost', { timeout: 180_000 }, async () => {
      const { fleet, faults } = await makeFleet(undefined, 20, 1);
      await loseLeader(fleet, faults);
      await deliver(fleet).catch(() => undefined);
      const { ok, text } = fleet.judge();
      expect(ok, text).toBe(true);
    });

    test('the judge notices: acks=1', { timeout: 180_000 }, async () => {
      const text = await judged('acks=1', loseLeader, 20, 1);
      expect(text).toContain('is not there');
    });

    test('the judge notices: offset first', { timeout: 120_000 }, async () => {
      const text = await judged(
        'offset first',
        (fleet, faults) =>
          underLoad(
            fleet,
            faults,
            async () => {
              await wait(3000);
              await faults.kill('d');
              await faults.kill('d');
            },
            2,
          ),
        200,
      );
      expect(text).toContain('is not there');
    });
  },
);
