import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { TABLES } from '../../src/tables/tables.ts';
import { type Field, readShapes } from '../tables/event-shapes.ts';
import { exportOf } from '../tables/support.ts';

const { shapes } = readShapes();
const types = shapes.flatMap((shape) => shape.types.map((type) => [type, shape] as const));

test.each(types)('%s: has what the documentation requires, and nothing else', (type, { rows, fields }) => {
  const { data } = JSON.parse(madeUpEvent(3, type).body.toString()) as { data: unknown };
  for (const document of rows === 'each' ? (data as unknown[]) : [data])
    expect(faultsIn(document, fields)).toEqual([]);
});

/** Names of members that are missing or unknown, with where they are; a null is a value. */
function faultsIn(value: unknown, fields: readonly Field[], at = ''): string[] {
  const object = Object(value) as Readonly<Record<string, unknown>>;
  const names = new Set(fields.map(({ name }) => name));
  const unknown = Object.keys(object).filter((name) => !names.has(name) && !KNOWN.test(`${at}${name}`));
  const missing = fields.filter(({ name, optional }) => !optional && object[name] === undefined);
  const inside = fields.flatMap(({ name, kind }) => {
    const items = kind.name === 'list' ? ((object[name] ?? []) as unknown[]) : [object[name]];
    if (kind.fields === undefined) return [];
    return items
      .filter((item) => item !== undefined && item !== null)
      .flatMap((item) => faultsIn(item, kind.fields!, `${at}${name}.`));
  });
  return [
    ...unknown.map((name) => `+${at}${name}`),
    ...missing.map(({ name }) => `-${at}${name}`),
    ...inside,
  ];
}

/** What the shapes leave out of objects that stay whole in a column. */
const KNOWN =
  /^(?:low_level_status$|patient_|shipping_|sleep_stream\.|details\.|order_transaction\.|lab_test\.markers|data\.metadata|data\.results\.loinc)/;

test('each becomes rows of its table: none is rejected, and nothing of it is without a column', async () => {
  const events = types.map(([type], n) => contractEvent(n, { ...madeUpEvent(n, type) }));
  const typed = new Set<string>();
  for (const { definition, document } of TABLES.ofEvents()) {
    if (definition !== document && document.ownRows !== false) continue;
    const { all, messages, rejects, problems, without_table } = await exportOf(events, definition.name);
    expect([definition.name, rejects, problems, without_table], messages.join()).toEqual([
      definition.name,
      0,
      0,
      {},
    ]);
    for (const row of Object.values(all).flat()) {
      if (definition.name !== 'events') typed.add(String(row['_event_type']));
      expect([row['_event_type'], row['extra'], row['batch_extra']]).toEqual([
        row['_event_type'],
        undefined,
        undefined,
      ]);
    }
  }
  expect(types.map(([type]) => type).filter((type) => !typed.has(type))).toEqual([]);
});
