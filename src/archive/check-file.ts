import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { MANIFEST, type ManifestEntry } from '../core/archive.ts';
import { messageOf } from '../core/errors.ts';
import type { Verifier } from '../core/verifier.ts';
import { readPlain } from '../lib/durable.ts';
import { readArchiveFile, type ArchiveItem } from './read.ts';
import type { DifferenceCode, Tally } from './report.ts';

/** What a file turned out to hold. */
interface Contents {
  records: number;
  readonly types: Map<string, number>;
  first: string;
  last: string;
}

/** Reads one file to its end and tells the tally what differs from its manifest line, if it has one. */
export async function checkFile(
  root: string,
  file: string,
  entry: ManifestEntry | null,
  tally: Tally,
  options: { readonly verifier?: Verifier; readonly signal?: AbortSignal },
): Promise<void> {
  const differ = (code: DifferenceCode, detail: string, line: number | null = null): void =>
    tally.differ({ code, file, line, detail });
  if (entry === null) differ('file_extra', `there, not listed in ${MANIFEST}`);
  const hash = createHash('sha256');
  let size = 0;
  const contents: Contents = { records: 0, types: new Map(), first: '', last: '' };
  let whole = true;
  const see = (chunk: Buffer): void => {
    hash.update(chunk);
    size += chunk.length;
  };
  for await (const item of readArchiveFile(root, file, options.signal, see)) {
    if (item.kind === 'record') {
      count(contents, item);
      checkSignature(item, tally, options.verifier);
    } else {
      whole &&= item.line !== null;
      differ(item.line === null ? 'file_unreadable' : 'record_invalid', item.reason, item.line);
    }
  }
  // The reader stops where a file is damaged; its bytes are hashed to the end all the same.
  const onDisk = whole ? { bytes: size, sha256: hash.digest('hex') } : await hashFile(join(root, file));
  tally.files += 1;
  tally.records += contents.records;
  if (typeof onDisk === 'string') {
    differ('file_unreadable', onDisk);
    return;
  }
  tally.bytes += onDisk.bytes;
  if (entry === null) return;
  if (onDisk.bytes < entry.bytes) {
    differ('file_truncated', `${onDisk.bytes} bytes instead of ${entry.bytes}`);
  } else if (onDisk.bytes !== entry.bytes) {
    differ('file_changed', `${onDisk.bytes} bytes instead of ${entry.bytes}`);
  } else if (onDisk.sha256 !== entry.sha256) {
    differ('file_changed', `SHA-256 is ${onDisk.sha256} instead of ${entry.sha256}`);
  }
  for (const detail of countDifferences(contents, entry)) differ('counts_differ', detail);
}

function count(contents: Contents, item: ArchiveItem & { kind: 'record' }): void {
  const { event_type: type, received_at: at } = item.record;
  contents.records += 1;
  contents.types.set(type, (contents.types.get(type) ?? 0) + 1);
  // ISO 8601 in UTC with a fixed number of digits: the order of the texts is the order of the times.
  if (contents.first === '' || at < contents.first) contents.first = at;
  if (at > contents.last) contents.last = at;
}

function checkSignature(item: ArchiveItem & { kind: 'record' }, tally: Tally, verifier?: Verifier): void {
  if (verifier === undefined) return;
  const { record, body, file, line } = item;
  if (Object.keys(record.headers).length === 0) {
    tally.signatures.unsigned += 1;
    return;
  }
  const result = verifier.verify(record.headers, body, Date.parse(record.received_at));
  if (result.ok && result.id === record.id) {
    tally.signatures.valid += 1;
    return;
  }
  tally.signatures.invalid += 1;
  const detail = result.ok
    ? 'the signed id is another than the record’s'
    : `${result.code}: ${result.detail}`;
  tally.differ({ code: 'signature_invalid', file, line, detail });
}

function countDifferences(contents: Contents, entry: ManifestEntry): string[] {
  const details: string[] = [];
  const compare = (what: string, is: string | number, listed: string | number): void => {
    if (is !== listed) details.push(`${what}: ${is} instead of ${listed}`);
  };
  compare('records', contents.records, entry.records);
  const listed = new Map(Object.entries(entry.types));
  for (const type of new Set([...contents.types.keys(), ...listed.keys()])) {
    compare(`records of type ${JSON.stringify(type)}`, contents.types.get(type) ?? 0, listed.get(type) ?? 0);
  }
  if (contents.records > 0) {
    compare('first_received_at', contents.first, entry.first_received_at);
    compare('last_received_at', contents.last, entry.last_received_at);
  }
  return details;
}

/** Size and hash of a file, or why it cannot be read. */
async function hashFile(path: string): Promise<{ bytes: number; sha256: string } | string> {
  const hash = createHash('sha256');
  let bytes = 0;
  try {
    for await (const chunk of readPlain(path)) {
      hash.update(chunk);
      bytes += chunk.length;
    }
  } catch (error) {
    return messageOf(error);
  }
  return { bytes, sha256: hash.digest('hex') };
}
