import type { Config } from './config.ts';
import type { Problem } from './paths.ts';

/** What one key demands of another. Everything here can be told from the config alone. */
export function checkRules(config: Config): { problems: Problem[]; warnings: Problem[] } {
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  const wrong = (path: readonly string[], message: string): number => problems.push({ path, message });
  const risky = (path: readonly string[], message: string): number => warnings.push({ path, message });
  const { server, admin, signing, journal, delivery } = config;

  if (config.acknowledge === 'delivered')
    wrong(['acknowledge'], '`delivered` is not available yet; use journaled');
  if (Object.keys(config.sinks).length === 0) wrong(['sinks'], 'must name at least one sink');

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

  if (signing.scheme === 'none' && !signing.insecure) {
    wrong(['signing', 'insecure'], 'must be true for the scheme none, which accepts anything from anyone');
  }
  if (signing.scheme === 'none' && signing.insecure) {
    risky(['signing', 'scheme'], 'is none: anyone who reaches the endpoint can send events');
  }
  if (signing.scheme === 'hmac') checkHmac(signing.hmac, wrong);

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
  return { problems, warnings };
}

const SENDER_WAITS = 15_000;
const SENDER_RETRIES = 28 * 3_600_000;

function checkHmac(
  hmac: Config['signing']['hmac'],
  wrong: (path: readonly string[], message: string) => void,
): void {
  const { content, timestampHeader } = hmac;
  if (content === null) return;
  if (!content.includes('{body}'))
    wrong(hmacKey('content'), 'must hold {body}, or the body is not protected');
  if (timestampHeader !== null && !content.includes('{timestamp}')) {
    wrong(hmacKey('content'), 'must hold {timestamp}, or signing.hmac.timestampHeader is not protected');
  }
  for (const [part, key] of [
    ['{timestamp}', 'timestampHeader'],
    ['{id}', 'idHeader'],
  ] as const) {
    if (content.includes(part) && hmac[key] === null) {
      wrong(hmacKey(key), `must be set, because signing.hmac.content holds ${part}`);
    }
  }
}

function hmacKey(key: string): readonly string[] {
  return ['signing', 'hmac', key];
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

function sameAddress(one: string, other: string): boolean {
  return one === other || isAny(one) || isAny(other);
}

function isAny(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}
