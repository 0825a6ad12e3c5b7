import { once } from 'node:events';
import { Command, Option } from 'commander';
import { EXIT, MillraceError, messageOf } from '../core/errors.ts';
import { parseBytes } from '../lib/units.ts';
import { decompressed, openFile, type Input } from '../ndjson/input.ts';
import { pickText } from '../ndjson/pick.ts';
import { REJECTS, RowFiles } from '../ndjson/row-files.ts';
import { LONGEST_ELEMENT, type LocatedReject, shapeText, type ShapeProgress } from '../ndjson/shape-text.ts';
import { checkGiven } from '../warehouse/given.ts';
import { TABLES, tablesOf } from '../warehouse/tables.ts';
import { note, print, type Io } from './io.ts';
import { NdjsonProgress } from './ndjson-progress.ts';

const HELP = `
Examples:
  millrace ndjson meals.json --table meals --out ./tables     (meals.ndjson and meal_items.ndjson)
  curl … | millrace ndjson - --table meal_items > meal_items.ndjson
  millrace ndjson insurance.json --table insurance --set user_id=… --out ./tables
  millrace ndjson export.json.gz --at result.meals --table meals --out ./tables --json

The document is {"meals":[…]}, {"data":[…]}, an array, one object, or NDJSON, of any size; gzip and zstd are seen by
themselves. Rows have the columns that \`millrace schema\` declares; what no column takes is in their column extra. Files
have their names only when they are complete. Rows that cannot be go to _rejects.ndjson, or to stderr without a folder.

Exit codes: 0 done, 1 failed, 2 usage, 3 done, but some rows were rejected.`;

interface Options {
  readonly table: string;
  readonly out: string;
  readonly at?: string;
  readonly lines?: boolean;
  readonly gzip: 'auto' | 'no';
  readonly longest: string;
  readonly set: readonly string[];
  readonly json?: boolean;
}

/** `millrace ndjson`: a bulk JSON document into rows of tables, in constant memory. */
export function ndjsonCommand(io: Io): Command {
  return new Command('ndjson')
    .description('turn a bulk JSON document of any size into table rows')
    .argument('[file]', 'the document; - is stdin', '-')
    .requiredOption('--table <table>', `what the document holds: ${[...TABLES.keys()].join(', ')}`)
    .option('--out <folder>', 'write a file for the table and each nested in it; - writes its rows to stdout', '-')
    .option('--at <path>', 'where the array is when it lies deeper, as in result.meals (slower)')
    .option('--lines', 'take every line as a document, whatever the first one looks like')
    .addOption(
      new Option('--gzip <how>', 'look for compression in the first bytes, or do not').choices(['auto', 'no']).default('auto'),
    )
    .option('--longest <size>', 'reject documents that are longer', `${LONGEST_ELEMENT / 1024 / 1024}MiB`)
    .option(
      '--set <column=value>',
      'fill a column that the document leaves empty, such as user_id or _loaded_at; may be repeated',
      (value: string, values: readonly string[]) => [...values, value],
      [],
    )
    .option('--json', 'with a folder: end with a line of JSON: {ok, bytes, elements, rows, rejects, files}')
    .addHelpText('after', HELP)
    .action(async (file: string, options: Options) => {
      if (!TABLES.has(options.table))
        throw new MillraceError('usage', `--table ${options.table}: the tables are ${[...TABLES.keys()].join(', ')}`);
      const input = await inputOf(file, io);
      const work = { input, options, shaping: shapingOf(options) };
      const { rejects } = options.out === '-' ? await toStdout(work, io) : await toFolder(work, io);
      io.setExit(rejects > 0 ? EXIT.partial : EXIT.done);
    });
}

interface Work {
  readonly input: Input;
  readonly options: Options;
  readonly shaping: { given: Record<string, string>; longest: number; lines: boolean };
}

async function toStdout({ input, options, shaping }: Work, io: Io): Promise<ShapeProgress> {
  const progress = new NdjsonProgress(io, input.size);
  const done = await shapeText(textOf(input, options), {
    ...shaping,
    tables: [options.table],
    signal: io.signal,
    write: async (_, rows) => {
      // Written from memory that is used again, so the stream has to be done with it.
      if (!io.stdout.write(rows)) await once(io.stdout, 'drain');
    },
    onReject: (reject) => note(io, line(reject)),
    onUnknown: (table, path) => progress.note(`${table}: no column takes ${path}; it is in extra`),
    onProgress: (state) => progress.show(state),
  });
  progress.end(done);
  return done;
}
