import { MillraceError } from '../core/errors.ts';
import { columnsOf } from '../tables/definition.ts';
import type { Tables } from '../tables/tables.ts';
import type { ExportStep } from './export-step.ts';

/** Types of the columns of the tables of these files. */
export function typesOf(files: ExportStep['files'], tables: Tables): ExportStep['types'] {
  const definitions = [...new Set(files.map(({ table }) => table))].flatMap(
    (table) => tables.get(table)?.definition ?? [],
  );
  const types = definitions.map(
    (one) => [one.name, columnsOf(one).map(({ name, type }) => [name, type])] as const,
  );
  return Object.fromEntries(types.map(([table, columns]) => [table, Object.fromEntries(columns)]));
}

/**
 * Checks that files that stay have the present column types: readers refuse a folder with two types of a column.
 * @throws MillraceError usage
 */
export function checkTypes(staying: readonly ExportStep[], tables: Tables, place: string): void {
  for (const { types } of staying) {
    for (const [table, columns] of Object.entries(types)) {
      const definition = tables.get(table)?.definition;
      for (const { name, type } of definition === undefined ? [] : columnsOf(definition)) {
        const was = columns[name] ?? type;
        if (was !== type)
          throw new MillraceError(
            'usage',
            `${place}: table ${table}: column ${name} is ${was}, and ${type} now; ` +
              'export to another place, or with --again, which makes all files again',
          );
      }
    }
  }
}
