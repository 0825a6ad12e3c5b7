import { once } from 'node:events';
import type { Command } from 'commander';
import { EXIT, messageOf, MillraceError } from '../core/errors.ts';
import { GROUPS, RESOURCES } from '../history/resources.ts';
import { tap } from '../lib/lines.ts';
import { aboutBytes, formatBytes, parseBytes } from '../lib/units.ts';
import { decompressed, type Input, openFile } from '../tables/ndjson/input.ts';
import { pickText } from '../tables/ndjson/pick.ts';
import { RowFiles } from '../tables/ndjson/row-files.ts';
import {
  checkGiven,
  type LocatedReject,
  LONGEST_ELEMENT,
  type ShapeProgress,
  shapeText,
  type ShapeTextOptions,
} from '../tables/ndjson/shape-text.ts';
import { describeDrift, describeExtraField, Drift, type TableDrift } from '../tables/learned/drift.ts';
import { TABLES, type Tables } from '../tables/tables.ts';
import { type Io, note, print, usageError } from './io.ts';
import { commandOf, oneOf, type OptionsOf, readBy, repeated, required, textOr } from './options.ts';
import { owningFolder } from './own-folder.ts';
import { StatusLine } from './status-line.ts';
import { tableOption, TABLES_OPTION, tablesOf } from './tables-option.ts';

const HELP = `
Examples:
  millrace ndjson meals.json --table meals --out ./tables   meals.ndjson and meal_items.ndjson
  curl … | millrace ndjson - --table meal_items > meal_items.ndjson
  millrace ndjson insurance.json --table insurance --set user_id=… --out ./tables
  millrace ndjson export.json.gz --at result.meals --table meals --out ./tables --json

The document is {"meals":[…]}, {"data":[…]}, an array, one object, or NDJSON, of any size; gzip and zstd are detected. An answer of
the service is read as \`millrace backfill\` reads it: {"electrocardiogram":[…]}, {"groups":{…}}, and {"order":{…}} as an order. Rows have
the columns that \`millrace schema\` declares; fields without a column go to the column extra. A file gets its name when it is
complete. Invalid rows go to _rejects.ndjson, or to stderr without a folder, with the reason and the byte offset in the
decompressed document, or with --at in the selected array.

An empty document, or nothing at --at, is an error and replaces no file; a file of lines may be empty.

Exit codes: 0 done, 1 failed, 2 usage, 3 done, but some rows were rejected.`;

const OPTIONS = {
  '--table <table>': required(tableOption('what the document holds', [...TABLES.keys()])),
  '--out <folder>': textOr(
    '-',
    'write a file for the table and each nested in it; - writes its rows to stdout',
  ),
  '--at <path>': 'path of the array when it is nested, such as result.meals (slower)',
  '--lines': 'treat every line as a document, whatever the first one looks like',
  '--gzip <how>': oneOf(['auto', 'no'], 'detect compression by the first bytes, or not at all', 'auto'),
  '--longest <size>': readBy(parseBytes, 'reject documents that are longer', formatBytes(LONGEST_ELEMENT)),
  '--set <column=value>': repeated(
    'fill a column that the document leaves empty, such as user_id; without it _loaded_at is the time of the run',
  ),
  '--config <file>': 'the config, whose `tables` are added',
  '--json': 'with a folder: end with a line of JSON: {ok, bytes, elements, rows, rejects, drift, files}',
  ...TABLES_OPTION,
};
type Options = OptionsOf<typeof OPTIONS>;

export function ndjsonCommand(io: Io): Command {
  return commandOf('ndjson', OPTIONS, HELP)
    .description('turn a bulk JSON document of any size into table rows')
    .argument('[file]', 'the document; - is stdin', '-')
    .action(async (file: string, options: Options) => {
      const work = await prepare(file, options, io);
      try {
        const { rejects } =
          options.out === '-'
            ? await toStdout(work, io)
            : await owningFolder(options.out, () => toFolder(work, io));
        io.setExit(rejects > 0 ? EXIT.partial : EXIT.done);
      } finally {
        await work.input.close();
      }
    });
}

type Work = Awaited<ReturnType<typeof prepare>>;

/** Checks the options and opens the input. */
async function prepare(file: string, options: Options, io: Io) {
  const known = await tablesOf(options, io);
  if (!known.has(options.table))
    throw usageError(`--table ${options.table}: the tables are ${[...known.keys()].join(', ')}`);
  if (options.out === '-' && options.json === true)
    throw usageError('--json needs a folder: rows are on stdout');
  const tables = options.out === '-' ? [options.table] : known.withNested(options.table);
  const lines = options.lines === true || /\.(ndjson|jsonl)(\.(gz|zst))?$/.test(file);
  const given = valuesOf(options.set, tables, known);
  return {
    tables,
    options,
    shaping: { given, longest: options.longest, lines, known, ...listsOf(options.table, known) },
    input: await inputOf(file, io),
  };
}

