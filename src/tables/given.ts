import { columnsOf } from './definition.ts';
import { readColumn } from './shape/fit.ts';
import type { Tables } from './tables.ts';

/**
 * Holds values that somebody gives for columns against the tables they are meant for.
 * @throws TypeError that names the column, when no table has it or its type does not take the value
 */
export function checkGiven(
  known: Tables,
  tables: readonly string[],
  given: Readonly<Record<string, string>>,
): void {
  const columns = tables.flatMap((name) => {
    const entry = known.get(name);
    return entry === undefined ? [] : columnsOf(entry.definition);
  });
  for (const [name, value] of Object.entries(given)) {
    const column = columns.find((one) => one.name === name);
    if (column === undefined) throw new TypeError(`${tables.join(', ')} have no column ${name}`);
    const text = Buffer.from(JSON.stringify(value));
    if (!['text', 'timestamp', 'date'].includes(column.type) || readColumn(column.type, text, 0, 1) === 0)
      throw new TypeError(`${name} is of type ${column.type}, but ${text.toString()} is not`);
  }
}
