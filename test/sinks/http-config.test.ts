import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { parseOptions } from '../../src/sinks/http/config.ts';
import { SECRET } from './http-support.ts';

const URL_TEXT = 'https://hooks.example.com/health';
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

describe('http options', () => {
  it('needs a URL and a secret only', () => {
    const { targets, allowed, ...rest } = parseOptions({ url: URL_TEXT, secrets: [SECRET] });
    expect(rest).toEqual({
      sign: 'standard-webhooks',
      concurrency: 8,
      rate: 0,
      timeout: 15_000,
      maxEventBytes: 10 * 2 ** 20,
      retry: [401, 403, 404, 405, 407, 408, 410, 421, 425, 429],
    });
    expect(targets).toMatchObject([{ name: null, url: new URL(URL_TEXT), headers: {}, tls: {} }]);
    expect(targets[0]?.secrets).toHaveLength(1);
    expect(allowed.check('10.0.0.1')).toBe(false);
  });

  it('gives each target what is its own, and the rest of the sink', () => {
    const { targets } = parseOptions({
      secrets: [`${SECRET} ${SECRET}`],
      headers: { 'X-One': '1', 'X-Two': '2' },
      tls: { ca: PEM },
      targets: {
        a: { url: URL_TEXT },
        b: { url: URL_TEXT, secrets: [SECRET], headers: { 'x-two': 'b' }, tls: { cert: PEM, key: KEY } },
      },
    });
    expect(targets.map(({ name, secrets, headers, tls }) => [name, secrets.length, headers, tls])).toEqual([
      ['a', 2, { 'x-one': '1', 'x-two': '2' }, { ca: PEM }],
      ['b', 1, { 'x-one': '1', 'x-two': 'b' }, { cert: PEM, key: KEY }],
    ]);
  });

  const signed = { url: URL_TEXT, secrets: [SECRET] };
  it.each([
    [{ secrets: [SECRET] }, /^url: must be set, or targets$/],
    [{ ...signed, url: 'ftp://a' }, /^url: must be an http/],
    [{ ...signed, url: 'https://' }, /^url: is not a URL$/],
    [
      { ...signed, url: 'https://user:secret@example.com' },
      /^url: must have no user and password; use headers$/,
    ],
    [{ ...signed, url: 'http://1.1.1.1/' }, /^url: .*only https/],
    [{ url: URL_TEXT }, /^secrets: must hold a secret/],
    [{ url: URL_TEXT, secrets: [' '] }, /^secrets: must hold a secret/],
    [{ url: URL_TEXT, secrets: ['whsec_c2hvcnQ='] }, /^secrets: secret 1 is shorter/],
    [{ url: URL_TEXT, secrets: [PUBLIC] }, /^secrets: secret 1 is a public key/],
    [{ ...signed, targets: { a: { url: URL_TEXT, secrets: [] } } }, /^targets\.a\.secrets: must hold/],
    [{ ...signed, targets: { 'a:b': { url: URL_TEXT } } }, /targets/],
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
  ])('%j is refused', (options, message) => {
    expect(() => parseOptions(options)).toThrow(message);
  });
});
