import { hash } from 'node:crypto';
import type { JournalEvent } from '../../core/event.ts';
import { signWith } from '../../receive/verify/sign-standard-webhooks.ts';
import { type HttpOptions, type TargetOptions, FRAMING } from './config.ts';

/** What every receiver takes in a header, and how long it may get. */
const PLAIN = /^[\x21-\x7e]{1,256}$/;
const OTHERS = /[^\x21-\x7e]/g;
const KEPT = 128;
/** Headers that an event came with and that can be sent again. */
const NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Headers of the request for an event; its body goes as it is. @param now milliseconds since the epoch, signed as the time of sending */
export function headersFor(
  event: JournalEvent,
  { headers, secrets }: Pick<TargetOptions, 'headers' | 'secrets'>,
  sign: HttpOptions['sign'],
  now: number,
): Record<string, string> {
  const { type, handling, body } = event;
  const id = fitted(event.id);
  return {
    'user-agent': 'millrace',
    ...(sign === 'original' ? original(event.headers) : {}),
    ...headers,
    ...(sign === 'standard-webhooks' ? signWith(secrets, id, now, body) : {}),
    'content-type': 'application/json',
    'idempotency-key': id,
    'event-type': fitted(type),
    ...(handling.replayId === undefined ? {} : { 'replay-id': fitted(handling.replayId) }),
    ...(handling.claimCheck === true ? { 'claim-check': 'true' } : {}),
    ...handling.trace,
  };
}

/**
 * The text as a header can carry it. What is changed ends in its hash, so that two texts that look alike then stay two: an
 * idempotency key must never say that they are the same.
 */
function fitted(text: string): string {
  if (PLAIN.test(text)) return text;
  return `${text.slice(0, KEPT).replaceAll(OTHERS, '_')}~${hash('sha256', text, 'hex')}`;
}

function original(headers: JournalEvent['headers']): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).filter(
      ([name, value]) => NAME.test(name) && VALUE.test(value) && !FRAMING.test(name),
    ),
  );
}
