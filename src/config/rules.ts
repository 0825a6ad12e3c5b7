import { formatDuration } from '../lib/units.ts';
import type { Config, DescribedConfig } from './config.ts';
import { parseTarget, type Target } from '../core/route.ts';
import { checkFolders } from './folders.ts';
import { checkKafkaJournal } from '../journal/kafka/config.ts';
import { isLocal } from '../journal/owner.ts';
import type { SinkDescription } from '../core/sink.ts';
import { checkRedactions } from './redactions.ts';
import { isPublicKey } from '../core/signature.ts';
import { configKeys } from './keys.ts';
import { type Problem, valueAt } from './paths.ts';
import type { StorageSettings } from '../storage/fields.ts';

/** A shorter grace leaves no time to cancel a request. */
const SHORTEST_GRACE_MS = 60_000;
const NEEDS_LOCAL = 'needs a journal on this machine: acknowledge: journaled, and journal.type: local';

/** Checks keys against each other. */
export function checkRules(config: Config): { problems: Problem[]; warnings: Problem[] } {
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  const wrong: Say = (path, message) => void problems.push({ path, message });
  const risky: Say = (path, message) => void warnings.push({ path, message });
  const { server, admin, signing, journal, delivery } = config;

  if (Object.keys(config.sinks).length === 0) wrong(['sinks'], 'must name at least one sink');
  checkSuccessions(config, wrong);
  if (config.acknowledge === 'delivered') checkDelivered(config, wrong, risky);
  checkKafkaJournal(config, wrong);

  if (admin.enabled && admin.token === null && !isLoopback(admin.host)) {
    wrong(
      ['admin', 'token'],
      `must be set, because admin.host ${admin.host} can be reached by other machines`,
    );
  }
  if (
    admin.enabled &&
    server.port !== 0 &&
    server.port === admin.port &&
    sameAddress(server.host, admin.host)
  ) {
    wrong(['admin', 'port'], `must differ from server.port, which is ${server.port} too`);
  }

  if (signing.scheme === 'none' && signing.insecure)
    risky(['signing', 'scheme'], 'is none: anyone who reaches the endpoint can send events');
  else if (signing.scheme === 'none')
    wrong(['signing', 'insecure'], 'must be true for the scheme none, which accepts anything from anyone');
  checkSecrets(signing, wrong);
  if (signing.scheme === 'hmac') checkHmac(signing.hmac, wrong);

  for (const key of config.proof.trust) {
    if (!isPublicKey(key))
      wrong(['proof', 'trust'], `${key} is not a public key as printed by \`millrace keys public\``);
  }

  const { receipts } = config;
  if (receipts.path !== null) {
    if (receipts.origin === null)
      wrong(['receipts', 'origin'], 'must name the log, such as acme.example/events');
    if (!isLocal(config)) wrong(['receipts', 'path'], NEEDS_LOCAL);
  }

  checkSchema(config, wrong);

  checkStorage(config.storage, wrong);
  if (delivery.retryInitial > delivery.retryMax) {
    wrong(['delivery', 'retryInitial'], 'must not be longer than delivery.retryMax');
  }
  if (server.answerTimeout >= SENDER_WAITS) {
    risky(['server', 'answerTimeout'], 'is not below 15s, the time after which the sender gives up');
  }
  if (journal.dedupWindow < SENDER_RETRIES) {
    risky(
      ['journal', 'dedupWindow'],
      'is below 28h: senders retry for that long, and late retries are forwarded twice',
    );
  }
  const { grace } = config.erasure;
  if (grace > 0 && grace < SHORTEST_GRACE_MS) {
    risky(
      ['erasure', 'grace'],
      `is ${formatDuration(grace)}: a user is erased permanently that soon after a request`,
    );
  }
  return { problems, warnings };
}

