import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Pool } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import type { InjectedFault } from '../support/fault-list.ts';
import { startAmqpPeer } from '../support/amqp-peer/peer.ts';
import { writeConfig } from '../support/millrace.ts';
import { Place } from '../support/place.ts';
import { expectConserved } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import type { Serving } from '../support/serving.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const STATELESS = { acknowledge: 'delivered' };

/** A receiver with a config of its own: everything but the archive and the port is separate. */
function startReplica(place: Place, name: string, port: number, more: object): Promise<ReceiverProcess> {
  mkdirSync(place.at(name));
  const config = writeConfig(place.at(name), {
    ...STATELESS,
    server: { port, reusePort: true },
    sinks: { archive: { type: 'files', path: place.at('archive') } },
    ...more,
  });
  return ReceiverProcess.start(config);
}

/** Sends until `stopped` says so; what is not answered is sent again, as the service would. */
async function load(url: string, acknowledged: Map<string, Buffer>, stopped: () => boolean): Promise<void> {
  let n = 0;
  const lane = async (): Promise<void> => {
    while (!stopped()) {
      const { id, body } = madeUpEvent((n += 1));
      for (let status = 0; status !== 200 && status !== 202;) {
        // A connection each: the kernel then spreads them over the replicas that are left.
        const dispatcher = new Pool(new URL(url).origin, { connections: 1 });
        status = await postSigned(url, body, { id, dispatcher }).then(
          (answer) => answer.status,
          () => 0,
        );
        await dispatcher.destroy();
      }
      acknowledged.set(id, body);
    }
  };
  await Promise.all(Array.from({ length: 6 }, lane));
}

const seenBy = async (replica: Serving): Promise<number> => (await replica.status()).sinks[0]?.delivered ?? 0;

/** Kills one of two replicas under load; when it returns the other has been stopped. */
async function killOneOfTwo(
  place: Place,
  more: object = {},
  afterwards: () => void = () => undefined,
): Promise<Map<string, Buffer>> {
  const first = await startReplica(place, 'first', 0, more);
  const second = await startReplica(place, 'second', Number(new URL(first.url).port), more);
  const acknowledged = new Map<string, Buffer>();
  let stop = false;
  const loading = load(first.url, acknowledged, () => stop);
  await until(
    'both replicas to take part',
    async () => (await seenBy(first)) > 20 && (await seenBy(second)) > 20,
  );
  await first.kill('SIGKILL');
  const continuesAlone = (): Promise<boolean> => {
    const before = acknowledged.size;
    return until('the other to continue alone', () => acknowledged.size > before + 50);
  };
  await continuesAlone();
  afterwards();
  await continuesAlone();
  stop = true;
  await loading;
  await second.stop();
  return acknowledged;
}

describe.skipIf(process.platform !== 'linux')(
  'two stateless replicas behind one port, one killed -9 under load [Linux only: SO_REUSEPORT]',
  () => {
    test('everything acknowledged is in the archive', async () => {
      const place = await Place.make();
      const acknowledged = await killOneOfTwo(place);
      expect(acknowledged.size).toBeGreaterThan(100);
      // What the killed one had written lies in an unfinished file, which its next start would finish. An event can
      // be written and its answer lost with the process, so more than the acknowledged may be there.
      const found = await place.archived('archive', { parts: true });
      expectConserved(found, acknowledged, { has: () => true });
    });

    test('everything acknowledged is in the hub, also when the broker cuts a connection', async () => {
      const peer = await startAmqpPeer({ hubs: ['events'] });
      onTestFinished(() => peer.stop());
      // So that there is always something sent and not yet confirmed when the process is killed.
      const slow = peer.inject({ kind: 'latency', ms: 20 });
      const { connectionString } = peer;
      const hub = {
        type: 'event-hubs',
        connectionString,
        hub: 'events',
        compression: 'never',
        timeout: '10s',
      };
      const cuts: InjectedFault[] = [];
      const acknowledged = await killOneOfTwo(await Place.make(), { sinks: { hubs: hub } }, () => {
        slow.lift();
        cuts.push(peer.inject({ kind: 'drop', stored: false, times: 1 }));
      });
      expect(cuts.map(({ strikes }) => strikes)).toEqual([1]);
      const bodies = Map.groupBy(
        peer.messages('events'),
        ({ properties }) => properties['idempotency-key'] ?? '',
      );
      const wrong = [...acknowledged].filter(
        ([id, body]) => bodies.get(id)?.every((each) => each.body.equals(body)) !== true,
      );
      expect(
        wrong.map(([id]) => id),
        `of ${acknowledged.size} acknowledged`,
      ).toEqual([]);
    });
  },
);

test('with acknowledge: delivered a required sink that is down ends in 503, and nothing is acknowledged', async () => {
  const place = await Place.make((folder) => ({
    ...STATELESS,
    server: { answerTimeout: '1s' },
    sinks: { stuck: { type: join(import.meta.dirname, 'gated-sink.ts'), folder } },
    shutdown: { deadline: '100ms' },
  }));
  const { status, json, headers } = await (await place.start()).post();
  expect([status, json['code'], headers['retry-after']]).toEqual([503, 'not_confirmed', '10']);
});

test.each([{ quarantine: { to: 'archive:invalid' } }, {}])(
  'with acknowledge: delivered invalid events, and ids with other bytes, go where the config says, or are answered 422: %j',
  async (more) => {
    const invalid = Buffer.from('{"event_type":"daily.data.meal.created"}');
    const [first, other] = [madeUpEvent(1).body, madeUpEvent(2).body];
    const place = await Place.make({ ...STATELESS, ...more });
    const receiver = await place.start();
    const post = async (id: string, body: Buffer): Promise<unknown[]> => {
      const { status, json } = await receiver.post(body, { id });
      return [status, json['code'] ?? json['status']];
    };
    expect(await post('msg_a', first)).toEqual([202, 'accepted']);
    expect(await post('msg_a', first)).toEqual([200, 'duplicate']);
    const isKept = 'quarantine' in more;
    expect(await post('msg_a', other)).toEqual(isKept ? [202, 'id_reused'] : [422, 'unfit']);
    expect(await post('msg_invalid', invalid)).toEqual(isKept ? [202, 'team_missing'] : [422, 'unfit']);
    await receiver.stop();
    const found = [...(await place.archived()).values()].flat();
    const aside = found.filter(({ file }) => file.startsWith('invalid/'));
    expect(found.length - aside.length).toBe(1);
    expect(aside.map(({ record, body }) => [record.id, body])).toEqual(
      isKept
        ? [
            ['msg_a', other],
            ['msg_invalid', invalid],
          ]
        : [],
    );
  },
);
