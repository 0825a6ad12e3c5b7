import { Document, isMap, isNode, isSeq, type Node } from 'yaml';
import type { FileColumn, FileNesting, FileTable } from '../learned-schema.ts';

const HEAD = ` Tables that \`millrace schema infer\` proposes from events. Names, types and counts only, no values.
 key (what makes a row one thing) and newest (which version wins) are guesses: check them. Names of tables and columns can be
 changed, and columns left out: what has no column is in extra. from says where a value stands in the event's data.`;

/** A definition file, with what was seen as comments. */
export function writeTables(tables: readonly LearnedTable[]): string {
  const document = new Document({ version: 1, tables: tables.map(withoutNotes) }, { keepUndefined: false });
  document.commentBefore = HEAD;
  for (const [at, table] of tables.entries()) {
    annotate(document, ['tables', at], table);
    for (const [inner, nesting] of (table.nested ?? []).entries())
      annotate(document, ['tables', at, 'nested', inner], nesting);
  }
  return document.toString({ lineWidth: 0 });
}

function annotate(
  document: Document,
  path: readonly (string | number)[],
  table: LearnedTable | LearnedNesting,
): void {
  const node = nodeAt(document, path);
  node.spaceBefore = path.at(-1) !== 0;
  if (table.note !== undefined) node.commentBefore = ` ${table.note}`;
  for (const name of ['key', 'newest', 'events']) {
    const value = document.getIn([...path, name], true);
    if (isSeq(value)) value.flow = true;
    if (isNode(value) && name !== 'events') value.comment = ' a guess';
  }
  for (const [at, { note }] of table.columns.entries()) {
    const column = nodeAt(document, [...path, 'columns', at]);
    if (isMap(column)) column.flow = true;
    if (note !== undefined) column.comment = ` ${note}`;
  }
}

function nodeAt(document: Document, path: readonly (string | number)[]): Node {
  return document.getIn(path, true) as Node;
}

/** Without notes, and without the path of a column that is read from the member of its name. */
function withoutNotes(table: LearnedTable): object {
  const rows = table.nested === undefined ? {} : { nested: table.nested.map(plain) };
  return { ...plain(table), ...rows };
}

function plain(table: LearnedTable | LearnedNesting): object {
  const columns = table.columns.map(({ name, type, from, ...column }) => {
    return { name, type, ...(from === name ? {} : { from }), ...column, note: undefined };
  });
  return { ...table, columns, note: undefined };
}

/** A part of a definition file, with comments. */
type Learned<Rows> = Omit<Rows, 'columns' | 'nested'> & {
  readonly columns: readonly LearnedColumn[];
  readonly note?: string;
};

export type LearnedColumn = FileColumn & { readonly note?: string };

export type LearnedNesting = Learned<FileNesting>;

export type LearnedTable = Learned<FileTable> & { readonly nested?: readonly LearnedNesting[] };