/** Checks the config against the descriptions of its sinks and sources. */
export function checkModules(
  config: DescribedConfig,
  descriptions: ReadonlyMap<string, Pick<SinkDescription, 'needsJournal'>>,
): Problem[] {
  const problems = [...checkFolders(config), ...checkDestinations(config), ...checkRedactions(config)];
  for (const [name, { oversize }] of Object.entries(config.sinks)) {
    if (oversize !== 'claim-check' || claimCheckSink(config, name) !== null) continue;
    const message =
      'must name another sink that can keep large events, such as an archive that is not sealed';
    problems.push({ path: ['sinks', name, 'claimCheck'], message });
  }
  if (isLocal(config)) return problems;
  for (const [name, { needsJournal: need }] of descriptions) {
    if (need === undefined) continue;
    const key = config.acknowledge === 'delivered' ? 'acknowledge: journaled' : 'journal.type: local';
    const message = `needs ${key}, because ${need.reason}`;
    problems.push({ path: [...name.split('.'), need.option], message });
  }
  return problems;
}

/** Events for a destination that a sink does not have would wait forever. */
function checkDestinations({ routes, sinks }: DescribedConfig): Problem[] {
  return routes.flatMap(({ to }, route) =>
    to.flatMap((target, index) => {
      const message = missingPlace(target, sinks[target.sink]?.description);
      return message === null ? [] : [{ path: ['routes', route, 'to', index], message }];
    }),
  );
}

/** Why a sink does not have the destination of a target; null when it has. */
export function missingPlace(
  { sink, destination }: Target,
  description: SinkDescription | undefined,
): string | null {
  const places = description?.destinations;
  if (places === undefined || places.includes(destination)) return null;
  const known = places.map((place) => (place === null ? sink : `${sink}:${place}`)).join(', ');
  const what = destination === null ? 'has no default destination' : `has no destination ${destination}`;
  return `the sink ${sink} ${what}; it has ${known}`;
}

/** The sink that keeps large events for `name`; null when there is none, or several. */
export function claimCheckSink({ sinks }: Pick<DescribedConfig, 'sinks'>, name: string): string | null {
  const candidates = Object.keys(sinks).filter(
    (other) => other !== name && sinks[other]?.description.keepsClaims === true,
  );
  const named = sinks[name]?.claimCheck ?? (candidates.length === 1 ? candidates[0] : undefined);
  return named !== undefined && candidates.includes(named) ? named : null;
}

/** Refuses cloud keys in the file itself, which is copied and checked in. */
export function checkPlainKeys(document: unknown, substituted: ReadonlySet<string>): Problem[] {
  return configKeys().scalars.flatMap(({ path, key, schema }) => {
    if (path[0] !== 'storage' || schema.sensitive !== true || substituted.has(key)) return [];
    if ((valueAt(document, path) ?? '') === '') return [];
    return [{ path, message: 'must come from the environment or a file: write ${NAME} or ${file:/path}' }];
  });
}

type Say = (path: Problem['path'], message: string) => void;

function checkSuccessions({ sinks }: Config, wrong: Say): void {
  const successors = new Map<string, string>();
  for (const [name, { continues }] of Object.entries(sinks)) {
    if (continues === null) continue;
    const path = ['sinks', name, 'continues'];
    const other = successors.get(continues);
    if (sinks[continues] !== undefined)
      wrong(path, `names ${continues}, which is still in the config: only one of the two can continue`);
    else if (other !== undefined) wrong(path, `names ${continues}, as sinks.${other}.continues does`);
    successors.set(continues, name);
  }
}

function checkSchema(config: Config, wrong: Say): void {
  const { enabled, alertTo } = config.schema;
  if (alertTo !== null && config.sinks[parseTarget(alertTo).sink] === undefined)
    wrong(['schema', 'alertTo'], `${alertTo} names no configured sink`);
  if (isLocal(config)) return;
  if (enabled === true) wrong(['schema', 'enabled'], NEEDS_LOCAL);
  if (alertTo !== null) wrong(['schema', 'alertTo'], NEEDS_LOCAL);
}

