import { describe, expect, it } from 'vitest';
import { parseOptions } from '../../src/sinks/kafka/config.ts';
import { clientOptions } from '../../src/sinks/kafka/connection.ts';

const brokers = ['kafka-1.example.com:9093', 'kafka-2.example.com:9093'];
const hubs = ['acme.servicebus.windows.net:9093'];
const scram = { mechanism: 'scram-sha-256', username: 'millrace', password: 's3cret' };
const plain = { mechanism: 'plain', username: '$ConnectionString', password: 'Endpoint=sb://…' };

describe('kafka options', () => {
  it('has defaults', () => {
    expect(parseOptions({ brokers })).toEqual({
      connection: { brokers, tls: {}, sasl: null, eventHubs: false },
      topic: null,
      compression: 'auto',
      codec: 'none',
      idempotent: true,
      maxEventBytes: 2 ** 20,
      timeout: 15_000,
      batch: { count: 500, bytes: 4 * 2 ** 20 },
    });
  });

  it('takes the brokers as one text, as an environment variable has them', () => {
    expect(parseOptions({ brokers: brokers.join(', ') }).connection.brokers).toEqual(brokers);
  });

  it('signs in with the mechanism by the name the protocol has for it', () => {
    const { connection } = parseOptions({ brokers, sasl: scram });
    expect(clientOptions(connection, 3000)).toMatchObject({
      bootstrapBrokers: brokers,
      sasl: { mechanism: 'SCRAM-SHA-256', username: 'millrace', password: 's3cret' },
      tls: {},
    });
  });

  it('takes Event Hubs with what it can do', () => {
    const options = { brokers: hubs, sasl: plain, idempotent: false };
    expect(parseOptions(options).connection.eventHubs).toBe(true);
  });

  it.each([
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
    [
      { brokers: hubs, sasl: plain, idempotent: false, codec: 'zstd' },
      /codec: must be none or gzip: Event Hubs/,
    ],
    [
      { brokers: hubs, sasl: plain, idempotent: false, maxEventBytes: '2MiB' },
      /maxEventBytes: must be at most 1MiB/,
    ],
    [{ brokers, acks: 1 }, /acks/],
  ])('%j: %s', (options, problem) => {
    expect(() => parseOptions(options)).toThrow(problem);
  });

  it('takes a password in the clear on this machine only', () => {
    expect(
      parseOptions({ brokers: ['127.0.0.1:9092'], tls: { enabled: false }, sasl: plain }).connection.tls,
    ).toBeNull();
  });
});
