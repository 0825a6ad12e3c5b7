import { expect, it } from 'vitest';
import { resolveText } from '../../src/config/load.ts';
import { parseOptions as eventHubs } from '../../src/sources/event-hubs/source.ts';
import { parseOptions as kafka } from '../../src/sources/kafka/config.ts';
import { parseOptions as pubsub } from '../../src/sources/pubsub/source.ts';
import { BASE } from '../config/helpers.ts';

const connectionString = 'Endpoint=sb://acme.example/;SharedAccessKeyName=k;SharedAccessKey=c2VjcmV0';
const HUB = { connectionString, hub: 'events' };
const KEY = 'DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=aHVudGVyMg==';
const ACCOUNT = 'https://acme.blob.core.windows.net';
const brokers = 'kafka:9093';
const READER = { project: 'acme', subscription: 'reader' };

const inHub = (checkpoints: unknown): object => ({ ...HUB, checkpoints });
const blobs = (options: object): object =>
  inHub({ type: 'blob-storage', container: 'checkpoints', ...options });

it.each<[object, object]>([
  [
    kafka({ brokers, topic: 'events' }),
    {
      connection: { brokers: [brokers], tls: {}, sasl: null, eventHubs: false },
      topic: 'events',
      group: 'millrace',
      start: 'earliest',
      fetchBytes: 8 * 2 ** 20,
      session: 30_000,
      timeout: 15_000,
    },
  ],
  [
    pubsub(READER),
    { ...READER, endpoint: null, held: { messages: 1000, bytes: 64 * 2 ** 20 }, timeout: 15_000 },
  ],
  [eventHubs(HUB).checkpoints, { type: 'journal' }],
  [eventHubs(inHub('journal')).checkpoints, { type: 'journal' }],
  [
    eventHubs(blobs({ connectionString: KEY })).checkpoints,
    {
      type: 'blob-storage',
      storage: { by: 'key', connectionString: KEY },
      container: 'checkpoints',
      takeOverAfter: 60_000,
    },
  ],
  [
    eventHubs(blobs({ accountUrl: `${ACCOUNT}/`, takeOverAfter: '30s' })).checkpoints,
    {
      type: 'blob-storage',
      storage: { by: 'identity', address: ACCOUNT, clientId: null },
      container: 'checkpoints',
      takeOverAfter: 30_000,
    },
  ],
])('%j', (options, expected) => expect(options).toEqual(expected));

it.each<[(options: object) => unknown, object, RegExp]>([
  [eventHubs, { connectionString }, /^hub: must name/],
  [eventHubs, { ...HUB, start: 'now' }, /^start: /],
  [eventHubs, inHub('blobs'), /^checkpoints\.type: /],
  [eventHubs, inHub({ type: 'blob-storage', connectionString: KEY }), /^checkpoints\.container: /],
  [eventHubs, blobs({}), /^checkpoints\.connectionString: must be set, or accountUrl/],
  [eventHubs, blobs({ connectionString: KEY, accountUrl: ACCOUNT }), /^checkpoints\.conn.*must be left out/],
  [eventHubs, blobs({ connectionString: 'AccountKey=aHVudGVyMg==' }), /^(?!.*aHVudGVyMg).*must hold/],
  [eventHubs, blobs({ accountUrl: 'http://acme.example' }), /^checkpoints\.accountUrl: /],
  [eventHubs, blobs({ connectionString: KEY, container: 'No' }), /^checkpoints\.container: /],
  [eventHubs, blobs({ connectionString: KEY, takeOverAfter: '10ms' }), /^checkpoints\.takeOverAfter: /],
  [eventHubs, blobs({ connectionString: KEY, managedIdentityClientId: 'a' }), /ClientId: needs accountUrl/],
  [eventHubs, inHub({ type: 'journal', container: 'checkpoints' }), /^checkpoints: .*container/],
  [kafka, { brokers }, /topic/],
  [kafka, { brokers, topic: 'a b' }, /topic/],
  [kafka, { topic: 'events' }, /brokers/],
  [kafka, { brokers, topic: 'events', group: '' }, /group/],
  [kafka, { brokers, topic: 'events', start: 'now' }, /start/],
  [pubsub, { project: 'acme' }, /subscription/],
  [pubsub, { project: 'acme', subscription: 'a b c' }, /subscription/],
  [pubsub, { subscription: 'reader' }, /project/],
  [pubsub, { ...READER, held: { messages: 0 } }, /held\.messages/],
  [pubsub, { ...READER, topic: 'x' }, /topic/],
])('%o does not take %j', (parse, options, message) => {
  expect(() => parse(options)).toThrow(message);
});

function stateless(checkpoints: object) {
  const sources = { hub: { type: 'event-hubs', ...inHub(checkpoints) } };
  const text = `acknowledge: delivered\nsources: ${JSON.stringify(sources)}${BASE}`;
  return resolveText(text, { file: 'c.yaml', env: {} });
}

it('checkpoints must lie outside where there is no journal', async () => {
  await expect(stateless({ type: 'journal' })).rejects.toThrow('needs acknowledge: journaled');
  const outside = { type: 'blob-storage', container: 'checkpoints', accountUrl: ACCOUNT };
  expect((await stateless(outside)).config.acknowledge).toBe('delivered');
});
