import { z } from 'zod';
import type { ConfigAround, SinkDescription } from '../../core/sink.ts';
import { texts } from '../../lib/fields.ts';
import { optionsOf } from '../../lib/parse-options.ts';
import type { TableDefinition } from '../../tables/definition.ts';
import { readTables } from '../../tables/learned/read-tables.ts';
import { TABLES } from '../../tables/tables.ts';
import { connectionFields, PACKAGES } from '../../vendors/postgres/connection.ts';
import { erasureOf } from './erasure.ts';

/** @param learned tables beside the built-in ones */
function schemaWith(learned: readonly TableDefinition[]) {
  const names = TABLES.with(learned)
    .ofEvents()
    .map(({ definition }) => definition.name);
  return z
    .strictObject({
      ...connectionFields,
      tables: texts(
        'Tables that events become rows of, learned ones of the files in `tables` included; `all` for every one. None: `events`. A nested table, such as `meal_items`, is named too. One that is added has the rows of earlier events once these are replayed.',
      ),
    })
    .transform(({ tables, ...connection }, context) => {
      for (const name of tables) {
        if (name === 'all' || names.includes(name)) continue;
        const message = `${JSON.stringify(name)} must be all, or one of ${names.join(', ')}`;
        context.addIssue({ code: 'custom', path: ['tables'], message });
      }
      const named = tables.length === 0 ? ['events'] : tables;
      return { ...connection, tables: tables.includes('all') ? names : named, learned };
    });
}

export const { optionsSchema } = optionsOf(schemaWith([]));

export type PostgresOptions = z.output<ReturnType<typeof schemaWith>>;

/** @throws OptionsError, or MillraceError tables_invalid when a file of the config defines no tables */
export function parseOptions(
  options: unknown,
  { tables: files }: ConfigAround = { tables: [] },
): PostgresOptions {
  return optionsOf(schemaWith(files.flatMap(readTables))).parseOptions(options);
}

const connection = optionsOf(z.object(connectionFields));

export function describe(written: Readonly<Record<string, unknown>>): SinkDescription {
  return {
    packages: PACKAGES,
    erases: () => erasureOf(written, () => connection.parseOptions(written)),
  };
}
