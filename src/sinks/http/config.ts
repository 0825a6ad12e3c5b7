import { isIP, type BlockList } from 'node:net';
import { z } from 'zod';
import { splitSecrets } from '../../core/secrets.ts';
import { detailOf, messageOf } from '../../core/errors.ts';
import type { SinkDescription } from '../../core/sink.ts';
import { isRecord } from '../../lib/parsed.ts';
import { bytes, choice, count, duration, optionalText, texts } from '../../lib/fields.ts';
import { optionsOf } from '../../lib/parse-options.ts';
import { parseStandardSecret, type StandardSecret } from '../../receive/verify/standard-secret.ts';
import { checkPems, givenPems } from '../../vendors/pem.ts';
import { networks, problemWith } from './addresses.ts';

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\t\x20-\x7e]*$/;
/** Statuses that `retry` may name. */
const [LEAST, MOST] = [400, 499];
const MINIMUM_TIMEOUT = 100;
const MAXIMUM_TIMEOUT = 3_600_000;

const headersField = z
  .record(z.string(), z.string().regex(VALUE, 'must be one line of ASCII'))
  .default({})
  .describe('Headers of your own, such as `authorization: Bearer ${TOKEN}`.');
const urlField = (doc: string) =>
  optionalText(doc, { pattern: '^https?://', hint: 'must be an http or https URL' });
const secretsField = z
  .array(z.string(), { error: 'must be a list of secrets' })
  .describe(
    'Secrets to sign with (`whsec_…`, or `whsk_…` for ed25519). Each makes a signature of its own. To rotate: add the new one, let the target accept it, remove the old one.',
  );
const tlsField = z.strictObject({
  ca: optionalText('PEM of the authorities the target is trusted by, instead of the usual ones.'),
  cert: optionalText('PEM of our certificate (mutual TLS), such as `${file:/etc/millrace/client.pem}`.'),
  key: optionalText('PEM of its private key.', { sensitive: true }),
});

