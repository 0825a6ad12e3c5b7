import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { Delivery, SendResult, Sink } from '../../src/core/sink.ts';
import { parseRecord } from '../../src/core/archive-record.ts';
import { sinkContract, type ContractSubject } from '../../src/sinks/contract.ts';
import type { Arrived } from '../../src/sinks/contract-checks.ts';
import { parseOptions as httpOptions } from '../../src/sinks/http/config.ts';
import { HttpSink } from '../../src/sinks/http/sink.ts';
import { createSink as stdoutSink } from '../../src/sinks/stdout/sink.ts';
import { LIMITS } from '../deliver/support.ts';
import { Endpoint, runningContext, SECRET } from './http-support.ts';
import { arrivedAt, makeHub, makeTopic } from './broker-support.ts';
import { runContract } from './run-contract.ts';
import { directSink, FaultyStore, levelOf, storeSubject, storeSink } from './store-support.ts';
import { filesSink, keptFolder, makeContext, records, signal } from './support.ts';

const PARTITIONED = { partitionBy: ['date', 'type', 'team'] };

type Options = Readonly<Record<string, unknown>>;

async function files(options: Options): Promise<ContractSubject> {
  const { path, remove } = keptFolder();
  return {
    sink: filesSink(path, { ...options, ...PARTITIONED }).sink,
    destinations: ['meals', 'sleep'],
    arrived: async () =>
      (await records(path))
        .sort((a, b) => (a.record.received_at < b.record.received_at ? -1 : 1))
        .map(({ file, record, body }) => ({ id: record.id, destination: levelOf(file), body })),
    outage: { impossible: 'a full disk is tried in files-disk-full.test.ts' },
    dispose: async () => remove(),
  };
}

async function store({ spool }: Options): Promise<ContractSubject> {
  const { path, remove } = keptFolder();
  const place = await FaultyStore.in(`${path}/store`);
  const sink =
    spool === true ? storeSink(place, `${path}/spool`, PARTITIONED).sink : directSink(place, PARTITIONED);
  return { sink, ...storeSubject(place), dispose: async () => remove() };
}

const broker =
  (make: typeof makeHub | typeof makeTopic) =>
  async (options: Options): Promise<ContractSubject> => {
    const { peer, sink } = await make(options);
    return { ...brokerSubject(peer, sink), arrived: async () => arrivedAt(peer, 'events', 'other') };
  };

function brokerSubject(peer: { stop(): Promise<void>; restart(): Promise<void> }, sink: Sink) {
  return {
    sink,
    destinations: ['other'],
    outage: { begin: () => peer.stop(), end: () => peer.restart() },
    dispose: async () => {
      await sink.close(signal);
      await peer.stop();
    },
  };
}

async function http({ sign }: Options): Promise<ContractSubject> {
  const endpoint = await new Endpoint().start();
  const options = httpOptions({
    url: endpoint.url('/main'),
    targets: { other: { url: endpoint.url('/other') } },
    sign,
    secrets: sign === 'standard-webhooks' ? [SECRET] : [],
    privateNetworks: ['127.0.0.0/8'],
  });
  const restart = async (): Promise<void> => void (await endpoint.start());
  return {
    ...brokerSubject({ stop: () => endpoint.stop(), restart }, new HttpSink(options, runningContext())),
    arrived: async () =>
      endpoint.posts.map(({ path, headers, body }) => ({
        id: String(headers['idempotency-key']),
        destination: path === '/main' ? null : path.slice(1),
        body,
      })),
  };
}

async function stdout(): Promise<ContractSubject> {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  return {
    sink: stdoutSink({}, makeContext(), stream),
    destinations: [],
    arrived: async () =>
      Buffer.concat(chunks)
        .toString()
        .split('\n')
        .slice(0, -1)
        .map((line) => {
          const parsed = parseRecord(Buffer.from(line));
          if (!parsed.ok) throw new Error(parsed.reason);
          return { id: parsed.record.id, destination: null, body: Buffer.from(parsed.body) };
        }),
    outage: { impossible: 'a stream that has failed once stays closed' },
    dispose: async () => undefined,
  };
}

describe.each([
  ['files', { compress: 'none' }, files],
  ['files', { compress: 'gzip' }, files],
  ['files', { compress: 'zstd' }, files],
  ['files in a store', { spool: true }, store],
  ['files in a store', { spool: false }, store],
  ['event-hubs', { compression: 'auto' }, broker(makeHub)],
  ['event-hubs', { compression: 'always' }, broker(makeHub)],
  ['event-hubs', { compression: 'never' }, broker(makeHub)],
  ['pubsub', { compression: 'auto', ordering: false }, broker(makeTopic)],
  ['pubsub', { compression: 'always', ordering: true }, broker(makeTopic)],
  ['pubsub', { compression: 'never', ordering: true }, broker(makeTopic)],
  ['http', { sign: 'standard-webhooks' }, http],
  ['http', { sign: 'original' }, http],
  ['http', { sign: 'none' }, http],
  ['stdout', {}, stdout],
] satisfies [string, Options, (options: Options) => Promise<ContractSubject>][])(
  '%s %j: the sink contract',
  async (_, options, make) => {
    await runContract(() => make(options));
  },
);

/** Brings what it holds to its place when it is closed, unless it is down or forgets about it. */
class Holding implements Sink {
  readonly limits = { ...LIMITS, eventBytes: Number.POSITIVE_INFINITY };
  readonly arrived: Arrived[] = [];
  readonly #when: 'closed' | 'never' | 'at once';
  #held: Delivery[] = [];
  #confirmed = Promise.withResolvers<void>();

  constructor(when: 'closed' | 'never' | 'at once') {
    this.#when = when;
  }

  async open(): Promise<void> {}

  async send(batch: readonly Delivery[], { aborted }: AbortSignal): Promise<SendResult[]> {
    if (aborted) return batch.map(() => ({ status: 'retry', reason: 'stopped' }));
    this.#held.push(...batch.filter(({ event }) => !this.#held.some((held) => held.event.id === event.id)));
    if (this.#when === 'at once') this.#confirmed.resolve();
    return batch.map(() => ({ status: 'held', until: this.#confirmed.promise }));
  }

  async close({ aborted }: AbortSignal): Promise<void> {
    if (this.#when === 'never' || aborted) return;
    for (const { event, destination } of this.#held)
      this.arrived.push({ id: event.id, destination, body: event.body });
    this.#held = [];
    this.#confirmed.resolve();
  }
}

describe('the contract of a sink that holds what it is sent', () => {
  it.each([
    ['closed', []],
    ['never', ['answers once for each delivery, and what is delivered arrives']],
    ['at once', ['never refuses or claims an event while the far side is down, and recovers']],
  ] as const)('confirmed %s: fails %j', async (when, expected) => {
    const tests = await sinkContract(async () => {
      const sink = new Holding(when);
      return {
        sink,
        destinations: ['second'],
        arrived: async () => sink.arrived,
        outage: { begin: async () => undefined, end: async () => undefined },
        dispose: async () => undefined,
      };
    });
    const failed: string[] = [];
    for (const { name, run } of tests) await run().catch(() => failed.push(name));
    if (when === 'never') expect(failed).toEqual(expect.arrayContaining([...expected]));
    else expect(failed).toEqual(expected);
  });
});
