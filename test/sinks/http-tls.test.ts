import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { lacksProgram, skipped } from '../support/requirements.ts';
import { openHttp, startEndpoint } from './http-support.ts';
import { deliver, signal, tempFolder } from './support.ts';

const lack = lacksProgram('openssl');

/** An authority and what it has signed, made for one test; PEM. */
function certificates(): Record<'ca' | 'server' | 'serverKey' | 'client' | 'clientKey', string> {
  const folder = tempFolder();
  const openssl = (line: string): Buffer =>
    execFileSync('openssl', line.split(' '), { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] });
  const key = 'ec -pkeyopt ec_paramgen_curve:prime256v1 -noenc';
  openssl(`req -x509 -newkey ${key} -keyout ca.key -out ca.pem -subj /CN=made-up-ca -days 2`);
  for (const [name, more] of [
    ['server', '-addext subjectAltName=IP:127.0.0.1'],
    ['client', '-addext extendedKeyUsage=clientAuth'],
  ])
    openssl(
      `req -x509 -newkey ${key} -CA ca.pem -CAkey ca.key -keyout ${name}.key -out ${name}.pem -subj /CN=${name} -days 2 -addext basicConstraints=critical,CA:FALSE ${more}`,
    );
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
  return {
    ca: read('ca.pem'),
    server: read('server.pem'),
    serverKey: read('server.key'),
    client: read('client.pem'),
    clientKey: read('client.key'),
  };
}

describe.skipIf(lack)(`mutual TLS${skipped(lack)}`, () => {
  test('the target is known by our authority, and we are known by our certificate', async () => {
    const { ca, server, serverKey, client, clientKey } = certificates();
    const tls = { ca, cert: server, key: serverKey, requestCert: true, rejectUnauthorized: true };
    const endpoint = await startEndpoint(tls);
    const url = endpoint.url('/');

    const known = await openHttp({ url, tls: { ca, cert: client, key: clientKey } });
    expect(await known.send(deliver(1, 1), signal)).toEqual([{ status: 'delivered' }]);

    const nameless = await openHttp({ url, tls: { ca } });
    expect(await nameless.send(deliver(2, 1), signal)).toMatchObject([{ status: 'retry' }]);
    // Without our authority the target could be anybody.
    const trusting = await openHttp({ url, tls: { cert: client, key: clientKey } });
    expect(await trusting.send(deliver(3, 1), signal)).toMatchObject([
      { status: 'retry', reason: /certificate/ },
    ]);
    expect(endpoint.ids()).toEqual(['msg_1']);
  });

  test('each target has its own', async () => {
    const [one, other] = [certificates(), certificates()];
    const serve = ({ ca, server, serverKey }: typeof one): ReturnType<typeof startEndpoint> =>
      startEndpoint({ ca, cert: server, key: serverKey, requestCert: true, rejectUnauthorized: true });
    const [first, second] = [await serve(one), await serve(other)];
    const tlsOf = ({ ca, client, clientKey }: typeof one): object => ({ ca, cert: client, key: clientKey });
    const sink = await openHttp({
      url: first.url('/'),
      tls: tlsOf(one),
      targets: { second: { url: second.url('/'), tls: tlsOf(other) }, wrong: { url: second.url('/') } },
    });
    const results = [null, 'second', 'wrong'].map((place) => sink.send(deliver(1, 1, {}, place), signal));
    expect((await Promise.all(results)).flat().map(({ status }) => status)).toEqual([
      'delivered',
      'delivered',
      'retry',
    ]);
  });
});
