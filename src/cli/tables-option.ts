import { readFileSync } from 'node:fs';
import { type Tables, tablesWith } from '../tables/tables.ts';
import type { ConfigFlags } from './config-options.ts';
import type { Io } from './io.ts';
import { type OptionsOf, repeated, type Spec, special } from './options.ts';

const DEFAULT_CONFIG = 'config/millrace.yaml';

/** Of a command that takes tables of definition files. */
export const TABLES_OPTION = {
  '--tables <file>': repeated(
    'also the tables of this definition file; may be repeated (default: those that `tables:` in the config names)',
  ),
};

export type TablesFlags = ConfigFlags & Partial<OptionsOf<typeof TABLES_OPTION>>;

/** An option whose value is a table: the built-in ones are named in the help; definition files may add others. */
export function tableOption(description: string, names: readonly string[], fallback?: string): Spec<string> {
  return special(description, (option) => {
    option.argChoices = [...names];
    return option.default(fallback);
  });
}

/**
 * The built-in tables, and those of the files that the command and the config name.
 * @throws MillraceError tables_invalid, config_invalid
 */
export async function tablesOf(flags: TablesFlags, io: Io): Promise<Tables> {
  return tablesWith([...(await filesOfConfig(flags, io)), ...(flags.tables ?? [])]);
}

/** Whoever has no config, or one without `tables`, does not wait for it to be read, or hear what is wrong with it. */
async function filesOfConfig({ config: file }: TablesFlags, io: Io): Promise<readonly string[]> {
  const named = file ?? (io.env['MILLRACE_CONFIG'] || DEFAULT_CONFIG);
  if (file === undefined && !mentionsTables(named)) return [];
  const { configOf } = await import('./config-options.ts');
  return configOf({ config: named }, io).config.tables;
}

function mentionsTables(file: string): boolean {
  try {
    return /\btables\b["']?\s*:/.test(readFileSync(file, 'utf8'));
  } catch {
    return false;
  }
}
