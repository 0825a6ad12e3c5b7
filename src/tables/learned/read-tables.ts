import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { nearest } from '../../lib/nearest.ts';
import { keyOf } from '../../lib/parse-options.ts';
import { parseYamlText, YamlFault, type YamlText } from '../../lib/yaml.ts';
import type { Column, TableDefinition } from '../definition.ts';
import { table as tableOf } from '../definitions/table.ts';
import {
  checkTable,
  type FileColumn,
  type FileTable,
  knownKeysAt,
  type TableProblem,
  TABLES_FILE,
} from './learned-schema.ts';
import { planRow } from '../shape/plan.ts';

const UNDESCRIBED = 'as the event has it';

/**
 * The tables of a definition file.
 * @throws MillraceError tables_invalid, with a line for each problem
 */
export function readTables(file: string): TableDefinition[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new MillraceError('tables_invalid', `${file}: ${messageOf(error)}`, { cause: error });
  }
  return parseTables(text, file);
}

/** @param file its name in messages */
export function parseTables(text: string, file: string): TableDefinition[] {
  const source = yamlOf(text, file);
  const result = TABLES_FILE.safeParse(source.value ?? {});
  const problems = result.success
    ? problemsOf(result.data.tables)
    : result.error.issues.flatMap(problemsOfIssue);
  if (!result.success || problems.length > 0) throw invalid(source, file, problems);
  return result.data.tables.map(definitionOf);
}

function yamlOf(text: string, file: string): YamlText {
  try {
    return parseYamlText(text);
  } catch (error) {
    if (!(error instanceof YamlFault)) throw error;
    const lines = error.faults.map((fault) => `${file}:${fault}`);
    throw new MillraceError('tables_invalid', lines.join('\n'), { cause: error });
  }
}

function invalid(source: YamlText, file: string, problems: readonly TableProblem[]): MillraceError {
  const lines = problems.map(({ path, message }) => {
    const { line, column } = source.locate(path);
    const place = line === null ? file : `${file}:${line}:${column}`;
    return `${place}: ${path.length === 0 ? '' : `${keyOf(path)}: `}${message}`;
  });
  return new MillraceError('tables_invalid', lines.join('\n'));
}

function problemsOfIssue({ path, ...issue }: z.core.$ZodIssue): TableProblem[] {
  const here = path.map((step) => (typeof step === 'symbol' ? String(step) : step));
  if (issue.code !== 'unrecognized_keys') return [{ path: here, message: issue.message }];
  const known = knownKeysAt(here);
  return issue.keys.map((key) => {
    const meant = nearest(key, known);
    const advice = meant === undefined ? `; known here: ${known.join(', ')}` : `; did you mean ${meant}?`;
    return { path: [...here, key], message: `is not a known key${advice}` };
  });
}

/** What one part demands of another. */
function problemsOf(tables: readonly FileTable[]): TableProblem[] {
  const problems: TableProblem[] = [];
  const names = new Set<string>();
  for (const [at, table] of tables.entries()) {
    const here = ['tables', at];
    const found = [...checkTable(table, here)];
    problems.push(...found);
    for (const { name } of [table, ...(table.nested ?? [])]) {
      if (names.has(name)) problems.push({ path: here, message: `there are two tables ${name}` });
      names.add(name);
    }
    if (found.length > 0) continue;
    try {
      planRow(definitionOf(table));
    } catch (error) {
      problems.push({ path: here, message: messageOf(error) });
    }
  }
  return problems;
}

function definitionOf({
  description,
  newest,
  columns,
  each,
  nested = [],
  ...rows
}: FileTable): TableDefinition {
  return tableOf({
    ...rows,
    description: description ?? `Learned from events ${rows.events.join(', ')}.`,
    ...(each === undefined ? {} : { each }),
    ...(newest === undefined ? {} : { newest }),
    columns: columns.map(columnOf),
    nested: nested.map(({ at, each: kind, ...inner }) => ({
      at,
      each: kind,
      table: {
        ...inner,
        description: inner.description ?? `Rows inside those of ${rows.name}.`,
        // What a row inherits stands in front of its own.
        columns: inner.columns.map(columnOf).sort((a, b) => rankOf(a) - rankOf(b)),
      },
    })),
  });
}

function rankOf({ from }: Column): number {
  return typeof from === 'object' && 'parent' in from ? 0 : 1;
}

function columnOf({ name, type, from, required, share, description, unit }: FileColumn): Column {
  return {
    name,
    type,
    from: from ?? name,
    description: description ?? UNDESCRIBED,
    ...(required === true ? { required: true as const } : {}),
    ...(share === undefined ? {} : { share }),
    ...(unit === undefined ? {} : { unit }),
  };
}
