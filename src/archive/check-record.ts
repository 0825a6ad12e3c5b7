import { hash } from 'node:crypto';
import { parseHead, type RecordSummary } from '../core/archive-record.ts';
import type { Verifier } from '../core/verifier.ts';
import type { ArchiveItem } from './read-line.ts';
import type { Tally } from './report.ts';

/** Counts what one line of a file is, and checks its signature where there is a verifier. */
export function checkRecord(item: ArchiveItem<RecordSummary>, tally: Tally, verifier?: Verifier): void {
  const { file, line } = item;
  if (item.kind === 'record') {
    if (item.sealed) tally.sealed.opened += 1;
    if (verifier !== undefined) checkSignature(item, tally, verifier);
    return;
  }
  const { sealed } = item;
  if (sealed?.why === 'erased') tally.sealed.erased += 1;
  else if (sealed !== undefined) tally.sealed.closed += 1;
  // Keys that were not given, or were destroyed on purpose, are no fault of the archive.
  if (sealed?.why === 'erased' || sealed?.why === 'no_keys') return;
  const code = line === null ? 'file_unreadable' : 'record_invalid';
  tally.differ({ code, file, line, detail: item.reason });
}

/**
 * Checks one record's signature over its exact bytes, at the time of its receipt. That no secret matches is a
 * difference too: nobody can tell a changed event from one signed with a secret that was not given.
 */
function checkSignature(
  { record, text, body, file, line }: ArchiveItem<RecordSummary> & { kind: 'record' },
  tally: Tally,
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
    // The scheme checks nothing.
    signatures.unsigned += 1;
  } else if (result.ok && (result.id === record.id || hash('sha256', body, 'hex') === record.id)) {
    // Ids without a header of their own were a hash of the body once, whatever else was signed.
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
