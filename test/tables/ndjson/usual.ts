import fc from 'fast-check';
import type { ColumnType, TableDefinition } from '../../../src/tables/definition.ts';
import { MEALS } from '../../../src/tables/definitions/meals.ts';

/** JSON text of documents in which all is as it should be: known members once each, of their types, in any order and spacing. */

const white = fc.constantFrom('', '', '', ' ', '\n\t', '\r\n  ');

/** Escapes only where rows have them too. */
const text = fc
  .array(
    fc.oneof(
      fc.string({ maxLength: 20 }),
      fc.constantFrom('"', '\\', '\n', '\t', '\b', '\u007f', '\u2028', 'é', '😀', '/', '{', '],'),
    ),
    { maxLength: 4 },
  )
  .map((parts) => JSON.stringify(parts.join('')))
  .filter((json) => !json.includes(String.raw`\u`));

const named = text.filter((json) => json.length > 2);

const words = (all: string): fc.Arbitrary<string> => fc.constantFrom(...all.split(' '));
const decimal = words('0 -0 1.10 12.50 400 -3.75 0.000000000000001 123456789012345678');
const integer = fc.constantFrom('0', '7', '-12', '123456789012345678');
const day = fc.constantFrom('2024-02-29', '2000-02-29', '0001-01-01', '2026-12-31', '2026-04-30');
const quotedDay = day.map((date) => `"${date}"`);
const time = fc
  .tuple(
    day,
    fc.constantFrom('', 'T08:00:00', ' 23:59:59', 'T00:00:00.5', 'T10:20:30.123456'),
    fc.constantFrom('', 'Z', '+05:30', '-14:59'),
  )
  // Offsets at the ends of all years are none that WebAssembly knows.
  .filter(([date, , zone]) => zone.length < 2 || !date.startsWith('0001'))
  .map(([date, clock, zone]) => `"${date}${clock}${clock === '' ? '' : zone}"`);

type Members = Readonly<Record<string, fc.Arbitrary<string>>>;

/** An object of some of the members, each of which may be null; those named `needed` are there, and are not. */
function objectOf(members: Members, needed: readonly string[] = []): fc.Arbitrary<string> {
  const all = Object.entries(members).map(([name, value]) =>
    fc.tuple(
      fc.constant(JSON.stringify(name)),
      needed.includes(name) ? value : fc.oneof({ weight: 9, arbitrary: value }, fc.constant('null')),
    ),
  );
  const names = Object.keys(members);
  return fc
    .tuple(fc.tuple(...all), fc.shuffledSubarray(names.map((_, at) => at)), white, white)
    .map(([pairs, chosen, gap, wide]) => {
      const missing = names.flatMap((name, at) =>
        needed.includes(name) && !chosen.includes(at) ? [at] : [],
      );
      const written = [...chosen, ...missing].map((at) => `${pairs[at]?.[0]}${gap}:${wide}${pairs[at]?.[1]}`);
      return `{${wide}${written.join(`${gap},${wide}`)}${gap}}`;
    });
}

const VALUES: Readonly<Record<ColumnType, fc.Arbitrary<string> | null>> = {
  text: named,
  integer,
  decimal,
  timestamp: time,
  date: quotedDay,
  boolean: fc.constantFrom('true', 'false'),
  json: null,
};

interface Node {
  value: fc.Arbitrary<string> | null;
  readonly inner: Map<string, Node>;
}

/** A document with values where the table's columns read, those of JSON excepted; what has to be there is. */
export function usualDocument(table: TableDefinition): fc.Arbitrary<string> {
  const root: Node = { value: null, inner: new Map() };
  const needed: string[] = [];
  const at = (path: string): Node =>
    path.split('.').reduce((node, name) => {
      const next = node.inner.get(name) ?? { value: null, inner: new Map<string, Node>() };
      node.inner.set(name, next);
      return next;
    }, root);
  for (const { from, type, required } of table.columns) {
    if (typeof from !== 'string') continue;
    at(from).value = VALUES[type];
    if (required === true) needed.push(...from.split('.'));
  }
  for (const { at: path, each, table: inner } of table.nested ?? []) {
    const items = fc.array(fc.tuple(named, usualDocument(inner)), { maxLength: 3 });
    at(path).value = items.map((all) =>
      each === 'array'
        ? `[${all.map(([, item]) => item).join(' , ')}]`
        : `{${all.map(([name, item]) => `${name}:${item}`).join(' , ')}}`,
    );
  }
  const render = ({ value, inner }: Node): fc.Arbitrary<string> => {
    if (value !== null) return value;
    const members = [...inner].map(
      ([name, node]) =>
        [name, node.inner.size === 0 && node.value === null ? fc.constant('null') : render(node)] as const,
    );
    return objectOf(Object.fromEntries(members), needed);
  };
  return render(root);
}

export const usualMeal = usualDocument(MEALS);
