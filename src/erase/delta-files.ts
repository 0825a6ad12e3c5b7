const LOG = '_delta_log/';

/**
 * Folders of Delta tables, with a `/` at their ends; empty for the root itself.
 * @param files below a root, `/`-separated
 */
export function deltaTablesIn(files: readonly string[]): string[] {
  const found = new Set<string>();
  for (const file of files) {
    const [, table] = /^(|.*\/)_delta_log\/\d{20}\.(?:json|checkpoint.*)$/.exec(file) ?? [];
    if (table !== undefined) found.add(table);
  }
  return [...found];
}

/** Whether a file is a table's log, or its rows. */
export function isOfTable(file: string, tables: readonly string[]): boolean {
  return tables.some(
    (table) => file.startsWith(`${table}${LOG}`) || (file.startsWith(table) && file.endsWith('.parquet')),
  );
}
