import { resolve } from 'node:path';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { TABLES, type Tables } from '../tables.ts';

/**
 * The built-in tables, and those of the files.
 * @throws MillraceError tables_invalid
 */
export async function tablesWith(files: readonly string[]): Promise<Tables> {
  if (files.length === 0) return TABLES;
  // It reads YAML and checks it, which takes as long to load as the rest of the command.
  const { readTables } = await import('./read-tables.ts');
  const once = new Map(files.map((file) => [resolve(file), file]));
  return [...once.values()].reduce((tables, file) => {
    try {
      return tables.with(readTables(file));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw new MillraceError('tables_invalid', `${file}: ${messageOf(error)}`, { cause: error });
    }
  }, TABLES);
}
