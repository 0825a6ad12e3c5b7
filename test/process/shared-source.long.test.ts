import { EventHubProducerClient } from '@azure/event-hubs';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { startAmqpPeer, type AmqpPeer } from '../support/amqp-peer/peer.ts';
import { startAzurite } from '../support/azurite.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeConfig } from '../support/millrace.ts';
import { expectConserved, readBack, type ReadBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { until } from '../support/until.ts';

const PARTITIONS = 4;

/** How many partitions each reader has; null while one of them has no reader, or two. */
function shares(peer: AmqpPeer): string | null {
  const readers = peer.readers('pipeline');
  if (readers.some((names) => names.length !== 1)) return null;
  const counts = new Map<string, number>();
  for (const name of readers.flat()) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts.values()].join('+');
}

test('two workers share a hub; one is killed -9 under load, and the other takes over from the checkpoints', async () => {
  const folder = await temporaryFolder();
  const [peer, storage] = await Promise.all([
    startAmqpPeer({ hubs: ['pipeline'], partitions: PARTITIONS }),
    startAzurite(),
  ]);
  onTestFinished(() => peer.stop());
  await storage.container('places');
  const worker = (name: string): Promise<ReceiverProcess> => {
    const own = join(folder, name);
    mkdirSync(own, { recursive: true });
    const checkpoints = {
      type: 'blob-storage',
      connectionString: storage.connectionString,
      container: 'places',
      takeOverAfter: '3s',
    };
    const { connectionString } = peer;
    const hub = { type: 'event-hubs', connectionString, hub: 'pipeline', checkpoints };
    return ReceiverProcess.start(writeConfig(own, { sources: { hub } }));
  };
  const [first, second] = await Promise.all([worker('first'), worker('second')]);
  await until('both to have half of the partitions', () => shares(peer) === '2+2');

  const producer = new EventHubProducerClient(peer.connectionString, 'pipeline');
  onTestFinished(() => producer.close());
  const sent = new Map<string, Buffer>();
  /** Each to all partitions. */
  const publish = async (rounds: number): Promise<void> => {
    for (let round = 0; round < rounds; round += 1) {
      for (let partition = 0; partition < PARTITIONS; partition += 1) {
        const { id, type, body } = madeUpEvent(sent.size);
        const message = { body, properties: { 'event-type': type, 'idempotency-key': id } };
        await producer.sendBatch([message], { partitionId: String(partition) });
        sent.set(id, body);
      }
    }
  };
  // Who reads what may still change hands: both may have claimed the same when they started.
  await until('both to take part', async () => {
    await publish(5);
    return (await took(first)) > 0 && (await took(second)) > 0;
  });
  const loading = publish(100);
  await first.kill('SIGKILL');
  await loading;
  await until('the other to have every partition', () => shares(peer) === String(PARTITIONS));
  const archived = (): Promise<Map<string, ReadBack[]>[]> =>
    Promise.all(['first', 'second'].map((name) => readBack(join(folder, name, 'archive'), { parts: true })));
  /** Sends some more, and waits until all of it has been read; returns its ids. */
  const readOn = async (): Promise<string[]> => {
    const before = new Set(sent.keys());
    await publish(5);
    const late = [...sent.keys()].filter((id) => !before.has(id));
    await until('what was sent last', async () => {
      const found = await archived();
      return late.every((id) => found.some((each) => each.has(id)));
    });
    return late;
  };
  await readOn();

  // It comes back, delivers what its journal has, has its share again, and nothing is read by both any more.
  const third = await worker('first');
  await until('both to have half of the partitions again', () => shares(peer) === '2+2');
  await until('nothing to be read by both any more', async () => {
    const late = await readOn();
    const [one, other] = await archived();
    return !late.some((id) => one?.has(id) === true && other?.has(id) === true);
  });
  for (const receiver of [second, third]) expect(await receiver.kill('SIGTERM')).toMatchObject({ code: 0 });
  const [one = new Map<string, ReadBack[]>(), other = new Map<string, ReadBack[]>()] = await archived();
  expectConserved(new Map([...one, ...other]), sent);
});

async function took(receiver: ReceiverProcess): Promise<number> {
  return (await receiver.status()).journal.lastSeq;
}
