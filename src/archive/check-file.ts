import { createHash } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import type { ManifestLine } from '../core/archive-manifest.ts';
import { MillraceError, messageOf } from '../core/errors.ts';
import { hashChunks } from '../lib/hash-chunks.ts';
import type { FileFacts } from './facts.ts';
import type { Bytes } from './place.ts';
import type { DifferenceCode } from './report.ts';

type Found = readonly [code: DifferenceCode, detail: string];

/** What the manifest says of a file. */
export interface Listed {
  /** Its newest line; null when the manifest has none. */
  readonly line: ManifestLine | null;
  /** Another file that the same bytes are listed as. */
  readonly elsewhere: string | null;
}

/** Differences between a file and its line in the manifest. */
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
  // Records have well-formed text only.
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

/** A kept event's file after it was read. */
export interface ClaimFacts {
  readonly bytes: number;
  readonly sha256: string;
  /** Hash of the event's own bytes, as in its pointer; null when they cannot be unpacked. */
  readonly bodySha256: string | null;
}

/** @returns the reason when the file cannot be read */
export async function readClaim(
  place: Bytes,
  file: string,
  signal?: AbortSignal,
): Promise<ClaimFacts | string> {
  try {
    const facts = await hashChunks(place.chunks(file), signal);
    const isPacked = file.endsWith('.gz');
    return { ...facts, bodySha256: isPacked ? await hashUnpacked(place, file, signal) : facts.sha256 };
  } catch (error) {
    if (signal?.aborted === true || error instanceof MillraceError) throw error;
    return messageOf(error);
  }
}

async function hashUnpacked(place: Bytes, file: string, signal?: AbortSignal): Promise<string | null> {
  const hash = createHash('sha256');
  try {
    await pipeline(place.chunks(file), createGunzip(), hash, { signal });
    return hash.digest('hex');
  } catch (error) {
    // An abort or a lost store says nothing about the file.
    if (signal?.aborted === true || error instanceof MillraceError) throw error;
    return null;
  }
}

/** Differences between the file of a kept event and its newest line. */
export function compareClaim(facts: ClaimFacts, line: ManifestLine | null): Found[] {
  const { bytes, sha256, bodySha256 } = facts;
  const damaged = bodySha256 === null ? [['file_unreadable', 'cannot be unpacked'] as const] : [];
  if (line === null) return [...damaged, ['file_extra', 'present, but not listed in the manifest']];
  if (line.sha256 === null)
    return [...damaged, ['file_returned', 'was removed by an erasure, but is still there']];
  if (bytes < line.bytes) return [...damaged, ['file_truncated', `${bytes} bytes instead of ${line.bytes}`]];
  if (sha256 !== line.sha256) {
    return [...damaged, ['file_changed', `SHA-256 is ${sha256} instead of ${line.sha256}`]];
  }
  if ('claim_check' in line && bodySha256 !== null && bodySha256 !== line.body_sha256) {
    return [['file_changed', `the event's SHA-256 is ${bodySha256} instead of ${line.body_sha256}`]];
  }
  return damaged;
}
