import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it, test } from 'vitest';
import { parseOptions as eventHubs } from '../../src/sinks/event-hubs/config.ts';
import { parseOptions as files } from '../../src/sinks/files/config.ts';
import { parseOptions as http } from '../../src/sinks/http/config.ts';
import { parseOptions as kafka } from '../../src/sinks/kafka/config.ts';
import { clientOptions } from '../../src/vendors/kafka/connection.ts';
import { parseOptions as pubsub } from '../../src/sinks/pubsub/config.ts';
import { parseOptions as stdout } from '../../src/sinks/stdout/config.ts';
import { SECRET } from './http-support.ts';

const MIB = 2 ** 20;
const ACCESS = 'SharedAccessKeyName=send;SharedAccessKey=c2VjcmV0cw==';
const connectionString = `Endpoint=sb://acme.servicebus.windows.net/;${ACCESS}`;
const url = 'https://hooks.example.com/health';
const signed = { url, secrets: [SECRET] };
const PUBLIC = 'whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=';
const PEM = `-----BEGIN CERTIFICATE-----
MIIBOjCB7aADAgECAhRVg/7YFqIkmmIiyr45CNLz8KZG/DAFBgMrZXAwEjEQMA4G
A1UEAwwHbWFkZS11cDAgFw0yNjExMjIxNjA3NThaGA8yMTI2MTAyOTE2MDc1OFow
EjEQMA4GA1UEAwwHbWFkZS11cDAqMAUGAytlcAMhAFvfZeIwbIH307hZHNHxoF5y
19ueU6eWxpic+uOYFzA0o1MwUTAdBgNVHQ4EFgQUIW2W9e8HHmnWU7E+92j6gxMW
UEIwHwYDVR0jBBgwFoAUIW2W9e8HHmnWU7E+92j6gxMWUEIwDwYDVR0TAQH/BAUw
AwEB/zAFBgMrZXADQQCcKnuei2Hne7su9rrRuiZ/8hpdte0xeeFvpTFXZ3vUg/uM
wBrsxCucbr4WUWVPPBENWRR+nKvAqotEcCy/LYcE
-----END CERTIFICATE-----
`;
const KEY = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const BROKEN = '-----BEGIN CERTIFICATE-----';
const brokers = ['kafka-1.example.com:9093', 'kafka-2.example.com:9093'];
const hubs = ['acme.servicebus.windows.net:9093'];
const scram = { mechanism: 'scram-sha-256', username: 'millrace', password: 's3cret' };
const plain = { mechanism: 'plain', username: '$ConnectionString', password: 'Endpoint=sb://…' };
const onHubs = { brokers: hubs, sasl: plain, idempotent: false };

describe('what is left out has a default', () => {
  test.each([
    [
      files({ path: 'a' }),
      {
        path: 'a',
        spool: null,
        compress: 'gzip',
        rotate: { bytes: 134_217_728, every: 3_600_000 },
        partitionBy: ['date'],
      },
    ],
    [
      eventHubs({ connectionString }),
      {
        connection: { by: 'key', connectionString },
        hub: null,
        compression: 'auto',
        timeout: 15_000,
        maxEventBytes: MIB,
        batch: { count: 500, bytes: 4 * MIB },
      },
    ],
    [
      kafka({ brokers }),
      {
        connection: { brokers, tls: {}, sasl: null, eventHubs: false },
        topic: null,
        compression: 'auto',
        codec: 'none',
        idempotent: true,
        maxEventBytes: MIB,
        timeout: 15_000,
        batch: { count: 500, bytes: 4 * MIB },
      },
    ],
    [
      pubsub({ project: 'acme' }),
      {
        project: 'acme',
        topic: null,
        ordering: false,
        compression: 'auto',
        maxEventBytes: 10_000_000,
        timeout: 15_000,
        endpoint: null,
      },
    ],
  ])('%j', (options: object, expected) => expect(options).toEqual(expected));

  it('http needs a URL and a secret only', () => {
    const { targets, allowed, ...rest } = http(signed);
    expect(rest).toEqual({
      sign: 'standard-webhooks',
      concurrency: 8,
      rate: 0,
      timeout: 15_000,
      maxEventBytes: 10 * MIB,
      retry: [401, 403, 404, 405, 407, 408, 410, 421, 425, 429],
    });
    expect(targets).toMatchObject([{ name: null, url: new URL(url), headers: {}, tls: {} }]);
    expect(targets[0]?.secrets).toHaveLength(1);
    expect(allowed.check('10.0.0.1')).toBe(false);
  });
});

