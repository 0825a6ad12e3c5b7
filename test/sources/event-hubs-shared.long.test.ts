import type { ContainerClient } from '@azure/storage-blob';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createSource, parseOptions } from '../../src/sources/event-hubs/source.ts';
import { startAmqpPeer, type AmqpPeer } from '../support/amqp-peer/peer.ts';
import { startAzurite, type Azurite } from '../support/azurite.ts';
import { until } from '../support/until.ts';
import { makeContext, type LogLine } from '../sinks/support.ts';
import { NO_CHECKPOINTS, publish } from './event-hubs-support.ts';
import { events } from './contract.ts';
import { idsOf, range, startReading, type Reading, type Take } from './reading.ts';

interface Parts {
  readonly peer: AmqpPeer;
  readonly storage: Azurite;
  readonly container: ContainerClient;
}

async function openParts(): Promise<Parts> {
  const [peer, storage] = await Promise.all([
    startAmqpPeer({ hubs: ['events'], partitions: 4 }),
    startAzurite(),
  ]);
  onTestFinished(() => peer.stop());
  return { peer, storage, container: await storage.container('checkpoints') };
}

interface Worker extends Reading {
  readonly lines: readonly LogLine[];
}

async function work(
  { peer, storage }: Pick<Parts, 'peer' | 'storage'>,
  options: object = {},
  take?: Take,
): Promise<Worker> {
  const parsed = parseOptions({
    connectionString: peer.connectionString,
    hub: 'events',
    timeout: '2s',
    checkpoints: {
      type: 'blob-storage',
      connectionString: storage.connectionString,
      container: 'checkpoints',
      takeOverAfter: '3s',
    },
    ...options,
  });
  const context = makeContext();
  const source = createSource(parsed, { ...context, name: 'pipeline', checkpoints: NO_CHECKPOINTS });
  return { ...(await startReading(source, take)), lines: context.lines };
}

/** Whether every partition has one reader, and the readers so many partitions each. */
function shared(peer: AmqpPeer, ...shares: readonly number[]): boolean {
  const readers = peer.readers('events');
  const counts = new Map<string, number>();
  for (const name of readers.flat()) counts.set(name, (counts.get(name) ?? 0) + 1);
  return readers.every((names) => names.length === 1) && String([...counts.values()]) === String(shares);
}

const allOf = (...workers: readonly Worker[]): Set<string> =>
  new Set(workers.flatMap(({ messages }) => idsOf(messages)));

