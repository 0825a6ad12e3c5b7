import type { ColumnType } from '../../definition.ts';
import { type Kind, KINDS, type Place } from './place.ts';

/** Kinds that one column takes together, the narrowest column first. */
const TAKES: readonly (readonly [ColumnType, readonly Kind[]])[] = [
  ['boolean', ['boolean']],
  ['integer', ['integer']],
  ['decimal', ['integer', 'decimal']],
  ['date', ['date']],
  ['timestamp', ['date', 'timestamp']],
  ['text', ['text', 'date', 'timestamp']],
];

/** The narrowest column that takes all that was seen; JSON takes everything. */
export function typeOf({ kinds }: Place): ColumnType {
  const seen = KINDS.filter((kind) => kinds[kind] > 0);
  if (seen.length === 0) return 'json';
  return TAKES.find(([, takes]) => seen.every((kind) => takes.includes(kind)))?.[0] ?? 'json';
}

/** What was seen, in words: counts and kinds. */
export function noteOf(place: Place, of: number): string {
  const kinds = KINDS.filter((kind) => place.kinds[kind] > 0);
  const parts = kinds.map((kind) => `${kind} ${place.kinds[kind]}`);
  if (place.nulls > 0) parts.push(`null ${place.nulls}`);
  const mixed = typeOf(place) === 'json' && kinds.length > 1 ? '; mixed, kept as JSON' : '';
  return `in ${place.seen} of ${of}: ${parts.join(', ')}${mixed}`;
}
