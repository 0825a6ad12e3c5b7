import type { SchemaField, SchemaReport, SchemaType } from '../../core/schema.ts';

/** A new field, or one that was not seen any more. */
export interface FieldChange {
  readonly path: string;
  readonly kinds: readonly string[];
  readonly first_seen: string | null;
  readonly last_seen: string | null;
}

/** A field with other kinds of values than before. */
export interface KindChange {
  readonly path: string;
  readonly before: readonly string[];
  readonly now: readonly string[];
  /** When a new kind was first seen; null without a new kind. */
  readonly since: string | null;
}

export interface TypeDrift {
  readonly type: string;
  readonly is: 'new' | 'gone' | 'changed';
  readonly first_seen: string | null;
  readonly last_seen: string | null;
  readonly new: readonly FieldChange[];
  readonly gone: readonly FieldChange[];
  readonly kinds: readonly KindChange[];
}

/** Differences between two reports. A kind that was not seen again is no drift. */
export function compareReports(before: SchemaReport, now: SchemaReport): TypeDrift[] {
  const old = new Map(before.types.map((type) => [type.type, type]));
  const current = new Map(now.types.map((type) => [type.type, type]));
  const gone = before.types.filter(({ type }) => !current.has(type)).map((type) => ofWhole(type, 'gone'));
  const other = now.types.flatMap((type): TypeDrift[] => {
    const earlier = old.get(type.type);
    if (earlier === undefined) return [ofWhole(type, 'new')];
    const was = new Map(earlier.fields.map((field) => [field.path, field]));
    const is = new Map(type.fields.map((field) => [field.path, field]));
    return changed(type, {
      new: type.fields.filter(({ path }) => !was.has(path)).map(changeOf),
      gone: earlier.fields.filter(({ path }) => !is.has(path)).map(changeOf),
      kinds: type.fields.flatMap((field) => {
        const known = was.get(field.path);
        return known === undefined ? [] : kindChange(field, kindsOf(known));
      }),
    });
  });
  return sorted([...gone, ...other]);
}

/** Changes since a time (ISO 8601, UTC). A field is gone when the object around it was seen since, without it. */
export function changesSince({ types }: SchemaReport, since: string): TypeDrift[] {
  const drift = types.flatMap((type): TypeDrift[] => {
    if (type.first_seen >= since) return [ofWhole(type, 'new')];
    if (type.last_seen < since) return [ofWhole(type, 'gone')];
    const last = new Map(type.fields.map(({ path, last_seen }) => [path, last_seen]));
    const lastAround = (path: string) => last.get(path.slice(0, path.lastIndexOf('/'))) ?? type.last_seen;
    return changed(type, {
      new: type.fields.filter(({ first_seen: first }) => first >= since).map(changeOf),
      gone: type.fields
        .filter(({ path, last_seen: at }) => at < since && lastAround(path) >= since)
        .map(changeOf),
      kinds: type.fields.flatMap((field) => {
        if (field.first_seen >= since) return [];
        const before = Object.entries(field.kinds_since).flatMap(([kind, at]) => (at < since ? [kind] : []));
        return before.length === 0 ? [] : kindChange(field, before);
      }),
    });
  });
  return sorted(drift);
}

export function changed(
  { type, first_seen, last_seen }: SchemaType,
  changes: Pick<TypeDrift, 'new' | 'gone' | 'kinds'>,
): TypeDrift[] {
  if (changes.new.length + changes.gone.length + changes.kinds.length === 0) return [];
  return [{ type, is: 'changed', first_seen, last_seen, ...changes }];
}

function ofWhole({ type, first_seen, last_seen }: SchemaType, is: 'new' | 'gone'): TypeDrift {
  return { type, is, first_seen, last_seen, new: [], gone: [], kinds: [] };
}

export function changeOf({ path, kinds, first_seen, last_seen }: SchemaField): FieldChange {
  return { path, kinds: Object.keys(kinds), first_seen, last_seen };
}

function kindsOf({ kinds }: SchemaField): readonly string[] {
  return Object.keys(kinds).filter((kind) => kind !== 'null');
}

/** @param before known kinds; without any, the field was always null and no change is reported */
export function kindChange(field: SchemaField, before: readonly string[]): KindChange[] {
  const now = kindsOf(field);
  const added = now.filter((kind) => !before.includes(kind));
  if (before.length === 0 || added.length === 0) return [];
  const since = added.map((kind) => field.kinds_since[kind] ?? field.first_seen).sort()[0] ?? null;
  return [{ path: field.path, before, now, since }];
}

function sorted(drift: readonly TypeDrift[]): TypeDrift[] {
  return drift.toSorted((a, b) => (a.type < b.type ? -1 : 1));
}
