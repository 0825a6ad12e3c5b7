import type { ManifestLine } from '../core/archive-manifest.ts';
import type { FileFacts } from './facts.ts';
import type { DifferenceCode } from './report.ts';

type Found = readonly [code: DifferenceCode, detail: string];

/** What one file on disk is held against. */
export interface Listed {
  /** Its newest line; null when the manifest has none. */
  readonly line: ManifestLine | null;
  /** Another file that these very bytes are listed as; null when there is none. */
  readonly elsewhere: string | null;
}

/** Says how a file differs from its line in the manifest, apart from what its records say. */
export function compareFile(facts: FileFacts, { line, elsewhere }: Listed): Found[] {
  const moved = elsewhere === null ? '' : `; it holds what is listed as ${elsewhere}`;
  if (line === null) return [['file_extra', `present, but not listed in the manifest${moved}`]];
  if (line.sha256 === null) {
    const by = 'erasure' in line ? ` by erasure ${line.erasure}` : '';
    return [['file_returned', `was removed${by}, but is still there`]];
  }
  if ('claim_check' in line) return [['file_extra', 'listed as a kept event, not as a file of records']];
  const found: Found[] = [];
  const counts = countDifferences(facts, line);
  if (facts.bytes !== line.bytes) {
    const code = facts.bytes < line.bytes ? 'file_truncated' : 'file_changed';
    found.push([code, `${facts.bytes} bytes instead of ${line.bytes}${moved}`]);
  } else if (facts.sha256 !== line.sha256) {
    const order =
      counts.length === 0 && facts.disorderedAt !== null && facts.whole
        ? `; the counts are right, but line ${facts.disorderedAt} was received before the line above it: reordered?`
        : '';
    found.push(['file_changed', `SHA-256 is ${facts.sha256} instead of ${line.sha256}${moved || order}`]);
  }
  for (const detail of counts) found.push(['counts_differ', detail]);
  return found;
}

function countDifferences(facts: FileFacts, line: Exclude<ManifestLine, { claim_check: string }>): string[] {
  const details: string[] = [];
  const compare = (what: string, is: string | number, listed: string | number | null): void => {
    if (is !== listed) details.push(`${what}: ${is} instead of ${listed ?? 'none'}`);
  };
  compare('records', facts.records, line.records);
  const listed = new Map<string, number>();
  // As a record spells them: in its line, no half of a character stands alone.
  for (const [type, count] of Object.entries(line.types)) {
    listed.set(type.toWellFormed(), (listed.get(type.toWellFormed()) ?? 0) + count);
  }
  for (const type of new Set([...facts.types.keys(), ...listed.keys()])) {
    compare(`records of type ${JSON.stringify(type)}`, facts.types.get(type) ?? 0, listed.get(type) ?? 0);
  }
  if (facts.records > 0) {
    compare('first_received_at', facts.first, line.first_received_at);
    compare('last_received_at', facts.last, line.last_received_at);
  }
  return details;
}
