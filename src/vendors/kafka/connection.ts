import type { Base, BaseOptions, SASLOptions } from '@platformatic/kafka';
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { choice, flag, NOT_EMPTY, optionalText, texts } from '../../lib/fields.ts';
import { checkPems, givenPems } from '../pem.ts';

export const MECHANISMS = ['plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer'] as const;
const BROKER = /^(?:\[[\da-fA-F:]+\]|[\w.-]+):(\d{1,5})$/;
const LOOPBACK = /^(localhost|127\.[\d.]+|\[::1\]):/;
const EVENT_HUBS = /\.servicebus\.[\w.-]+:/;

const tls = z.strictObject({
  enabled: flag(true, 'Speaks TLS with the brokers.'),
  ca: optionalText('PEM of the authorities the brokers are trusted by, instead of the usual ones.'),
  cert: optionalText('PEM of our certificate (mutual TLS), such as `${file:/etc/millrace/client.pem}`.'),
  key: optionalText('PEM of its private key.', { sensitive: true }),
});

const sasl = z.strictObject({
  mechanism: choice(MECHANISMS, 'scram-sha-512', 'How to sign in.'),
  username: optionalText('User name; not with `oauthbearer`.', NOT_EMPTY),
  password: optionalText('Password; not with `oauthbearer`.', { ...NOT_EMPTY, sensitive: true }),
  tokenFile: optionalText(
    'For `oauthbearer`: a file with the token. It is read at each sign-in: to renew the token, write the file.',
    NOT_EMPTY,
  ),
});

/** Options of the connection, the same for a sink and a source. */
export const connectionFields = {
  brokers: texts('Addresses `host:port` to find the cluster by. One is enough; more help when one is down.'),
  tls: tls.prefault({}),
  sasl: sasl.optional(),
};

type Fields = z.output<z.ZodObject<typeof connectionFields>>;

/** How to reach a cluster and sign in. */
export interface Connection {
  readonly brokers: readonly string[];
  readonly tls: Readonly<Partial<Record<'ca' | 'cert' | 'key', string>>> | null;
  readonly sasl: z.output<typeof sasl> | null;
  /** The Kafka endpoint of Azure Event Hubs, which lacks some functions of a broker. */
  readonly eventHubs: boolean;
}

/** Packages that a connection needs. */
export const PACKAGES: readonly string[] = ['@platformatic/kafka'];

type AddIssue = (issue: {
  readonly code: 'custom';
  readonly path: string[];
  readonly message: string;
}) => void;

/** Adds an issue for each option that does not agree with the others, which the schema does not check. */
export function readConnection(fields: Fields, addIssue: AddIssue): Connection {
  const refuse = (option: string, message: string): void =>
    addIssue({ code: 'custom', path: option.split('.'), message });
  const { brokers } = fields;
  if (brokers.length === 0) refuse('brokers', 'must name a broker, such as kafka-1.example.com:9093');
  for (const broker of brokers) {
    const port = Number(BROKER.exec(broker)?.[1] ?? 0);
    if (port < 1 || port > 65_535) refuse('brokers', `${JSON.stringify(broker)} must be host:port`);
  }
  const eventHubs = brokers.some((broker) => EVENT_HUBS.test(broker));
  if (eventHubs && (!fields.tls.enabled || fields.sasl === undefined))
    refuse(
      'sasl',
      'must be set, and tls left on: Event Hubs needs mechanism: plain, username: $ConnectionString, and a connection string as password',
    );
  const near = brokers.every((broker) => LOOPBACK.test(broker));
  const open = fields.sasl !== undefined && !fields.sasl.mechanism.startsWith('scram');
  if (!fields.tls.enabled && open && !near)
    refuse('tls.enabled', `must be true: ${fields.sasl?.mechanism} would send the secret as readable text`);
  if (fields.sasl !== undefined) checkSasl(fields.sasl, refuse);
  return { brokers, tls: readTls(fields.tls, refuse), sasl: fields.sasl ?? null, eventHubs };
}

type Refuse = (option: string, message: string) => void;

function checkSasl(
  { mechanism, username, password, tokenFile }: z.output<typeof sasl>,
  refuse: Refuse,
): void {
  const token = mechanism === 'oauthbearer';
  if (token && tokenFile === null) refuse('sasl.tokenFile', 'must be set for oauthbearer');
  if (token && (username !== null || password !== null))
    refuse('sasl.mechanism', 'oauthbearer needs a tokenFile, and no username and password');
  if (!token && (username === null || password === null))
    refuse(username === null ? 'sasl.username' : 'sasl.password', `must be set for ${mechanism}`);
  if (!token && tokenFile !== null) refuse('sasl.tokenFile', 'is for oauthbearer only');
}

function readTls({ enabled, ca, cert, key }: z.output<typeof tls>, refuse: Refuse): Connection['tls'] {
  const given = { ca, cert, key };
  if (!enabled) {
    for (const [name, pem] of Object.entries(given))
      if (pem !== null) refuse(`tls.${name}`, 'has no use with tls.enabled: false');
    return null;
  }
  checkPems(given, (member, message) => refuse(member === null ? 'tls' : `tls.${member}`, message));
  return givenPems(given);
}

/** Whether a cluster could have a topic of this name. */
export function isTopic(name: string): boolean {
  return /^[\w.-]{1,249}$/.test(name) && name !== '.' && name !== '..';
}

/** Retries of a look-up: the next broker is asked when one does not answer. */
const RETRIES = 2;
const RETRY_DELAY = 100;

/** Options of the package's clients. @param timeout of one operation with all its tries, milliseconds */
export function clientOptions({ brokers, tls: pems, sasl: login }: Connection, timeout: number): BaseOptions {
  const once = Math.ceil(timeout / (RETRIES + 1));
  return {
    clientId: 'millrace',
    bootstrapBrokers: [...brokers],
    connectTimeout: once,
    requestTimeout: once,
    timeout: once,
    retries: RETRIES,
    retryDelay: RETRY_DELAY,
    autocreateTopics: false,
    ...(pems === null ? {} : { tls: { ...pems } }),
    ...(login === null ? {} : { sasl: saslOptions(login) }),
  };
}

function saslOptions({ mechanism, username, password, tokenFile }: z.output<typeof sasl>): SASLOptions {
  const named = { mechanism: mechanism.toUpperCase() as SASLOptions['mechanism'] };
  if (tokenFile !== null) return { ...named, token: async () => (await readFile(tokenFile, 'utf8')).trim() };
  return { ...named, username: username ?? '', password: password ?? '' };
}

/** Ignores the second error of a connection (a refused sign-in, then a reset), which would end the process. */
export function quiet({ connections }: Pick<Base, 'connections'>): void {
  connections.on('connecting', ({ connection }) => connection.on('error', () => undefined));
}
