import type { LogSource } from '../privacy/receipts/log-source.ts';
import { parseVerifier } from '../privacy/receipts/note.ts';
import { readBy } from './options.ts';

/** For commands that verify with the signed log of receipts. */
export const LOG_OPTIONS = {
  '--log <place>': 'the log: its URL, such as http://127.0.0.1:8080/receipts, or its folder',
  '--key <key>': readBy(parseVerifier, 'public key of the log'),
};

/** For a verification without --key. */
export function keyWarning(log: LogSource | null): string {
  return `the key comes from ${log?.name} itself: give --key to verify with a key that you trust`;
}
