import { parseVerifier } from '../privacy/receipts/note.ts';
import { readBy } from './options.ts';

/** For commands that hold something against a log of receipts. */
export const LOG_OPTIONS = {
  '--log <place>': 'the log: its address, such as http://127.0.0.1:8080/receipts, or its folder',
  '--key <key>': readBy(parseVerifier, 'public key of the log'),
};
