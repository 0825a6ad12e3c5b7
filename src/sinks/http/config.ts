import { isIP, type BlockList } from 'node:net';
import { z } from 'zod';
import { splitSecrets } from '../../core/secrets.ts';
import { detailOf, messageOf } from '../../core/errors.ts';
import type { SinkDescription } from '../../core/sink.ts';
import { isRecord } from '../../lib/is-record.ts';
import { bytes, choice, count, duration, optionalText, texts } from '../../lib/fields.ts';
import { optionsOf } from '../../lib/parse-options.ts';
import { parseStandardSecret, type StandardSecret } from '../../receive/verify/standard-secret.ts';
import { checkPems, givenPems } from '../../vendors/pem.ts';
import { networks, problemWith } from './addresses.ts';

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\t\x20-\x7e]*$/;
/** Statuses between these that can be told to be retried; the others are decided. */
const [LEAST, MOST] = [400, 499];
const MINIMUM_TIMEOUT = 100;
const MAXIMUM_TIMEOUT = 3_600_000;

const headers = z
  .record(z.string(), z.string().regex(VALUE, 'must be one line of ASCII'))
  .default({})
  .describe('Headers of your own, such as `authorization: Bearer ${TOKEN}`.');
const url = (doc: string) =>
  optionalText(doc, { pattern: '^https?://', hint: 'must be an http or https URL' });
const secrets = z
  .array(z.string(), { error: 'must be a list of secrets' })
  .describe(
    'Secrets to sign with (`whsec_…`, or `whsk_…` for ed25519). Each makes a signature of its own. To rotate: add the new one, let the target accept it, remove the old one.',
  );
const tls = z.strictObject({
  ca: optionalText('PEM of the authorities the target is trusted by, instead of the usual ones.'),
  cert: optionalText('PEM of our certificate (mutual TLS), such as `${file:/etc/millrace/client.pem}`.'),
  key: optionalText('PEM of its private key.', { sensitive: true }),
});

const target = z.strictObject({
  url: z
    .string({ error: 'must be set, to a URL' })
    .regex(/^https?:\/\//, 'must be an http or https URL')
    .describe('Where its events are posted.'),
  secrets: secrets.optional(),
  headers,
  tls: tls.optional(),
});

const schema = z
  .strictObject({
    url: url('Target of events whose route names none. Redirects are never followed.'),
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
    secrets: secrets.default([]),
    headers,
    tls: tls.prefault({}),
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
        'Statuses 4xx that say nothing about the event, which is sent again. After any other 4xx it is a dead letter. 3xx and 5xx are always retried.',
      ),
  })
  .transform((written, context) => {
    const {
      url: main,
      targets,
      secrets: ours,
      headers: all,
      tls: ourTls,
      privateNetworks,
      ...options
    } = written;
    const wrong = (path: readonly (string | number)[], message: string): void =>
      context.addIssue({ code: 'custom', path: [...path], message });
    const allowed = listOf(privateNetworks, wrong);
    const at =
      (...path: string[]): Say =>
      (message) =>
        wrong(path, message);
    const named = Object.entries(targets);
    const inherits = main !== null || named.some(([, own]) => own.secrets === undefined);
    const shared = {
      secrets: inherits ? secretsOf(ours, options.sign, at('secrets')) : [],
      headers: headersOf(all, at('headers')),
      tls: tlsOf(ourTls, at('tls')),
    };
    const found = named.map(([name, own]): TargetOptions => {
      const place = ['targets', name];
      return {
        name,
        url: urlOf(own.url, allowed, at(...place, 'url')),
        secrets:
          own.secrets === undefined
            ? shared.secrets
            : secretsOf(own.secrets, options.sign, at(...place, 'secrets')),
        headers: { ...shared.headers, ...headersOf(own.headers, at(...place, 'headers')) },
        tls: own.tls === undefined ? shared.tls : tlsOf(own.tls, at(...place, 'tls')),
      };
    });
    if (main !== null) found.push({ name: null, url: urlOf(main, allowed, at('url')), ...shared });
    if (found.length === 0) wrong(['url'], 'must be set, or targets');
    return { ...options, allowed, targets: found };
  });