/** Where answers with history have the documents of a table. */
function listsOf(table: string, known: Tables): Pick<ShapeTextOptions, 'lists' | 'groups'> {
  const { name } = known.entry(table).document;
  const lists = [...RESOURCES.values()].flatMap((one) =>
    one.table === name && one.list !== '' ? [one.list] : [],
  );
  return {
    lists: [...new Set(lists)].filter((list) => list !== GROUPS),
    groups: lists.includes(GROUPS) ? GROUPS : undefined,
  };
}

/** The values of --set by column. */
function valuesOf(
  settings: readonly string[],
  tables: readonly string[],
  known: Tables,
): Readonly<Record<string, string>> {
  const given = Object.fromEntries(
    settings.map((setting) => {
      const at = setting.indexOf('=');
      if (at < 1) throw usageError(`--set ${setting}: write it as column=value`);
      return [setting.slice(0, at), setting.slice(at + 1)];
    }),
  );
  try {
    checkGiven(known, tables, given);
    return { _loaded_at: new Date().toISOString(), ...given };
  } catch (error) {
    throw usageError(messageOf(error), { cause: error });
  }
}

async function inputOf(file: string, io: Io): Promise<Input> {
  if (file === '-') return { size: null, chunks: asBuffers(io.stdin), close: () => Promise.resolve() };
  try {
    return await openFile(file);
  } catch (error) {
    throw new MillraceError('document_unreadable', messageOf(error), { cause: error });
  }
}

async function* asBuffers(chunks: AsyncIterable<Buffer | string>): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
}

type Shaped = ShapeProgress & { readonly drift: readonly TableDrift[] };

/** @param write writes rows; their memory is reused after its promise resolves */
async function shape(
  { input, options, tables, shaping }: Work,
  io: Io,
  write: (table: string, rows: Buffer) => Promise<void>,
  onReject: (reject: LocatedReject) => void,
): Promise<Shaped> {
  const { hash, size } = input;
  const status = new StatusLine(io);
  const name = status.atMost();
  const drift = new Drift();
  let read = 0;
  let isEmpty = true;
  const bytes = tap(input.chunks, (chunk) => (read += chunk.length));
  const whole = options.gzip === 'auto' ? decompressed(bytes) : bytes;
  const text = options.at === undefined ? whole : pickText(whole, options.at);
  const done = await shapeText(
    tap(text, (chunk) => {
      if (isEmpty && chunk.some((byte) => byte > SPACE)) isEmpty = false;
    }),
    {
      ...shaping,
      tables,
      ...(hash === undefined ? {} : { source: () => JSON.stringify([hash(), options.at]) }),
      signal: io.signal,
      write,
      onReject,
      onUnknown: (...left) => name(describeExtraField(...left)),
      onProgress: (state) => status.show(() => `${summary(state)}${status.pace(read, size, rowsIn(state))}`),
      onMet: (fields) => fields.forEach((one) => drift.add(one)),
    },
  );
  // Empty output of a failed command must not replace files.
  if (isEmpty && done.rejects === 0 && !shaping.lines)
    throw new MillraceError(
      'document_unreadable',
      options.at === undefined ? 'the document is empty' : `the document has nothing at ${options.at}`,
    );
  status.note(`${summary(done)}${status.pace(read, null, rowsIn(done))}`);
  const drifted = drift.report((table) => shaping.known.get(table)?.definition);
  for (const one of drifted) status.note(describeDrift(one));
  return { ...done, drift: drifted };
}

const SPACE = 0x20;

function summary({ bytes, rows, rejects }: ShapeProgress): string {
  const counts = Object.entries(rows).map(([table, count]) => `${count} ${table}`);
  if (rejects > 0) counts.push(`${rejects} rejected`);
  return [aboutBytes(bytes), ...counts].join(', ');
}

function rowsIn({ rows }: ShapeProgress): number {
  return Object.values(rows).reduce((sum, count) => sum + count, 0);
}

async function toStdout(work: Work, io: Io): Promise<Shaped> {
  io.whenOutputIsLost('end');
  const write = async (_: string, rows: Buffer): Promise<void> => {
    // A copy, because the stream can keep it longer.
    if (!io.stdout.write(Buffer.from(rows))) await once(io.stdout, 'drain', { signal: io.signal });
  };
  return await shape(work, io, write, (reject) => note(io, JSON.stringify(reject)));
}

async function toFolder(work: Work, io: Io): Promise<Shaped> {
  const { made, paths } = await RowFiles.fill(work.options.out, work.tables, (files) => {
    const write = (table: string, rows: Buffer): Promise<void> => files.write(table, rows);
    return shape(work, io, write, (reject) => files.reject(JSON.stringify(reject)));
  });
  if (work.options.json === true)
    print(io, JSON.stringify({ ok: made.rejects === 0, ...made, files: paths }));
  return made;
}
