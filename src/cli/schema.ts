import { Command, Option } from 'commander';
import { DIALECTS, type DialectName } from '../warehouse/dialects/registry.ts';
import { schemaOf, type TableSchema } from '../warehouse/schema.ts';
import { inferCommand } from './infer.ts';
import { print, usageError, type Io } from './io.ts';
import { addTablesOption, tablesOf, type TablesFlags } from './tables-option.ts';

const PARTS = ['tables', 'views', 'load'] as const;

const HELP = `
Examples:
  millrace schema --dialect duckdb --only tables,views | duckdb health.db
  millrace schema meals --dialect postgres --only load --from ./tables/meals.ndjson | psql
  millrace schema --dialect bigquery

Prints SQL: the tables for the rows of \`millrace ndjson\`, views of the newest version of each row (<table>_latest), and the
statements that load the rows. The view of a nested table needs the view of its parent table.
Without --from the location of the rows is a placeholder.`;

interface Options extends TablesFlags {
  readonly dialect?: DialectName;
  readonly only?: readonly Part[];
  readonly from?: string;
  readonly json?: boolean;
}

type Part = (typeof PARTS)[number];

/** `millrace schema`: DDL and load statements for a warehouse. */
export function schemaCommand(io: Io): Command {
  const command = new Command('schema')
    .description('print the tables, views and load statements for a warehouse')
    .argument('[table]', 'one table only')
    .addOption(new Option('--dialect <dialect>', 'the warehouse (required)').choices(Object.keys(DIALECTS)))
    .option('--only <parts>', `some of ${PARTS.join(',')}`, partsOf)
    .option(
      '--from <place>',
      'location of the rows of the table: a file, or an address that the warehouse can read',
    )
    .option('--config <file>', 'the config, whose `tables` are added')
    .option('--json', 'print one JSON document: [{table, createTable, createView, load}]')
    .addHelpText('after', HELP)
    .action(async (table: string | undefined, options: Options) => {
      const { dialect, only, from, json } = options;
      // Not for commander to demand: `schema infer` has no dialect.
      if (dialect === undefined)
        throw usageError(`--dialect is required: ${Object.keys(DIALECTS).join(', ')}`);
      const tables = await tablesOf(options, io);
      if (table !== undefined && !tables.has(table))
        throw usageError(`there is no table ${table}; there are ${[...tables.keys()].join(', ')}`);
      if (from !== undefined && table === undefined)
        throw usageError('--from needs a table: it is where its rows are');
      const schemas = [...tables.values()]
        .filter(({ definition }) => table === undefined || definition.name === table)
        .map((entry) => schemaOf(entry, dialect, from));
      if (json === true) print(io, JSON.stringify(schemas, null, 2));
      else print(io, render(schemas, only ?? PARTS));
    });
  return addTablesOption(command).addCommand(inferCommand(io));
}

function render(schemas: readonly TableSchema[], parts: readonly Part[]): string {
  const pick: Readonly<Record<Part, (schema: TableSchema) => string | null>> = {
    tables: ({ createTable }) => createTable,
    views: ({ createView }) => createView,
    load: ({ load }) => load,
  };
  return PARTS.filter((part) => parts.includes(part))
    .flatMap((part) => schemas.map(pick[part]))
    .filter((statement) => statement !== null)
    .join('\n\n');
}

function partsOf(text: string): Part[] {
  return text.split(',').map((name) => {
    const part = PARTS.find((one) => one === name);
    if (part === undefined) throw usageError(`--only ${name}: the parts are ${PARTS.join(', ')}`);
    return part;
  });
}
