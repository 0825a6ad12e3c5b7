import { createHash } from 'node:crypto';
import { createGunzip } from 'node:zlib';
import { pipeline } from 'node:stream/promises';
import type { ManifestLine } from '../core/archive-manifest.ts';
import { MillraceError, messageOf } from '../core/errors.ts';
import { hashFile } from './facts.ts';
import type { Bytes } from './place.ts';
import type { DifferenceCode } from './report.ts';

/** What the file of a kept event turned out to hold. */
export interface ClaimFacts {
  readonly bytes: number;
  readonly sha256: string;
  /** Hash of the event's own bytes, which what points at it carries too; null when they cannot be unpacked. */
  readonly bodySha256: string | null;
}

/** Reads the file of one kept event to its end; returns why when it cannot be read. */
export async function readClaim(
  place: Bytes,
  file: string,
  signal?: AbortSignal,
): Promise<ClaimFacts | string> {
  try {
    const facts = await hashFile(place, file, signal);
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
    // Nobody waits any more, or the store was lost, which says nothing of what is in it.
    if (signal?.aborted === true || error instanceof MillraceError) throw error;
    return null;
  }
}

/** Says how the file of a kept event differs from its newest line, if it has one. */
export function compareClaim(
  facts: ClaimFacts,
  line: ManifestLine | null,
): (readonly [code: DifferenceCode, detail: string])[] {
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
