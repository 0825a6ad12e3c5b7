import type { SchemaField, SchemaReport, SchemaType } from '../../core/schema.ts';
import { type SeenField, KINDS } from '../../tables/learned/infer/seen-field.ts';
import type { SchemaMemory, TypeMemory } from './memory.ts';

/** The memory as `GET /api/schema` shows it, sorted by type. */
export function reportOf({ types, isFull }: SchemaMemory, enabled: boolean): SchemaReport {
  const all = [...types.values()].sort((a, b) => (a.type < b.type ? -1 : 1));
  return { version: 1, enabled, full: isFull, types: all.map(typeOf) };
}

function typeOf({ type, root, first, last, seen, looked, isFull }: TypeMemory): SchemaType {
  return {
    type,
    first_seen: iso(first),
    last_seen: iso(last),
    events: seen,
    looked_at: looked,
    full: isFull,
    fields: [...root.all()].flatMap((field) => (field === root ? [] : [fieldOf(field)])),
  };
}

function fieldOf(field: SeenField): SchemaField {
  const kinds = KINDS.flatMap((kind) =>
    field.kinds[kind] === 0 ? [] : [[kind, field.kinds[kind]] as const],
  );
  return {
    path: field.path,
    kinds: Object.fromEntries(field.nulls === 0 ? kinds : [...kinds, ['null', field.nulls]]),
    kinds_since: Object.fromEntries(
      kinds.map(([kind]) => [kind, iso(field.kindsSince[kind] ?? field.first)]),
    ),
    share: shareOf(field),
    first_seen: iso(field.first),
    last_seen: iso(field.last),
  };
}

function shareOf({ name, seen, around }: SeenField): number {
  if (name === null || around === null) return 1;
  // Only the whole is rounded to 1.
  return Math.min(seen / Math.max(around.kinds.object, 1), 1) === 1
    ? 1
    : Math.min(Math.round((seen * 1000) / around.kinds.object) / 1000, 0.999);
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