describe('what is written is read', () => {
  test.each<[object, object]>([
    [
      files({ path: 'a', rotate: { bytes: '1MiB', every: 60_000 } }),
      { rotate: { bytes: MIB, every: 60_000 } },
    ],
    [files({ path: 's3://bucket/lake/' }), { path: 's3://bucket/lake' }],
    [
      pubsub({
        project: 'acme',
        topic: 'projects/other/topics/events',
        maxEventBytes: '1MiB',
        timeout: '5s',
      }),
      { topic: 'projects/other/topics/events', maxEventBytes: MIB, timeout: 5000 },
    ],
    [pubsub({ project: 'acme', endpoint: 'eu.googleapis.com:443' }), { endpoint: 'eu.googleapis.com:443' }],
    // The EntityPath is taken out of the way.
    [
      eventHubs({ connectionString: `${connectionString};EntityPath=meals` }),
      { hub: 'meals', connection: { connectionString } },
    ],
    [eventHubs({ connectionString, hub: 'events' }), { hub: 'events' }],
    [
      eventHubs({ fullyQualifiedNamespace: 'acme.servicebus.windows.net', managedIdentityClientId: 'id' }),
      { connection: { by: 'identity', address: 'acme.servicebus.windows.net', clientId: 'id' } },
    ],
    [
      eventHubs({ fullyQualifiedNamespace: 'acme.servicebus.windows.net' }),
      { connection: { by: 'identity', clientId: null } },
    ],
    [kafka({ brokers: brokers.join(', ') }), { connection: { brokers } }],
    [kafka(onHubs), { connection: { eventHubs: true } }],
    // A password in the clear stays on this machine.
    [
      kafka({ brokers: ['127.0.0.1:9092'], tls: { enabled: false }, sasl: plain }),
      { connection: { tls: null } },
    ],
    // By the name that the protocol has for it.
    [
      clientOptions(kafka({ brokers, sasl: scram }).connection, 3000),
      { bootstrapBrokers: brokers, sasl: { ...scram, mechanism: 'SCRAM-SHA-256' }, tls: {} },
    ],
  ])('%j', (options, expected) => expect(options).toMatchObject(expected));

  it('http: each target has what is its own, and the rest of the sink', () => {
    const { targets } = http({
      secrets: [`${SECRET} ${SECRET}`],
      headers: { 'X-One': '1', 'X-Two': '2' },
      tls: { ca: PEM },
      targets: {
        a: { url },
        b: { ...signed, headers: { 'x-two': 'b' }, tls: { cert: PEM, key: KEY } },
      },
    });
    expect(targets.map(({ name, secrets, headers, tls }) => [name, secrets.length, headers, tls])).toEqual([
      ['a', 2, { 'x-one': '1', 'x-two': '2' }, { ca: PEM }],
      ['b', 1, { 'x-one': '1', 'x-two': 'b' }, { cert: PEM, key: KEY }],
    ]);
  });
});

