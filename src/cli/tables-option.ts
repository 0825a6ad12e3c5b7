import { NoConfig, readText } from '../config/file.ts';
import { messageOf } from '../core/errors.ts';
import { TABLES, type Tables, tablesWith } from '../tables/tables.ts';
import type { ConfigFlags } from './config-options.ts';
import { type Io, usageError } from './io.ts';
import { type OptionsOf, readBy, repeated, type Spec, special } from './options.ts';

/** For commands that use tables of definition files. */
export const TABLES_OPTION = {
  '--tables <file>': repeated('also the tables of this definition file, beside `tables:` of the config'),
};

/** For commands that make rows of one table or more. */
export const COLUMNS_OPTION = {
  '--columns <names>': readBy(
    (text) => text.split(',').map((name) => name.trim()),
    'only these columns, such as name,energy_value, of the one table that is named, and none of its nested tables; its key, its times and the ids of its events are always there',
  ),
};

/** The tables, of which the only one that is named has only these columns. @throws MillraceError usage */
export function withColumns(tables: Tables, named: readonly string[], columns?: readonly string[]): Tables {
  if (columns === undefined) return tables;
  const [table, ...others] = new Set(named);
  if (table === undefined || others.length > 0 || !tables.has(table))
    throw usageError('--columns needs one table: --table NAME');
  try {
    return tables.withColumns(table, columns);
  } catch (error) {
    throw usageError(`--columns: ${messageOf(error)}`, { cause: error });
  }
}

/** Whether rows have what has no column of its own. */
export function hasExtra({ columns }: OptionsOf<typeof COLUMNS_OPTION>): boolean {
  return columns === undefined || columns.includes('extra');
}

type TablesFlags = ConfigFlags & OptionsOf<typeof TABLES_OPTION>;

/** An option for a table. Help names the built-in ones; definition files can add others. */
export function tableOption(description: string, names: readonly string[]): Spec<string> {
  return special(description, (option) => {
    option.argChoices = [...names];
    return option;
  });
}

/** The option for several tables, and the tables nested in them. Help names the built-in ones. */
export function tablesOption(verb: string): Spec<readonly string[] | undefined> {
  return special(
    `table to ${verb} with its nested tables, or all; may be repeated (default: events)`,
    (option) => {
      option.argChoices = ['all', ...madeOfEvents(TABLES)];
      return option.argParser((text, before?: readonly string[]) => [...(before ?? []), text]);
    },
  );
}

/** @throws MillraceError usage for a name of no table of events */
export function namedTables(tables: Tables, named: readonly string[]): readonly string[] | 'all' {
  if (named.includes('all')) return 'all';
  const known = madeOfEvents(tables);
  const unknown = named.find((name) => !known.includes(name));
  if (unknown === undefined) return named;
  throw usageError(`--table ${unknown}: the tables are ${known.join(', ')}, or all`);
}

export function madeOfEvents(tables: Tables): string[] {
  return tables.ofEvents().map(({ definition }) => definition.name);
}

/**
 * The built-in tables, and those of definition files in the options and the config.
 * @throws MillraceError tables_invalid, config_invalid, config_missing
 */
export async function tablesOf(flags: TablesFlags, io: Io): Promise<Tables> {
  return tablesWith([...(await filesOfConfig(flags, io)), ...flags.tables]);
}

/** Reads the usual config only when it mentions `tables`: other commands start faster, and its errors do not matter. */
async function filesOfConfig({ config: file }: TablesFlags, io: Io): Promise<readonly string[]> {
  if (file === undefined && !mentionsTables(io)) return [];
  const { configOf } = await import('./config-options.ts');
  return configOf({ config: file }, io).config.tables;
}

function mentionsTables({ env }: Io): boolean {
  try {
    return /\btables\b["']?\s*:/.test(readText({ env }));
  } catch (error) {
    if (error instanceof NoConfig) return false;
    throw error;
  }
}
