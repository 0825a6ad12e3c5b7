import { describe, expect, test } from 'vitest';
import { certificates } from '../support/certificates.ts';
import { lacksProgram, skipped } from '../support/requirements.ts';
import { openHttp, startEndpoint } from './http-support.ts';
import { deliver, signal } from './support.ts';

const lack = lacksProgram('openssl');

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