const WRONG: [parse: (options: object) => unknown, rows: [options: object, problem: RegExp][]][] = [
  [stdout, [[{ path: 'x' }, /path/]]],
  [
    files,
    [
      [{}, /^path: /],
      [{ path: 'gcs://acme/archive' }, /^path: gcs:\/\/ is not known here/],
      [{ path: 'a', compres: 'gzip' }, /compres/],
      [{ path: 'a', compress: 'brotli' }, /^compress: /],
      [{ path: 'a', rotate: { bytes: 'much' } }, /^rotate\.bytes: must be a size such as/],
      [{ path: 'a', rotate: { every: '0s' } }, /^rotate\.every: /],
      [{ path: 'a', partitionBy: ['date', 'day'] }, /^partitionBy\[1\]: /],
      [{ path: 'a', partitionBy: ['date', 'date'] }, /^partitionBy: names a key twice/],
    ],
  ],
  [
    eventHubs,
    [
      [{}, /^connectionString: must be set/],
      [{ connectionString, fullyQualifiedNamespace: 'a.b' }, /^connectionString: must be left out/],
      [{ connectionString, managedIdentityClientId: 'id' }, /^managedIdentityClientId: needs/],
      [{ connectionString: 'Endpoint=sb://a.b/' }, /^connectionString: must hold Endpoint/],
      [{ connectionString: ACCESS }, /^connectionString: must hold Endpoint(?!.*c2VjcmV0cw)/],
      [{ connectionString: `${connectionString};EntityPath=a`, hub: 'b' }, /^hub: must be the EntityPath/],
      [{ connectionString, hub: 'a/b' }, /^hub: must be the name/],
      [{ connectionString, compression: 'zstd' }, /^compression: /],
      [{ connectionString, timeout: '1ms' }, /^timeout: /],
      [{ connectionString, topic: 'x' }, /topic/],
    ],
  ],
  [
    http,
    [
      [{ secrets: [SECRET] }, /^url: must be set, or targets$/],
      [{ ...signed, url: 'ftp://a' }, /^url: must be an http/],
      [{ ...signed, url: 'https://' }, /^url: is not a URL$/],
      [{ ...signed, url: 'https://user:secret@a.b' }, /^url: must have no user and password; use headers$/],
      [{ ...signed, url: 'http://1.1.1.1/' }, /^url: .*only https/],
      [{ url }, /^secrets: must hold a secret/],
      [{ url, secrets: [' '] }, /^secrets: must hold a secret/],
      [{ url, secrets: ['whsec_c2hvcnQ='] }, /^secrets: secret 1 is shorter/],
      [{ url, secrets: [PUBLIC] }, /^secrets: secret 1 is a public key/],
      [{ ...signed, targets: { a: { url, secrets: [] } } }, /^targets\.a\.secrets: must hold/],
      [{ ...signed, targets: { 'a:b': { url } } }, /targets/],
      [{ ...signed, targets: { a: { headers: {} } } }, /^targets\.a\.url: must be set/],
      [{ ...signed, headers: { 'Webhook-Id': 'x' } }, /^headers: Webhook-Id is set by millrace$/],
      [{ ...signed, headers: { 'content-length': '1' } }, /^headers: content-length is set/],
      [{ ...signed, headers: { 'a b': 'x' } }, /^headers: "a b" is not the name/],
      [{ ...signed, headers: { a: 'x\r\ny: z' } }, /^headers\.a: must be one line/],
      [{ ...signed, tls: { cert: PEM } }, /^tls: cert and key must be set together$/],
      [{ ...signed, tls: { ca: BROKEN } }, /^tls: ca is not a certificate/],
      [{ ...signed, tls: { cert: BROKEN, key: KEY } }, /^tls: cert is not a certificate/],
      [{ ...signed, tls: { cert: PEM, key: PEM } }, /^tls: key is not a private key/],
      [{ ...signed, url: 'http://hooks.example.com/' }, /^url: must be an https URL/],
      [{ ...signed, privateNetworks: ['10.0.0.0/99'] }, /^privateNetworks: .* no network/],
      [{ ...signed, sign: 'original' }, /^secrets: must be left out with sign: original$/],
      [{ ...signed, sign: 'sha1' }, /^sign: must be one of/],
      [{ ...signed, retry: [500] }, /^retry\[0\]/],
      [{ ...signed, concurrency: 0 }, /^concurrency/],
      [{ ...signed, timeout: 1 }, /^timeout/],
      [{ ...signed, redirects: 3 }, /redirects/],
    ],
  ],
  [
    kafka,
    [
      [{}, /brokers: must name a broker/],
      [{ brokers: ['kafka'] }, /brokers: "kafka" must be host:port/],
      [{ brokers: ['kafka:99999'] }, /brokers: .* must be host:port/],
      [{ brokers, topic: 'a/b' }, /topic: must be 1 to 249/],
      [{ brokers, topic: '..' }, /topic: must be 1 to 249/],
      [{ brokers, codec: 'brotli' }, /codec: must be one of none, gzip/],
      [{ brokers, sasl: { mechanism: 'gssapi' } }, /sasl\.mechanism/],
      [{ brokers, sasl: { mechanism: 'plain', username: 'a' } }, /sasl\.password: must be set for plain/],
      [{ brokers, sasl: { mechanism: 'oauthbearer' } }, /sasl\.tokenFile: must be set/],
      [{ brokers, sasl: { ...scram, tokenFile: '/run/token' } }, /sasl\.tokenFile: is for oauthbearer only/],
      [{ brokers, tls: { cert: 'x' } }, /tls: cert and key must be set together/],
      [{ brokers, tls: { ca: 'x' } }, /tls\.ca: is not a certificate in PEM/],
      [{ brokers, tls: { enabled: false, ca: 'x' } }, /tls\.ca: has no use/],
      [{ brokers, tls: { enabled: false }, sasl: plain }, /tls\.enabled: must be true: plain would send/],
      [{ brokers: hubs, idempotent: false }, /sasl: must be set, and tls left on/],
      [{ brokers: hubs, sasl: plain }, /idempotent: must be false: Event Hubs/],
      [{ ...onHubs, codec: 'zstd' }, /codec: must be none or gzip: Event Hubs/],
      [{ ...onHubs, maxEventBytes: '2MiB' }, /maxEventBytes: must be at most 1MiB/],
      [{ brokers, acks: 1 }, /acks/],
    ],
  ],
  [
    pubsub,
    [
      [{}, /project/],
      [{ project: 'a/b' }, /project/],
      [{ project: 'acme', topic: 'ab' }, /topic/],
      [{ project: 'acme', topic: 'google-events' }, /topic/],
      [{ project: 'acme', topic: 'a b c' }, /topic/],
      [{ project: 'acme', compression: 'zstd' }, /compression/],
      [{ project: 'acme', ordering: 'yes' }, /ordering/],
      [{ project: 'acme', maxEventBytes: '11MB' }, /maxEventBytes/],
      [{ project: 'acme', timeout: 1 }, /timeout/],
      [{ project: 'acme', endpoint: 'a b' }, /endpoint/],
      [{ project: 'acme', subject: 'x' }, /subject/],
    ],
  ],
];

describe('what is wrong is named by its key', () => {
  test.each(
    WRONG.flatMap(([parse, rows]) => rows.map(([options, problem]) => [options, problem, parse] as const)),
  )('%j: %s', (options, problem, parse) => expect(() => parse(options)).toThrow(problem));
});
