import type { FileLine } from '../../core/archive-manifest.ts';

/** What the manifest will say about the records of a file. */
export class PartStats {
  records = 0;
  firstReceivedAt = Number.POSITIVE_INFINITY;
  lastReceivedAt = Number.NEGATIVE_INFINITY;
  readonly types = new Map<string, number>();

  /** @param receivedAt milliseconds since the epoch */
  add(type: string, receivedAt: number): void {
    this.records += 1;
    this.types.set(type, (this.types.get(type) ?? 0) + 1);
    if (receivedAt < this.firstReceivedAt) this.firstReceivedAt = receivedAt;
    if (receivedAt > this.lastReceivedAt) this.lastReceivedAt = receivedAt;
  }
}

/** The manifest's line of a file. @param stem of the part it was made of */
export function lineOf(
  { file, bytes, sha256 }: Pick<FileLine, 'file' | 'bytes' | 'sha256'>,
  stats: PartStats,
  stem: string,
): Omit<FileLine, 'previous'> {
  return {
    file,
    records: stats.records,
    bytes,
    sha256,
    first_received_at: isoTime(stats.firstReceivedAt, stem),
    last_received_at: isoTime(stats.lastReceivedAt, stem),
    types: Object.fromEntries(stats.types),
  };
}

/** A part without a readable record has only the time in its name, that of its first record. */
function isoTime(ms: number, stem: string): string {
  if (Number.isFinite(ms)) return new Date(ms).toISOString();
  const named = stem.replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\d)(\d{3}Z).*$/, '$1-$2-$3:$4:$5.$6');
  const time = Date.parse(named);
  return new Date(Number.isNaN(time) ? 0 : time).toISOString();
}
