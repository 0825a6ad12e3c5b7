import { hash } from 'node:crypto';
import type { JournalEvent } from '../../core/event.ts';
import { signWith } from '../../receive/verify/sign-standard-webhooks.ts';
import { type HttpOptions, type TargetOptions, FRAMING } from './config.ts';

/** Text that every receiver accepts in a header. */
const PLAIN = /^[\x21-\x7e]{1,256}$/;
const OTHERS = /[^\x21-\x7e]/g;
/** Characters kept of a text that is not. */
const KEPT = 128;
/** Headers of the delivery that can be sent again. */
const NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Headers of the request for an event. @param now milliseconds since the epoch, signed as the time of sending */
export function headersFor(
  event: JournalEvent,
  { headers, secrets }: Pick<TargetOptions, 'headers' | 'secrets'>,
  sign: HttpOptions['sign'],
  now: number,
): Record<string, string> {
  const { type, handling, body } = event;
  const id = headerText(event.id);
  return {
    'user-agent': 'millrace',
    ...(sign === 'original' ? original(event.headers) : {}),
    ...headers,
    ...(sign === 'standard-webhooks' ? signWith(secrets, id, now, body) : {}),
    'content-type': 'application/json',
    'idempotency-key': id,
    'event-type': headerText(type),
    ...(handling.replayId === undefined ? {} : { 'replay-id': headerText(handling.replayId) }),
    ...(handling.claimCheck === true ? { 'claim-check': 'true' } : {}),
    ...handling.trace,
  };
}

/** A valid header value. A changed text ends in its hash: two different ids must never get one idempotency key. */
function headerText(text: string): string {
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