const target = z.strictObject({
  url: z
    .string({ error: 'must be set, to a URL' })
    .regex(/^https?:\/\//, 'must be an http or https URL')
    .describe('Where its events are posted.'),
  secrets: secretsField.optional(),
  headers: headersField,
  tls: tlsField.optional(),
});

const schema = z
  .strictObject({
    url: urlField('Target of events whose route names none. Redirects are never followed.'),
    targets: z
      .record(
        z.string().regex(/^[A-Za-z0-9][\w.-]*$/, 'must be a name of letters, digits, dots and dashes'),
        target,
      )
      .default({})
      .describe(
        'More targets by name, for routes to `sink:name`. Each has a `url`, and `secrets` and `tls` where they are not those of the sink; its `headers` are added to those of the sink.',
      ),
    sign: choice(
      ['standard-webhooks', 'original', 'none'],
      'standard-webhooks',
      "`original` passes on the signature headers that the event came with; its timestamp may be older than the target's tolerance.",
    ),
    secrets: secretsField.default([]),
    headers: headersField,
    tls: tlsField.prefault({}),
    privateNetworks: texts(
      'Networks and addresses that requests may go to although they are private, such as `10.1.0.0/16`; http without TLS goes nowhere else.',
    ),
    concurrency: count(8, 'Most requests to one target at a time.', { min: 1, max: 256 }),
    rate: count(0, 'Most requests a second to one target; 0: no limit.', { max: 100_000 }),
    timeout: duration('15s', 'How long a request may take, its answer included.', {
      min: MINIMUM_TIMEOUT,
      max: MAXIMUM_TIMEOUT,
    }),
    maxEventBytes: bytes('10MiB', 'Largest body.', { min: 4096 }),
    retry: z
      .array(z.int().min(LEAST).max(MOST), { error: `must be a list of statuses from ${LEAST} to ${MOST}` })
      .default([401, 403, 404, 405, 407, 408, 410, 421, 425, 429])
      .describe(
        '4xx statuses after which the event is sent again, because they are not about the event. After any other 4xx it is a dead letter. 3xx and 5xx are always retried.',
      ),
  })
  .transform(({ url: main, targets, secrets, headers, tls, privateNetworks, ...options }, context) => {
    const { sign } = options;
    const at =
      (...path: string[]): Report =>
      (message) =>
        context.addIssue({ code: 'custom', path, message });
    const allowed = networksOf(privateNetworks, at('privateNetworks'));
    const named = Object.entries(targets);
    const isShared = main !== null || named.some(([, own]) => own.secrets === undefined);
    const shared = {
      secrets: isShared ? secretsOf(secrets, sign, at('secrets')) : [],
      headers: headersOf(headers, at('headers')),
      tls: tlsOf(tls, at('tls')),
    };
    const found = named.map(([name, own]): TargetOptions => {
      const of = (key: string): Report => at('targets', name, key);
      return {
        name,
        url: checkedUrl(own.url, allowed, of('url')),
        secrets: own.secrets === undefined ? shared.secrets : secretsOf(own.secrets, sign, of('secrets')),
        headers: { ...shared.headers, ...headersOf(own.headers, of('headers')) },
        tls: own.tls === undefined ? shared.tls : tlsOf(own.tls, of('tls')),
      };
    });
    if (main !== null) found.push({ name: null, url: checkedUrl(main, allowed, at('url')), ...shared });
    if (found.length === 0) at('url')('must be set, or targets');
    return { ...options, allowed, targets: found };
  });

export const { parseOptions, optionsSchema } = optionsOf(schema);

/** What the HTTP sink works with: sizes in bytes, times in milliseconds. */
export type HttpOptions = z.output<typeof schema>;

/** Names the targets, so that a wrong route is found before an event waits for it. */
export function describe({ url: main, targets, sign }: Readonly<Record<string, unknown>>): SinkDescription {
  const named = isRecord(targets) ? Object.keys(targets) : [];
  return {
    destinations: typeof main === 'string' ? [null, ...named] : named,
    // The signature is over the original bytes.
    ...(sign === 'original' ? { needsOriginal: { option: 'sign' } } : {}),
  };
}

/** One target. */
export interface TargetOptions {
  /** As routes name it; null for the default one. */
  readonly name: string | null;
  readonly url: URL;
  readonly secrets: readonly StandardSecret[];
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: Readonly<Partial<Record<'ca' | 'cert' | 'key', string>>>;
}

/** Adds a problem to those of the config. */
type Report = (message: string) => void;

function networksOf(written: readonly string[], report: Report): BlockList {
  try {
    return networks([written]);
  } catch (error) {
    report(messageOf(error));
    return networks([]);
  }
}

function checkedUrl(text: string, allowed: BlockList, report: Report): URL {
  const to = URL.parse(text);
  if (to === null) {
    report('is not a URL');
    return new URL('https://invalid');
  }
  if (to.username !== '' || to.password !== '') report('must have no user and password; use headers');
  const host = to.hostname.replace(/^\[|\]$/g, '');
  const plain = to.protocol === 'http:';
  const problem = isIP(host) === 0 ? null : problemWith(host, { allowed, plain });
  if (problem === null && plain && allowed.rules.length === 0)
    report('must be an https URL: http goes only to addresses in privateNetworks, which is empty');
  if (problem !== null) report(problem);
  return to;
}

function secretsOf(written: readonly string[], sign: HttpOptions['sign'], report: Report): StandardSecret[] {
  if (sign !== 'standard-webhooks') {
    if (written.length > 0) report(`must be left out with sign: ${sign}`);
    return [];
  }
  const each = written.flatMap(splitSecrets);
  if (each.length === 0) report('must hold a secret to sign with; or write sign: original, or none');
  return each.flatMap((secret, index) => {
    const where = `secret ${index + 1}`;
    try {
      const parsed = parseStandardSecret(secret, where);
      if (parsed.version === 'v1' || parsed.sign !== null) return [parsed];
      report(`${where} is a public key, which cannot sign`);
    } catch (error) {
      report(detailOf(error));
    }
    return [];
  });
}

function headersOf(written: Readonly<Record<string, string>>, report: Report): Record<string, string> {
  return Object.fromEntries(
    Object.entries(written).map(([name, value]) => {
      const lower = name.toLowerCase();
      if (!TOKEN.test(name)) report(`${JSON.stringify(name)} is not the name of a header`);
      if (FRAMING.test(lower) || OF_THE_EVENT.test(lower)) report(`${name} is set by millrace`);
      return [lower, value];
    }),
  );
}

function tlsOf(pems: z.output<typeof tlsField>, report: Report): TargetOptions['tls'] {
  checkPems(pems, (member, message) => report(member === null ? message : `${member} ${message}`));
  return givenPems(pems);
}

/** Headers of the request itself, which only the client sets. */
export const FRAMING =
  /^(host|connection|content-(length|type|encoding)|transfer-encoding|expect|upgrade|keep-alive|te|trailer)$/;

/** Headers that are made of the event. */
const OF_THE_EVENT = /^(idempotency-key|event-type|replay-id|claim-check|traceparent|tracestate|webhook-.*)$/;
