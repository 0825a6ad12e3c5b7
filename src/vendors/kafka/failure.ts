import { messageOf } from '../../core/errors.ts';
import { STOPPED_FAILURE, type Failure } from '../failure.ts';

/** Milliseconds to wait after a broker said that a quota is used up. */
const BUSY_DELAY = 1000;

/** Protocol errors that say what is wrong. https://kafka.apache.org/protocol#protocol_error_codes */
const KINDS: Readonly<Record<string, Failure['kind']>> = {
  MESSAGE_TOO_LARGE: 'too-large',
  RECORD_LIST_TOO_LARGE: 'too-large',
  INVALID_RECORD: 'rejected',
  INVALID_TIMESTAMP: 'rejected',
  UNSUPPORTED_COMPRESSION_TYPE: 'denied',
  THROTTLING_QUOTA_EXCEEDED: 'busy',
  POLICY_VIOLATION: 'denied',
  UNKNOWN_TOPIC_OR_PARTITION: 'missing',
  INVALID_TOPIC_EXCEPTION: 'missing',
  TOPIC_AUTHORIZATION_FAILED: 'denied',
  GROUP_AUTHORIZATION_FAILED: 'denied',
  CLUSTER_AUTHORIZATION_FAILED: 'denied',
  SASL_AUTHENTICATION_FAILED: 'denied',
  UNSUPPORTED_SASL_MECHANISM: 'denied',
  REQUEST_TIMED_OUT: 'late',
};

const ADVICE: Partial<Record<Failure['kind'], string>> = {
  denied: 'access denied; check the credentials and their rights: ',
  missing: 'it does not exist; create it: ',
};

/** What one of the package's errors means: they contain others. */
export function toFailure(error: unknown): Failure {
  const all = flatten(error);
  for (const each of all) {
    const kind = KINDS[nameOf(each)] ?? kindOf(each);
    if (kind !== undefined) return failureOf(kind, reasonOf(each));
  }
  if (all.some(({ name }) => name === 'AbortError')) return STOPPED_FAILURE;
  const deepest = all.at(-1);
  return { kind: 'lost', reason: deepest === undefined ? messageOf(error) : reasonOf(deepest) };
}

/** What the error of one partition in an answer means. */
export function failureOfCode(name: string, message: string): Failure {
  return failureOf(KINDS[name] ?? 'lost', `${name}: ${message}`);
}

function failureOf(kind: Failure['kind'], text: string): Failure {
  const reason = `${ADVICE[kind] ?? ''}${text}`;
  return kind === 'busy' ? { kind, reason, delayMs: BUSY_DELAY } : { kind, reason };
}

/** The package has no code for a topic that does not exist. */
function kindOf(error: Error): Failure['kind'] | undefined {
  if (error.message.startsWith('Unknown topic')) return 'missing';
  return 'code' in error && error.code === 'PLT_KFK_AUTHENTICATION' ? 'denied' : undefined;
}

function nameOf(error: Error): string {
  return 'apiId' in error && typeof error.apiId === 'string' ? error.apiId : '';
}

function reasonOf(error: Error): string {
  const name = nameOf(error);
  return name === '' ? error.message : `${name}: ${error.message}`;
}

/** Whether an error is, or contains, one of these of the protocol. */
export function isNamed(error: unknown, ...names: readonly string[]): boolean {
  return flatten(error).some((each) => names.includes(nameOf(each)));
}

/** An error and all that it contains, the outer one first. */
function flatten(error: unknown): Error[] {
  if (!(error instanceof Error)) return [];
  const contained = error instanceof AggregateError ? error.errors : [];
  return [error, ...contained.flatMap(flatten), ...flatten(error.cause)];
}
