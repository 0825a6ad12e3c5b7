import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { describeOnKafka } from '../support/kafka/cluster.ts';
import { bodyOf, idsOf, makeSink, put, surviveFaults } from './kafka-support.ts';
import { runContract } from './run-contract.ts';
import { signal } from './support.ts';

/** Milliseconds that twenty faults may take. */
const LONG = 900_000;
const CASES = [
  { idempotent: true, compression: 'auto', codec: 'none' },
  { idempotent: false, compression: 'never', codec: 'zstd' },
];

const proxies: CuttingProxy[] = [];
afterAll(() => Promise.all(proxies.map((proxy) => proxy.stop())));
const advertised = async (to: number): Promise<number> => {
  const { proxy, port } = await CuttingProxy.start(to);
  proxies.push(proxy);
  return port;
};

describeOnKafka('kafka sink', { advertised }, ({ addresses, brokers, oracle }) => {
  /** A sink of a topic of its own, open; closed after the test. */
  const open = async (options: object = {}, partitions = 3, ...config: string[]) => {
    const topic = `events-${randomUUID()}`;
    await oracle.create(topic, partitions, 1, ...config);
    const sink = makeSink(addresses, { topic, ...options });
    onTestFinished(() => sink.close(signal));
    await sink.open(signal);
    return { sink, topic };
  };

  describe.each(CASES)('%j: the sink contract', async (options) => {
    await runContract(async () => {
      const [topic, other] = [`events-${randomUUID()}`, `other-${randomUUID()}`];
      for (const name of [topic, other]) await oracle.create(name, 3);
      const sink = makeSink(addresses, { topic, ...options });
      return {
        sink,
        destinations: [other],
        arrived: async () => {
          const places = [topic, other].map(async (name) =>
            (await oracle.read(name)).map((record) => ({
              id: record.headers['idempotency-key'] ?? '',
              destination: name === topic ? null : name,
              body: bodyOf(record),
            })),
          );
          return (await Promise.all(places)).flat();
        },
        outage: { begin: async () => brokers[0]?.pause(), end: async () => brokers[0]?.resume() },
        dispose: async () => {
          brokers[0]?.resume();
          await sink.close(signal);
        },
      };
    });
  });

  it('writes key, headers and body as other consumers of the pipelines expect them', async () => {
    const { sink, topic } = await open();
    const long = Buffer.from(`{"long":"${'x'.repeat(2000)}"}`);
    const events = [
      contractEvent(1),
      contractEvent(2, { user: null, clientUser: null, handling: { replayId: 'again' } }),
      contractEvent(3, { body: long }),
    ];
    await put(sink, events);
    const records = (await oracle.read(topic)).toSorted((a, b) =>
      (idsOf([a])[0] ?? '') < (idsOf([b])[0] ?? '') ? -1 : 1,
    );
    expect(records.map(({ key }) => key?.toString() ?? null)).toEqual(['user-1', null, 'user-3']);
    expect(records.map(({ headers }) => headers)).toEqual([
      {
        'event-type': 'daily.data.meal.created',
        'user-id': 'user-1',
        'team-id': 'team-1',
        'client-user-id': 'customer-patient-123',
        'idempotency-key': 'msg_1',
      },
      {
        'event-type': 'daily.data.meal.created',
        'team-id': 'team-1',
        'idempotency-key': 'msg_2',
        'replay-id': 'again',
      },
      expect.objectContaining({ 'content-encoding': 'gzip', 'idempotency-key': 'msg_3' }),
    ]);
    expect(records.map((record) => bodyOf(record))).toEqual(events.map(({ body }) => body));
  });

  it("puts a user's events into the partition that Java's clients choose", async () => {
    const { sink, topic } = await open({}, 12);
    const users = [
      'a',
      'ab',
      'abc',
      'abcd',
      'ünï🍲',
      'x'.repeat(500),
      ...Array.from({ length: 20 }, () => randomUUID()),
    ];
    await put(
      sink,
      users.map((user, n) => contractEvent(n, { user })),
    );
    for (const user of users) await oracle.write(topic, Buffer.from(user), null);
    const records = await oracle.read(topic);
    for (const user of users) {
      const places = records.filter(({ key }) => key?.toString() === user).map(({ partition }) => partition);
      expect(places).toHaveLength(2);
      expect(new Set(places).size).toBe(1);
    }
  });

  it.each(['none', 'gzip', 'snappy', 'lz4', 'zstd'])(
    'compresses batches with %s, for everyone to read',
    async (codec) => {
      const { sink, topic } = await open({ codec, compression: 'never' });
      const events = Array.from({ length: 200 }, (_, n) => contractEvent(n));
      await put(sink, events);
      const records = await oracle.read(topic);
      expect(new Set(records.map(({ value }) => value?.toString()))).toEqual(
        new Set(events.map(({ body }) => body.toString())),
      );
    },
  );

  it('fault 13: what is too large is refused, here or by the topic, and its neighbours are delivered', async () => {
    const { sink, topic } = await open(
      { compression: 'never', maxEventBytes: '64KiB' },
      1,
      'max.message.bytes=20000',
    );
    const send = (...events: ReturnType<typeof sized>[]) =>
      sink.send(
        events.map((event) => ({ event, destination: null })),
        signal,
      );
    const here = await send(sized(1, 100), sized(2, 70_000), sized(3, 100));
    expect(here.map(({ status }) => status)).toEqual(['delivered', 'refused', 'delivered']);
    expect(here[1]).toMatchObject({ code: 'too_large' });
    // The topic takes less than the sink believes, and does not say which event it is.
    const there = await send(sized(4, 100), sized(5, 30_000));
    expect(there).toMatchObject([
      { status: 'refused', batch: true },
      { status: 'refused', batch: true },
    ]);
    expect(await send(sized(5, 30_000))).toMatchObject([{ status: 'refused', code: 'too_large' }]);
    expect(await send(sized(4, 100))).toEqual([{ status: 'delivered' }]);
    expect(idsOf(await oracle.read(topic))).toEqual(['msg_1', 'msg_3', 'msg_4']);
  });

  it('splits what is too much for one batch', async () => {
    const { sink, topic } = await open({ compression: 'never' }, 1, 'max.message.bytes=1048588');
    const events = Array.from({ length: 9 }, (_, n) =>
      contractEvent(n, { user: 'one', body: Buffer.alloc(400_000, 32) }),
    );
    await put(sink, events);
    expect(idsOf(await oracle.read(topic))).toEqual(events.map(({ id }) => id));
  });

  it('waits for a topic that is not there, and names it', async () => {
    const sink = makeSink(addresses, { topic: 'nowhere' });
    onTestFinished(() => sink.close(signal));
    await expect(sink.open(signal)).rejects.toThrow(/^topic nowhere: it does not exist/);
    expect(await sink.send([{ event: contractEvent(1), destination: null }], signal)).toMatchObject([
      { status: 'retry', sink: true, reason: expect.stringMatching(/^topic nowhere: it does not exist/) },
    ]);
  });

  it.each([
    [true, 1],
    [false, 2],
  ])(
    'fault 15: an answer that is lost, idempotent %s: the event lies there %d times',
    async (idempotent, times) => {
      const { sink, topic } = await open({ idempotent }, 1);
      const [proxy] = proxies;
      await put(sink, [contractEvent(1)]);
      // The metadata is known, so the next answer is that of the produce request.
      proxy?.swallow(1);
      await put(sink, [contractEvent(2, { user: 'user-1' })]);
      await put(sink, [contractEvent(3, { user: 'user-1' })]);
      const ids = idsOf(await oracle.read(topic));
      expect(ids).toEqual(['msg_1', ...Array.from({ length: times }, () => 'msg_2'), 'msg_3']);
    },
  );

  it('does not take another batch for one that was given up without an answer', async () => {
    const { sink, topic } = await open({}, 1);
    const [proxy] = proxies;
    await put(sink, [contractEvent(1)]);
    // The broker writes it, and no answer comes through until the time is over.
    proxy?.swallow(Infinity);
    const lost = [{ event: contractEvent(2), destination: null }];
    expect(await sink.send(lost, signal)).toMatchObject([{ status: 'retry', sink: true }]);
    proxy?.swallow(0);
    await put(sink, [contractEvent(3)]);
    expect(idsOf(await oracle.read(topic))).toEqual(['msg_1', 'msg_2', 'msg_3']);
  });

  it('begins a new epoch after a batch that was given up, which can then not come up later', async () => {
    const { sink, topic } = await open({}, 1);
    await put(sink, [contractEvent(1)]);
    await brokers[0]?.pause();
    const late = [{ event: contractEvent(2), destination: null }];
    expect(await sink.send(late, signal)).toMatchObject([{ status: 'retry', sink: true }]);
    brokers[0]?.resume();
    let result;
    do [result] = await sink.send(late, signal);
    while (result?.status === 'retry');
    await put(sink, [contractEvent(3)]);
    const ids = idsOf(await oracle.read(topic));
    // What hung in the broker's connection may have been written when it woke up, but not behind what came after.
    expect([...new Set(ids)]).toEqual(['msg_1', 'msg_2', 'msg_3']);
    expect(ids.at(-1)).toBe('msg_3');
  });

  it(
    'fault 11: cut off again and again, stopped and killed: nothing lost, each user in order',
    { timeout: LONG },
    async () => {
      const { sink, topic } = await open({ timeout: '2s', batch: { count: 20 } });
      const [[proxy], [broker]] = [proxies, brokers];
      const each: Parameters<typeof surviveFaults>[1] = [
        async () => proxy?.cut(),
        async () => proxy?.swallow(3),
        async ({ noticed }) => {
          await broker?.pause();
          await noticed();
          broker?.resume();
        },
        async () => {
          await broker?.kill();
          await broker?.start();
        },
      ];
      const run = { sink, topic, oracle, users: 5, burst: 60, seed: 7 };
      await expect(surviveFaults(run, [...each, ...each])).resolves.toBeUndefined();
    },
  );
});

/** An event whose body has that many bytes. */
const sized = (n: number, bytes: number) => contractEvent(n, { user: 'one', body: Buffer.alloc(bytes, 32) });