describe('event-hubs source with checkpoints in blob storage', () => {
  it('shares the partitions among workers, and hands them over when one is stopped', async () => {
    const parts = await openParts();
    const { peer } = parts;
    await publish(peer, events(0, 40));
    const first = await work(parts);
    await until('one worker to have every partition', () => shared(peer, 4));
    await until('40 messages', () => first.messages.length >= 40);
    const second = await work(parts);
    await until('both to have their share', () => shared(peer, 2, 2));
    await publish(peer, events(40, 80));
    await until('80 messages', () => allOf(first, second).size === 80);
    await first.stop();
    const before = first.messages.length;
    await publish(peer, events(80, 120));
    await until('120 messages', () => allOf(first, second).size === 120);
    expect(shared(peer, 4)).toBe(true);
    expect(first.messages).toHaveLength(before);
    expect(allOf(first, second)).toEqual(range(0, 120));
  });

  it('a worker that was busy while partitions were taken from it leaves them to the other', async () => {
    const parts = await openParts();
    const { peer } = parts;
    await publish(peer, events(0, 40));
    const gate = Promise.withResolvers<void>();
    const first = await work(parts, {}, () => gate.promise);
    await until('one worker to have every partition', () => shared(peer, 4));
    const second = await work(parts);
    await until('both to have their share', () => shared(peer, 2, 2));
    gate.resolve();
    const left = (): number => first.lines.filter(({ message }) => message === 'partition left').length;
    await until('the first to leave two', () => left() >= 2);
    await until('both to have their share again', () => shared(peer, 2, 2));
    await until('40 messages', () => allOf(first, second).size === 40);
    const [one, other] = [first.messages.length, second.messages.length];
    await publish(peer, events(40, 80));
    await until('80 messages', () => allOf(first, second).size === 80);
    const since = [...idsOf(first.messages.slice(one)), ...idsOf(second.messages.slice(other))];
    expect(since.filter((id) => range(40, 80).has(id)).toSorted()).toEqual([...range(40, 80)].toSorted());
  });

  it('a worker that loses a partition while it closes it reads on in the others', async () => {
    const parts = await openParts();
    const { peer, container } = parts;
    const first = await work(parts);
    await until('one worker to have every partition', () => shared(peer, 4));
    peer.inject({ kind: 'stolen', times: 1 });
    // Somebody else, who claims it once and reads nothing.
    const claim = container.getBlobClient('127.0.0.1/events/$default/ownership/3');
    await claim.setMetadata({ ownerid: 'another' });
    const left = (): unknown[] =>
      first.lines
        .filter(({ message }) => message === 'partition left')
        .map(({ fields }) => fields['partition']);
    await until('the partition to be left', () => left().length > 0);
    await until('its claim to lapse', () => shared(peer, 4));
    await publish(peer, events(0, 40));
    await until('40 messages', () => allOf(first).size === 40);
    expect(left()).toEqual(['3']);
  });

  it('continues behind the checkpoints, which lie where the SDKs of other languages look for them', async () => {
    const parts = await openParts();
    const { peer, container } = parts;
    await publish(peer, events(0, 20));
    const first = await work(parts);
    await until('20 messages', () => first.messages.length >= 20);
    await first.stop();
    await publish(peer, events(20, 35));
    const second = await work(parts);
    await until('15 messages', () => second.messages.length >= 15);
    await second.stop();
    expect(allOf(second)).toEqual(range(20, 35));
    const names: string[] = [];
    for await (const { name } of container.listBlobsFlat()) names.push(name);
    expect(names).toContain('127.0.0.1/events/$default/ownership/0');
    expect(names.filter((name) => name.includes('/checkpoint/')).length).toBeGreaterThan(1);
  });

  it('keeps no checkpoint for what was not taken, and another worker reads it again', async () => {
    const parts = await openParts();
    await publish(parts.peer, events(0, 30));
    const refused = new Set<string>();
    const first = await work(parts, {}, (batch) => {
      for (const id of idsOf(batch)) refused.add(id);
      return Promise.reject(new Error('journal is full'));
    });
    expect(await first.ended).toMatchObject({ message: 'journal is full' });
    expect(refused.size).toBeGreaterThan(0);
    const second = await work(parts);
    await until('every message', () => allOf(second).size === 30);
    expect(first.messages).toEqual([]);
  });

  it('with start: latest begins with what comes next, and misses nothing of it while no worker reads', async () => {
    const parts = await openParts();
    const { peer, container } = parts;
    await publish(peer, events(0, 10));
    const first = await work(parts, { start: 'latest' });
    await until('four positions', async () => (await checkpointsIn(container)) === 4);
    await first.stop();
    await publish(peer, events(10, 20));
    const second = await work(parts, { start: 'latest' });
    await until('10 messages', () => second.messages.length >= 10);
    expect(first.messages).toEqual([]);
    expect(allOf(second)).toEqual(range(10, 20));
  });

  it('ends when the storage does not answer, names the container, and reads on later', async () => {
    const parts = await openParts();
    await publish(parts.peer, events(0, 10));
    const first = await work(parts);
    await until('10 messages', () => first.messages.length >= 10);
    parts.storage.pause();
    const error = await first.ended;
    expect(String(error)).toContain('checkpoints in container checkpoints: no answer in 2000 ms');
    parts.storage.resume();
    await publish(parts.peer, events(10, 20));
    const second = await work(parts);
    await until('20 messages', () => allOf(first, second).size === 20);
  });

  it('says that the container is missing', async () => {
    const parts = await openParts();
    await parts.container.delete();
    await expect(work(parts)).rejects.toThrow(
      /^event hub events: checkpoints in container checkpoints: .*The specified container does not exist/,
    );
  });
});

async function checkpointsIn(container: ContainerClient): Promise<number> {
  let count = 0;
  for await (const { name } of container.listBlobsFlat()) if (name.includes('/checkpoint/')) count += 1;
  return count;
}