function checkDelivered({ sinks, routes, quarantine }: Config, wrong: Say, risky: Say): void {
  const isRequired = (sink: string): boolean => sinks[sink]?.required === true;
  for (const { match, to } of routes) {
    if (to.some(({ sink }) => isRequired(sink))) continue;
    risky(
      ['routes'],
      `${match.join(', ')}: no required sink, so with acknowledge: delivered nothing confirms these events`,
    );
  }
  if (quarantine.to === null) {
    risky(['quarantine', 'to'], 'is not set: with acknowledge: delivered invalid events are answered 422');
  } else if (sinks[parseTarget(quarantine.to).sink] === undefined) {
    wrong(['quarantine', 'to'], `${quarantine.to} names no configured sink`);
  }
}

const SENDER_WAITS = 15_000;
const SENDER_RETRIES = 28 * 3_600_000;

/** A short secret can be guessed from one captured delivery. Old archives can still be verified with one. */
function checkSecrets({ scheme, secrets }: Config['signing'], wrong: Say): void {
  for (const [index, secret] of secrets.entries()) {
    const length = scheme === 'hmac' ? Buffer.byteLength(secret) : sharedKeyLength(scheme, secret);
    if (length === null || length >= SECRET_BYTES) continue;
    wrong(
      ['signing', 'secrets', index],
      `holds a key of ${length} bytes; keys shorter than ${SECRET_BYTES} bytes can be guessed: have the sender issue a longer one`,
    );
  }
}

/** Least size by Standard Webhooks. */
const SECRET_BYTES = 24;

/** Null for key pairs, and for invalid secrets, which the verifier reports. */
function sharedKeyLength(scheme: string, secret: string): number | null {
  const [, base64] = /^(?:whsec_)?([A-Za-z0-9+/]+)={0,2}$/.exec(secret) ?? [];
  if (scheme !== 'standard-webhooks' || base64 === undefined) return null;
  return Buffer.from(base64, 'base64').length;
}

function checkHmac(hmac: Config['signing']['hmac'], wrong: Say): void {
  const at = (key: keyof typeof hmac) => ['signing', 'hmac', key];
  const { content, timestampHeader, idHeader } = hmac;
  // Else a captured delivery can be sent again with any id.
  if (idHeader !== null && content?.includes('{id}') !== true)
    wrong(at('idHeader'), 'must be signed: signing.hmac.content must hold {id}; else leave it out');
  if (content === null) return;
  if (!content.includes('{body}')) wrong(at('content'), 'must hold {body}, or the body is not protected');
  if (timestampHeader !== null && !content.includes('{timestamp}')) {
    wrong(at('content'), 'must hold {timestamp}, or signing.hmac.timestampHeader is not protected');
  }
  for (const [part, key] of [
    ['{timestamp}', 'timestampHeader'],
    ['{id}', 'idHeader'],
  ] as const) {
    if (content.includes(part) && hmac[key] === null) {
      wrong(at(key), `must be set, because signing.hmac.content holds ${part}`);
    }
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

function sameAddress(one: string, other: string): boolean {
  return one === other || [one, other].some((host) => host === '0.0.0.0' || host === '::');
}

/** Each of these names the account, or signs in, alone. */
const BESIDE_NO_CONNECTION_STRING = ['account', 'endpoint'] as const;
const SIGN_IN = ['connectionString', 'accountKey', 'sasToken', 'managedIdentityClientId'] as const;

/** Refuses keys of `storage` that would not be used. */
function checkStorage({ s3, azblob }: StorageSettings, wrong: Say): void {
  const { accessKeyId, secretAccessKey, sessionToken } = s3;
  const beside = secretAccessKey !== null ? 'secretAccessKey' : sessionToken !== null ? 'sessionToken' : null;
  if (accessKeyId === null && beside !== null)
    wrong(['storage', 's3', 'accessKeyId'], `must be set beside storage.s3.${beside}`);
  if (accessKeyId !== null && secretAccessKey === null)
    wrong(['storage', 's3', 'secretAccessKey'], 'must be set beside storage.s3.accessKeyId');

  const [first, ...others] = SIGN_IN.filter((key) => azblob[key] !== null);
  const names = azblob.connectionString === null ? [] : BESIDE_NO_CONNECTION_STRING;
  for (const key of [...others, ...names.filter((name) => azblob[name] !== null)])
    wrong(['storage', 'azblob', key], `must be left out beside storage.azblob.${first}`);
}
