import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { certificates } from '../support/certificates.ts';
import { describeOnKafka } from '../support/kafka/cluster.ts';
import { idsOf, makeSink, put } from './kafka-support.ts';
import { signal, tempFolder } from './support.ts';

const { ca, server, serverKey, client, clientKey } = certificates();
const USER = { name: 'made-up', password: 'made-up-password' };
const ACCESS = { user: USER, tls: { identity: `${serverKey}${server}`, trusted: ca } };

const login = (mechanism: string, password = USER.password) => ({
  mechanism,
  username: USER.name,
  password,
});

/** A token without a signature, for an hour. */
const token = (): string => {
  const now = Math.floor(Date.now() / 1000);
  const parts = [{ alg: 'none' }, { sub: USER.name, iat: now, exp: now + 3600 }];
  return `${parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')}.`;
};

describeOnKafka('kafka sink', ACCESS, ({ addresses, oracle }) => {
  const tls = { enabled: true, ca, cert: client, key: clientKey };
  const make = (options: object) => {
    const sink = makeSink(addresses, { tls, ...options });
    onTestFinished(() => sink.close(signal));
    return sink;
  };
  const allowed = async (): Promise<string> => {
    const topic = `events-${randomUUID()}`;
    await oracle.create(topic, 1);
    await oracle.allow(USER.name, topic);
    return topic;
  };
  it.each(['plain', 'scram-sha-512'])('signs in with %s over mutual TLS', async (mechanism) => {
    const topic = await allowed();
    const sink = make({ topic, sasl: login(mechanism) });
    await sink.open(signal);
    await put(sink, [contractEvent(1)]);
    expect(idsOf(await oracle.read(topic))).toEqual(['msg_1']);
  });

  it('signs in with a token, which is read again each time', async () => {
    const topic = await allowed();
    const tokenFile = join(tempFolder(), 'token');
    writeFileSync(tokenFile, 'none yet');
    const sink = make({ topic, sasl: { mechanism: 'oauthbearer', tokenFile } });
    await expect(sink.open(signal)).rejects.toThrow(/access denied/);
    writeFileSync(tokenFile, `${token()}\n`);
    await sink.open(signal);
    await put(sink, [contractEvent(1)]);
  });

  it.each(['plain', 'scram-sha-512'])(
    'waits while the password of %s is wrong, and does not print it',
    async (mechanism) => {
      const topic = await allowed();
      const sink = make({ topic, sasl: login(mechanism, 'wr0ng') });
      const error: unknown = await sink.open(signal).catch((reason: unknown) => reason);
      expect(String(error)).toMatch(/access denied; check the credentials/);
      expect(String(error)).not.toContain('wr0ng');
      const results = await sink.send([{ event: contractEvent(1), destination: null }], signal);
      expect(results).toMatchObject([{ status: 'retry', sink: true }]);
    },
  );

  it('waits for the right to write', async () => {
    const topic = `events-${randomUUID()}`;
    await oracle.create(topic, 1);
    const sink = make({ topic, sasl: login('plain') });
    await expect(sink.open(signal)).rejects.toThrow(/access denied/);
    await oracle.allow(USER.name, topic);
    await sink.open(signal);
    await put(sink, [contractEvent(1)]);
  });

  it('trusts no other broker, and shows who it is', async () => {
    const strange = make({ sasl: login('plain'), tls: { cert: client, key: clientKey } });
    await expect(strange.open(signal)).rejects.toThrow(/certificate/);
    const nameless = make({ sasl: login('plain'), tls: { ca } });
    await expect(nameless.open(signal)).rejects.toThrow(/^kafka: /);
    const plain = make({ tls: { enabled: false }, sasl: login('scram-sha-512') });
    await expect(plain.open(signal)).rejects.toThrow(/^kafka: /);
  });
});
