import { z } from 'zod';
import { texts } from '../../lib/fields.ts';
import { optionsOf } from '../../lib/parse-options.ts';
import { TABLES } from '../../warehouse/tables.ts';
import type { SinkDescription } from '../../core/sink.ts';
import { erasureOf } from './erasure.ts';
import { connectionFields, PACKAGES } from './connection.ts';

const NAMES = TABLES.ofEvents().map(({ definition }) => definition.name);

const schema = z
  .strictObject({
    ...connectionFields,
    tables: texts('Tables that events become rows of; `all` for every one. None: `events`.'),
  })
  .transform(({ tables, ...connection }, context) => {
    for (const name of tables) {
      if (name === 'all' || NAMES.includes(name)) continue;
      const message = `${JSON.stringify(name)} must be all, or one of ${NAMES.join(', ')}`;
      context.addIssue({ code: 'custom', path: ['tables'], message });
    }
    const named = tables.length === 0 ? ['events'] : tables;
    return { ...connection, tables: tables.includes('all') ? NAMES : named };
  });

export const { parseOptions, optionsSchema } = optionsOf(schema);

/** What the PostgreSQL sink works with. */
export type PostgresOptions = z.output<typeof schema>;

/** Its rows are of users, which an erasure removes. */
export function describe(written: Readonly<Record<string, unknown>>): SinkDescription {
  return {
    packages: PACKAGES,
    erases: () => erasureOf(written['connectionString'], () => parseOptions(written)),
  };
}
