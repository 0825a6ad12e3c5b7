import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished, test } from 'vitest';
import type { ClaimCheck, Sink } from '../../src/core/sink.ts';
import { OwnSink, StrayErrors } from '../../src/sinks/own-sink.ts';
import { loadSinkModule } from '../../src/sinks/registry.ts';
import { LIMITS } from '../deliver/support.ts';
import { Endpoint, type Reply } from './http-support.ts';
import { runContract } from './run-contract.ts';
import { deliver, makeContext, signal } from './support.ts';

const module = await loadSinkModule(
  './own-sink.js',
  fileURLToPath(new URL('../../config/examples', import.meta.url)),
);
const { createSink } = await module.load();

async function makeSink(options: object = {}) {
  const endpoint = await new Endpoint().start();
  const sink = createSink(module.parseOptions({ url: endpoint.url('/ingest'), ...options }), makeContext());
  return { endpoint, sink };
}

describe('own-sink.js: the sink contract', async () => {
  await runContract(async () => {
    const { endpoint, sink } = await makeSink();
    const answer = async (reply: Reply): Promise<void> => void (endpoint.reply = () => reply);
    return {
      sink,
      destinations: ['meals', 'a/b c'],
      arrived: async () =>
        endpoint.posts
          .filter(({ status }) => status < 300)
          .flatMap(({ path, body: text }) => {
            const [, , place] = path.split('/');
            const lines = text.toString().split('\n').slice(0, -1);
            return lines.map((line) => {
              const { id, body } = JSON.parse(line) as { id: string; body: string };
              const destination = place === undefined ? null : decodeURIComponent(place);
              return { id, destination, body: Buffer.from(body, 'base64') };
            });
          }),
      outage: { begin: () => answer(503), end: () => answer(200) },
      dispose: () => endpoint.stop(),
    };
  });
});

describe('own-sink.js', () => {
  it.each([
    [429, { 'retry-after': '7' }, { status: 'retry', sink: true, delayMs: 7000 }],
    [500, {}, { status: 'retry', sink: true }],
    [401, {}, { status: 'retry', sink: true }],
    [400, {}, { status: 'refused', code: 'http_400', batch: true }],
  ])('maps %d', async (status, headers, expected) => {
    const { endpoint, sink } = await makeSink({ token: 'secret' });
    onTestFinished(() => endpoint.stop());
    endpoint.reply = () => [status, headers];
    await sink.open(signal);
    const [first, second] = await sink.send(deliver(1, 2), signal);
    expect(first).toMatchObject(expected);
    expect(second).toEqual(first);
    expect(endpoint.posts[0]?.headers.authorization).toBe('Bearer secret');
    await sink.close(signal);
  });

  it.each([
    [{}, 'url'],
    [{ url: 'nowhere' }, 'url'],
    [{ url: 'http://x', token: 1 }, 'token'],
    [{ url: 'http://x', tokn: 'x' }, 'tokn: unknown key'],
  ])('names the key that is wrong: %j', (options, key) => {
    expect(() => module.parseOptions(options)).toThrow(key);
  });
});

/** A sink of a user's module with these members. */
function ownWith(members: object): OwnSink {
  const context = makeContext();
  const sink = { limits: LIMITS, ...members } as Sink;
  return new OwnSink(sink, LIMITS, new StrayErrors('/own.mjs', context), () => undefined);
}

describe('keep of a module', () => {
  const CLAIM: ClaimCheck = { path: 'kept/1.json', sha256: 'a'.repeat(64), bytes: 12 };
  const [{ event } = { event: null! }] = deliver(1, 1);

  test('a body that it changes is changed for no other sink', async () => {
    const before = Buffer.from(event.body);
    const keep = async ({ body }: { body: Buffer }): Promise<ClaimCheck> => {
      body.fill(0);
      return CLAIM;
    };
    await expect(ownWith({ keep }).keep?.(event, signal)).resolves.toEqual(CLAIM);
    expect(event.body).toEqual(before);
  });

  test.each([undefined, null, {}, { ...CLAIM, sha256: 'no hash' }, { ...CLAIM, path: '' }])(
    'no pointer is made of %j instead of a claim check',
    async (answer) => {
      const own = ownWith({ keep: () => Promise.resolve(answer) });
      await expect(own.keep?.(event, signal)).rejects.toThrow('keep must resolve to');
    },
  );
});

const seenOf = (skipped: (() => unknown) | undefined): unknown => ownWith({ skipped }).skipped();

function broken(): never {
  throw new Error('made up');
}

test('what a module says it skipped is shown when it is names and counts, and few of them', () => {
  expect(seenOf(() => new Map([['made.up', 2]]))).toEqual([['made.up', 2]]);
  const many = Array.from({ length: 200 }, (_, n) => [`made.up.${n}`, 1]);
  for (const odd of [undefined, () => null, () => 7, () => [['a']], () => [['a', -1]], () => many, broken])
    expect(seenOf(odd)).toEqual([]);
});
