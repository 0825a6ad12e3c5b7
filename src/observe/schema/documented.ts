import type { SchemaReport } from '../../core/schema.ts';
import type { Column, ColumnType } from '../../tables/definition.ts';
import { TABLES } from '../../tables/tables.ts';
import { changed, changeOf, kindChange, type TypeDrift } from './compare.ts';

/** Paths of the documented maps in events of a type: their names are data, such as the foods of a meal. */
export function documentedMaps(type: string): ReadonlySet<string> {
  const documents = TABLES.documentsOf(type).filter(({ events }) => events?.member === 'data');
  return new Set(
    documents.flatMap(({ nested = [], events }) =>
      nested.flatMap(({ at, each }) =>
        each === 'map' ? [`/data${events?.each === 'array' ? '/*' : ''}/${at.replaceAll('.', '/')}`] : [],
      ),
    ),
  );
}

/** Differences from what the service documents, for documented types only. */
export function changesToDocumented({ types }: SchemaReport): TypeDrift[] {
  return types.flatMap((type): TypeDrift[] => {
    const documented = documentedFields(type.type);
    if (documented.size === 0) return [];
    const seen = new Set(type.fields.map(({ path }) => path));
    const added = type.fields.filter(({ path }) => expectedAt(path, documented) === undefined);
    const gone = [...documented].filter(([path]) => !seen.has(path) && isInsideSeen(path, seen));
    const kinds = type.fields.flatMap((field) => {
      const expected = expectedAt(field.path, documented);
      return expected === undefined || expected === ANY ? [] : kindChange(field, expected);
    });
    return changed(type, {
      new: added.map(changeOf),
      gone: gone.map(([path, is]) => {
        return { path, kinds: is === ANY ? ['any'] : is, first_seen: null, last_seen: null };
      }),
      kinds,
    });
  });
}

const ANY: readonly string[] = [];
const TEXT = ['text'];
const KINDS: Readonly<Record<ColumnType, readonly string[]>> = {
  text: TEXT,
  date: TEXT,
  timestamp: TEXT,
  integer: ['integer'],
  decimal: ['integer', 'decimal'],
  boolean: ['boolean'],
  json: ANY,
};
const ENVELOPE = ['/event_type', '/team_id', '/user_id', '/client_user_id'];

/** Documented kinds by path; `ANY` for anything. */
function documentedFields(type: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  for (const { events, columns, nested = [] } of TABLES.documentsOf(type)) {
    if (events?.member !== 'data') continue;
    const base = events.each === 'array' ? '/data/*' : '/data';
    addColumns(found, base, columns);
    for (const { at, each, table } of nested) {
      const place = `${base}/${at.replaceAll('.', '/')}`;
      add(found, place, [each === 'map' ? 'object' : 'array']);
      add(found, `${place}/*`, ['object']);
      addColumns(found, `${place}/*`, table.columns);
    }
  }
  if (found.size > 0) for (const path of ENVELOPE) found.set(path, TEXT);
  return found;
}

function addColumns(found: Map<string, readonly string[]>, base: string, columns: readonly Column[]): void {
  for (const { from, older, type } of columns)
    for (const path of [from, older])
      if (typeof path === 'string' && path !== '')
        add(found, `${base}/${path.replaceAll('.', '/')}`, KINDS[type]);
}

function add(found: Map<string, readonly string[]>, path: string, kinds: readonly string[]): void {
  const known = found.get(path);
  // Several columns can read the same path.
  const isAny = known === ANY || kinds === ANY;
  found.set(path, isAny ? ANY : [...new Set([...(known ?? []), ...kinds])]);
}

/** Expected kinds at a path, also around and inside documented paths; undefined for an undocumented path. */
function expectedAt(
  path: string,
  documented: ReadonlyMap<string, readonly string[]>,
): readonly string[] | undefined {
  const exact = documented.get(path);
  if (exact !== undefined) return exact;
  for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1))
    if (documented.get(path.slice(0, end)) === ANY) return ANY;
  const isAround = [...documented.keys()].some((other) => other.startsWith(`${path}/`));
  return isAround ? ['object', 'array'] : undefined;
}

/** Whether the object around the path was seen. */
function isInsideSeen(path: string, seen: ReadonlySet<string>): boolean {
  const around = path.slice(0, path.lastIndexOf('/'));
  return around === '' || seen.has(around);
}
