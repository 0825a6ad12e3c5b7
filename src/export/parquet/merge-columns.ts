import { asBuffer, ByteWriter } from '../../lib/byte-writer.ts';
import type { ColumnType } from '../../tables/definition.ts';
import { type Cut, type GatheredValues, isWorthIt, lengthAt, PAGE, writeOut } from './column-values.ts';
import { Dictionary } from './dictionary.ts';

/** Joins values of one column from several batches. */
export function mergeColumn(type: ColumnType, parts: readonly GatheredValues[]): GatheredValues {
  const [first] = parts;
  if (first !== undefined && parts.length === 1) return first;
  const count = parts.reduce((sum, part) => sum + part.count, 0);
  const rows = parts.reduce((sum, part) => sum + part.present.length, 0);
  const present = new Uint8Array(rows);
  let row = 0;
  for (const part of parts) {
    present.set(part.present, row);
    row += part.present.length;
  }
  const filled = parts.filter((part) => part.count > 0);
  const known = filled.every(({ indexes }) => indexes !== null) ? oneDictionary(type, filled, count) : null;
  if (known !== null) return { present, count, ...known, cuts: [] };
  const plain = new ByteWriter(Math.max(1, ...parts.map((part) => part.plain.length)));
  const cuts = appendPlain(type, plain, parts);
  return { present, count, plain: plain.view(), indexes: null, entries: 0, cuts };
}

/** Null when a common dictionary is not worth it. */
function oneDictionary(
  type: ColumnType,
  parts: readonly GatheredValues[],
  count: number,
): Pick<GatheredValues, 'plain' | 'indexes' | 'entries'> | null {
  const dictionary = new Dictionary();
  const plain = new ByteWriter(1024);
  const indexes = new Int32Array(count);
  let at = 0;
  for (const part of parts) {
    const numbers = new Int32Array(part.entries);
    const entries = asBuffer(part.plain);
    let from = 0;
    for (let entry = 0; entry < part.entries; entry += 1) {
      const to = from + lengthAt(type, entries, from);
      const before = dictionary.size;
      const number = dictionary.find(entries, from, to);
      if (number === before) plain.append(entries.subarray(from, to));
      numbers[entry] = number;
      from = to;
    }
    for (const index of part.indexes ?? []) {
      indexes[at] = numbers[index] as number;
      at += 1;
    }
  }
  if (!isWorthIt(dictionary.size, count, plain.length)) return null;
  return { plain: plain.view(), indexes, entries: dictionary.size };
}

function appendPlain(type: ColumnType, out: ByteWriter, parts: readonly GatheredValues[]): Cut[] {
  const cuts: Cut[] = [];
  const so = { rows: 0, values: 0, bytes: 0 };
  let pageFrom = 0;
  for (const part of parts) {
    const { present, count, indexes, entries } = part;
    if (out.length - pageFrom >= PAGE) {
      cuts.push({ ...so });
      pageFrom = out.length;
    }
    for (const cut of indexes === null ? part.cuts.slice(0, -1) : []) {
      cuts.push({
        rows: so.rows + cut.rows,
        values: so.values + cut.values,
        bytes: so.bytes + cut.bytes,
      });
      pageFrom = so.bytes + cut.bytes;
    }
    if (indexes === null) out.append(part.plain);
    else writeOut(type, asBuffer(part.plain), entries, indexes, out);
    so.rows += present.length;
    so.values += count;
    so.bytes = out.length;
  }
  cuts.push(so);
  return cuts;
}