export const { parseOptions, optionsSchema } = optionsOf(schema);

/** What the HTTP sink works with: sizes in bytes, times in milliseconds. */
export type HttpOptions = z.output<typeof schema>;

/** Its targets are known, so a slip in a route is found before an event waits for it. */
export function describe({ url: main, targets, sign }: Readonly<Record<string, unknown>>): SinkDescription {
  const named = isRecord(targets) ? Object.keys(targets) : [];
  return {
    destinations: typeof main === 'string' ? [null, ...named] : named,
    // A signature over other bytes is none.
    ...(sign === 'original' ? { needsOriginal: { option: 'sign' } } : {}),
  };
}

/** Where events go: `name` is what routes call it, null for the default one. */
export interface TargetOptions {
  readonly name: string | null;
  readonly url: URL;
  readonly secrets: readonly StandardSecret[];
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: Readonly<Partial<Record<'ca' | 'cert' | 'key', string>>>;
}

type Say = (message: string) => void;

function listOf(written: readonly string[], wrong: (path: string[], message: string) => void): BlockList {
  try {
    return networks([written]);
  } catch (error) {
    wrong(['privateNetworks'], messageOf(error));
    return networks([]);
  }
}

function urlOf(text: string, allowed: BlockList, wrong: Say): URL {
  const to = URL.parse(text);
  if (to === null) {
    wrong('is not a URL');
    return new URL('https://invalid');
  }
  if (to.username !== '' || to.password !== '') wrong('must have no user and password; use headers');
  const host = to.hostname.replace(/^\[|\]$/g, '');
  const plain = to.protocol === 'http:';
  const problem = isIP(host) === 0 ? null : problemWith(host, { allowed, plain });
  if (problem === null && plain && allowed.rules.length === 0)
    wrong('must be an https URL: http goes only to addresses in privateNetworks, which is empty');
  if (problem !== null) wrong(problem);
  return to;
}

function secretsOf(written: readonly string[], sign: HttpOptions['sign'], wrong: Say): StandardSecret[] {
  if (sign !== 'standard-webhooks') {
    if (written.length > 0) wrong(`must be left out with sign: ${sign}`);
    return [];
  }
  const each = written.flatMap(splitSecrets);
  if (each.length === 0) wrong('must hold a secret to sign with; or write sign: original, or none');
  return each.flatMap((secret, index) => {
    const where = `secret ${index + 1}`;
    try {
      const parsed = parseStandardSecret(secret, where);
      if (parsed.version === 'v1' || parsed.sign !== null) return [parsed];
      wrong(`${where} is a public key, which cannot sign`);
    } catch (error) {
      wrong(detailOf(error));
    }
    return [];
  });
}

function headersOf(written: Readonly<Record<string, string>>, wrong: Say): Record<string, string> {
  return Object.fromEntries(
    Object.entries(written).map(([name, value]) => {
      const lower = name.toLowerCase();
      if (!TOKEN.test(name)) wrong(`${JSON.stringify(name)} is not the name of a header`);
      if (FRAMING.test(lower) || OF_THE_EVENT.test(lower)) wrong(`${name} is set by millrace`);
      return [lower, value];
    }),
  );
}

function tlsOf(pems: z.output<typeof tls>, wrong: Say): TargetOptions['tls'] {
  checkPems(pems, (member, message) => wrong(member === null ? message : `${member} ${message}`));
  return givenPems(pems);
}

/** Headers of the request itself: nobody else sets them. */
export const FRAMING =
  /^(host|connection|content-(length|type|encoding)|transfer-encoding|expect|upgrade|keep-alive|te|trailer)$/;

/** What an event is known by at its target; it must not be said twice. */
const OF_THE_EVENT = /^(idempotency-key|event-type|replay-id|claim-check|traceparent|tracestate|webhook-.*)$/;
