import { hash } from 'node:crypto';
import { parseHead, type RecordEnvelope } from '../core/archive-record.ts';
import type { Envelope } from '../core/event.ts';
import { SALT_HEADER } from '../core/receipt.ts';
import type { Verifier } from '../core/verifier.ts';
import type { ArchiveItem } from './read-line.ts';
import type { VerifyTally } from './report.ts';

/**
 * Compares the envelope of a record with its body.
 * @returns names of the body's members that differ; null for a body that cannot be read
 */
export type EnvelopeCheck = (
  kept: Envelope,
  body: Buffer,
  isSigned: () => boolean,
) => readonly string[] | null;

export interface RecordChecks {
  readonly verifier?: Verifier | undefined;
  readonly envelopes?: EnvelopeCheck | undefined;
}

/** Counts one line of a file, and checks its envelope and its signature. */
export function checkRecord(
  item: ArchiveItem<RecordEnvelope>,
  tally: VerifyTally,
  { verifier, envelopes }: RecordChecks,
): void {
  const { file, line } = item;
  if (item.kind === 'record') {
    if (item.sealed) tally.sealed.opened += 1;
    if (envelopes !== undefined) checkEnvelope(item, tally, envelopes);
    if (verifier !== undefined) checkSignature(item, tally, verifier);
    return;
  }
  const { sealed } = item;
  if (sealed?.why === 'erased') tally.sealed.erased += 1;
  else if (sealed !== undefined) tally.sealed.closed += 1;
  // A missing or destroyed key is no fault of the archive.
  if (sealed?.why === 'erased' || sealed?.why === 'no_keys') return;
  const code = line === null ? 'file_unreadable' : 'record_invalid';
  tally.differ({ code, file, line, detail: item.reason });
}

function checkEnvelope(
  { record, text, body, file, line }: ArchiveItem<RecordEnvelope> & { kind: 'record' },
  tally: VerifyTally,
  compare: EnvelopeCheck,
): void {
  const { event_type: type, team_id: team, user_id: user, client_user_id: clientUser } = record;
  const isSigned = (): boolean =>
    Object.keys(parseHead(text)?.record.headers ?? {}).some((name) => name !== SALT_HEADER);
  const others = compare({ type, team, user, clientUser }, body, isSigned);
  if (others === null) tally.envelopes.unreadable += 1;
  else tally.envelopes.compared += 1;
  if (others === null || others.length === 0) return;
  const detail = `the record has another ${others.join(', ')} than the event in it`;
  tally.differ({ code: 'envelope_differs', file, line, detail });
}

/**
 * Checks a record's signature over its exact bytes, at the time of its receipt. It is a difference when no secret
 * matches: the event was changed, or its secret was not given.
 */
function checkSignature(
  { record, text, body, file, line }: ArchiveItem<RecordEnvelope> & { kind: 'record' },
  tally: VerifyTally,
  verifier: Verifier,
): void {
  const { signatures } = tally;
  const headers = parseHead(text)?.record.headers ?? {};
  if (Object.keys(headers).length === 0) {
    signatures.unsigned += 1;
    return;
  }
  const result = verifier.verify(headers, body, Date.parse(record.received_at));
  if (result.ok && result.secret < 0) {
    // The scheme `none`.
    signatures.unsigned += 1;
  } else if (result.ok && (result.id === record.id || hash('sha256', body, 'hex') === record.id)) {
    // An id without a header was once the hash of the body alone.
    signatures.verified += 1;
  } else if (!result.ok && result.code === 'signature_invalid') {
    signatures.unmatched += 1;
    tally.differ({ code: 'signature_unmatched', file, line, detail: `${result.detail} that was given` });
  } else {
    signatures.invalid += 1;
    const detail = result.ok ? 'the signed id differs from the record’s' : `${result.code}: ${result.detail}`;
    tally.differ({ code: 'signature_invalid', file, line, detail });
  }
}

/** Least number of remembered lines. */
const REMEMBERED = 500_000;

/** Finds repeated lines of one file, unless they are too far apart. No signature rules out a copied line. */
export class RepeatedLines {
  #lines = new Map<string, number>();
  #before = new Map<string, number>();

  check(item: ArchiveItem<RecordEnvelope>, tally: VerifyTally): void {
    const { file, line } = item;
    const text = item.kind === 'record' ? item.text : item.sealed?.text;
    if (text === undefined || line === null) return;
    const key = hash('sha256', text, 'binary').slice(0, 12);
    const first = this.#lines.get(key) ?? this.#before.get(key);
    if (first !== undefined) {
      const detail = `the same as line ${first}: copied there, or written twice by a replay or a fleet`;
      tally.differ({ code: 'record_repeated', file, line, detail });
      return;
    }
    this.#lines.set(key, line);
    if (this.#lines.size < REMEMBERED) return;
    this.#before = this.#lines;
    this.#lines = new Map();
  }
}
