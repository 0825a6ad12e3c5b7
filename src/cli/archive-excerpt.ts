import { once } from 'node:events';
import { Command } from 'commander';
import { EXIT, MillraceError } from '../core/errors.ts';
import { ErasedUsers } from '../erase/erased-users.ts';
import { writeExcerpt } from '../export/excerpt.ts';
import { parseBytes } from '../lib/units.ts';
import { configIfAny } from './config-options.ts';
import { note, usageError, type Io } from './io.ts';
import { collect, endInstant, instant, isoOf, option, wholeNumber } from './options.ts';
import { storageOf, withPlaces } from './places.ts';
import { tablesWith } from '../warehouse/learned/tables-with.ts';

const HELP = `
Examples:
  millrace archive excerpt ./data/archive --table meals --since 2026-11-22 > meals.parquet
  millrace archive excerpt s3://acme/archive --table events --type labtest. --limit 1000 > events.parquet

Writes rows of some records to standard output, as one Parquet file: for a look, as the console's SQL page takes it. \`millrace
export\` keeps whole tables up to date. Finished and unfinished files are read, in order of their names. Records of erased users
(erasure.path of the config) are left out, and sealed archives are refused. The file says in its footer, under \`millrace\`, how many
records it is of, and whether there were more. No file is written when there is no row.

Exit codes: 0 done, 1 failed, 2 usage, config, or a sealed archive, 3 done, but some records could not be read.`;

interface Options {
  readonly table: string;
  readonly since?: number;
  readonly until?: number;
  readonly type: readonly string[];
  readonly limit: number;
  readonly maxBytes: number;
  readonly config?: string;
  readonly json?: boolean;
}

export function excerptCommand(io: Io): Command {
  return new Command('excerpt')
    .description('write rows of some records to standard output, as one Parquet file')
    .argument('<path>', 'the folder of the archive, or its URL')
    .requiredOption('--table <name>', 'table whose rows are wanted, such as events or meals')
    .addOption(option('--since <time>', 'only received at or after this time: a day, or ISO 8601', instant))
    .addOption(option('--until <time>', 'only received before this time; a day is the whole day', endInstant))
    .option('--type <prefix>', 'only event types with this prefix; may be repeated', collect, [])
    .addOption(option('--limit <n>', 'take at most this many records', wholeNumber(1), '100000'))
    .addOption(option('--max-bytes <size>', 'take at most so much of their lines', parseBytes, '64MiB'))
    .option('--config <file>', 'the config: how stores are reached, who was erased, and its `tables`')
    .option('--json', 'end with a line of JSON on stderr: {ok, records, cut, problems, rejects}')
    .addHelpText('after', HELP)
    .action((path: string, options: Options) => excerpt(path, options, io));
}

async function excerpt(path: string, options: Options, io: Io): Promise<void> {
  const { table, since, until, type: types, limit, maxBytes, json = false } = options;
  if (since !== undefined && until !== undefined && since >= until)
    throw usageError('--since must be before --until: nothing is received in between');
  const config = configIfAny(options, io)?.config ?? null;
  const tables = await tablesWith(config?.tables ?? []);
  const made = tables.get(table)?.document.events;
  if (made === undefined) {
    const names = [...tables.values()].filter(({ document }) => document.events !== undefined);
    throw usageError(`--table ${table}: ${names.map(({ definition }) => definition.name).join(', ')}`);
  }
  io.whenOutputIsLost('end');
  const users = config === null ? null : ErasedUsers.open(config.erasure.path);
  const order = {
    path,
    table,
    since: isoOf(since),
    until: isoOf(until),
    types,
    most: { records: limit, bytes: maxBytes },
  };
  const facts = await withPlaces(storageOf(options, io, [path]), (places) =>
    writeExcerpt(
      order,
      { places, tables, isErased: (event) => users?.isErased(event) === true, signal: io.signal },
      async (piece) => {
        if (!io.stdout.write(piece)) await once(io.stdout, 'drain', { signal: io.signal });
      },
    ),
  ).catch((error: unknown) => {
    throw io.signal.aborted ? new MillraceError('interrupted', 'the file is not complete') : error;
  });
  if (json) note(io, JSON.stringify({ ok: facts.problems === 0, ...facts }));
  else if (facts.cut) note(io, `there are more: only ${facts.records} records were taken`);
  io.setExit(facts.problems > 0 ? EXIT.partial : EXIT.done);
}
