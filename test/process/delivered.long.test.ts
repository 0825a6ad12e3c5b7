import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Pool } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import type { InjectedFault } from '../support/amqp-peer/faults.ts';
import { startAmqpPeer } from '../support/amqp-peer/peer.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeConfig } from '../support/millrace.ts';
import { expectConserved, readBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import type { Serving } from '../support/serving.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const STATELESS = { acknowledge: 'delivered' } as unknown as Record<string, object>;

/** A config of its own for one replica: everything but the archive and the port is separate. */
function replica(folder: string, name: string, port: number, more: Record<string, object> = {}): string {
  const own = join(folder, name);
  mkdirSync(own);
  return writeConfig(own, {
    ...STATELESS,
    server: { host: '127.0.0.1', port, reusePort: true },
    journal: { path: join(own, 'journal') },
    sinks: { archive: { type: 'files', path: join(folder, 'archive') } },
    ...more,
  });
}

/** Sends until told to stop; what is not answered is sent again, as the service would. */
async function load(url: string, acknowledged: Map<string, Buffer>, stopped: () => boolean): Promise<void> {
  let n = 0;
  const lane = async (): Promise<void> => {
    while (!stopped()) {
      const { id, body } = madeUpEvent((n += 1));
      for (;;) {
        // A connection each: the kernel then spreads them over the replicas that are left.
        const dispatcher = new Pool(new URL(url).origin, { connections: 1 });
        const status = await postSigned(url, body, { id, dispatcher }).then(
          (answer) => answer.status,
          () => 0,
        );
        await dispatcher.destroy();
        if (status === 200 || status === 202) break;
      }
      acknowledged.set(id, body);
    }
  };
  await Promise.all(Array.from({ length: 6 }, lane));
}

interface Case {
  /** Keys of both replicas' configs. */
  readonly more?: Record<string, object>;
  /** Called when one has been killed and the other has gone on. */
  readonly afterwards?: () => void;
}

/** Kills one of two replicas under load; when it returns the other has been stopped. */
async function killOneOfTwo(
  folder: string,
  { more = {}, afterwards = () => undefined }: Case = {},
): Promise<Map<string, Buffer>> {
  const first = await ReceiverProcess.start(replica(folder, 'first', 0, more));
  const port = Number(new URL(first.url).port);
  const second = await ReceiverProcess.start(replica(folder, 'second', port, more));
  const acknowledged = new Map<string, Buffer>();
  let stop = false;
  const loading = load(first.url, acknowledged, () => stop);
  await until(
    'both replicas to take part',
    async () => (await seenBy(first)) > 20 && (await seenBy(second)) > 20,
  );
  await first.kill('SIGKILL');
  const goesOn = (): Promise<boolean> => {
    const before = acknowledged.size;
    return until('the other to continue alone', () => acknowledged.size > before + 50);
  };
  await goesOn();
  afterwards();
  await goesOn();
  stop = true;
  await loading;
  expect(await second.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  return acknowledged;
}

// An event can be written and its answer lost with the process, so more than the acknowledged may be there.
const MORE_MAY_BE_THERE = { has: () => true };

describe.skipIf(process.platform !== 'linux')(
  'two stateless replicas behind one port, one killed -9 under load [Linux only: SO_REUSEPORT]',
  () => {
    test('everything acknowledged is in the archive', async () => {
      const folder = await temporaryFolder();
      const acknowledged = await killOneOfTwo(folder);
      expect(acknowledged.size).toBeGreaterThan(100);
      // What the killed one had written lies in an unfinished file, which its next start would finish.
      const found = await readBack(join(folder, 'archive'), { parts: true });
      expectConserved(found, acknowledged, MORE_MAY_BE_THERE);
    });

    test('everything acknowledged is in the hub, also when the broker cuts a connection', async () => {
      const folder = await temporaryFolder();
      const peer = await startAmqpPeer({ hubs: ['events'] });
      onTestFinished(() => peer.stop());
      // So that there is always something sent and not yet confirmed when the process is killed.
      const slow = peer.inject({ kind: 'latency', ms: 20 });
      const { connectionString } = peer;
      const hubs = {
        type: 'event-hubs',
        connectionString,
        hub: 'events',
        compression: 'never',
        timeout: '10s',
      };
      const cuts: InjectedFault[] = [];
      const acknowledged = await killOneOfTwo(folder, {
        more: { sinks: { hubs } },
        afterwards: () => {
          slow.lift();
          cuts.push(peer.inject({ kind: 'drop', stored: false, times: 1 }));
        },
      });
      expect(cuts.map(({ strikes }) => strikes)).toEqual([1]);
      const bodies = new Map<string, Buffer[]>();
      for (const { body, properties } of peer.messages('events')) {
        const id = properties['idempotency-key'] ?? '';
        bodies.set(id, [...(bodies.get(id) ?? []), body]);
      }
      const wrong = [...acknowledged].filter(
        ([id, body]) => bodies.get(id)?.every((each) => each.equals(body)) !== true,
      );
      expect(
        wrong.map(([id]) => id),
        `of ${acknowledged.size} acknowledged`,
      ).toEqual([]);
    });
  },
);

test('with acknowledge: delivered a required sink that is down ends in 503, and nothing is acknowledged', async () => {
  const folder = await temporaryFolder();
  const config = replica(folder, 'only', 0, {
    server: { host: '127.0.0.1', port: 0, answerTimeout: '1s' },
    sinks: { stuck: { type: join(import.meta.dirname, 'gated-sink.ts'), folder } },
    shutdown: { deadline: '100ms' },
  });
  const receiver = await Receiver.start(config);
  const answer = await postSigned(receiver.url);
  expect([answer.status, answer.json['code'], answer.headers['retry-after']]).toEqual([
    503,
    'not_confirmed',
    '10',
  ]);
});

test('with acknowledge: delivered invalid events go to quarantine.to, or are answered 422', async () => {
  const folder = await temporaryFolder();
  const invalid = Buffer.from('{"event_type":"daily.data.meal.created"}');
  const kept = await Receiver.start(replica(folder, 'kept', 0, { quarantine: { to: 'archive:invalid' } }));
  expect((await postSigned(kept.url, invalid, { id: 'msg_invalid' })).json).toMatchObject({
    status: 'quarantined',
  });
  const loud = await Receiver.start(replica(folder, 'loud', 0));
  expect(await postSigned(loud.url, invalid, { id: 'msg_loud' })).toMatchObject({
    status: 422,
    json: { code: 'unfit' },
  });
  await kept.kill('SIGTERM');
  await loud.kill('SIGTERM');
  const found = await readBack(join(folder, 'archive'));
  expect([...found.keys()]).toEqual(['msg_invalid']);
  expect(found.get('msg_invalid')?.[0]?.file).toMatch(/^invalid\//);
});

async function seenBy(replicaOf: Serving): Promise<number> {
  return (await replicaOf.status()).sinks[0]?.delivered ?? 0;
}
