import type { Command } from 'commander';
import { EXIT } from '../core/errors.ts';
import { inferTables, type InferSummary } from '../export/infer.ts';
import { writeTables } from '../tables/learned/infer/write.ts';
import { fileReports, some } from './file-reports.ts';
import { note, print, type Io } from './io.ts';
import { withArchives } from './places.ts';
import { KEY_OPTIONS, openerOf } from './key-options.ts';
import { commandOf, type OptionsOf, readBy, repeated, wholeNumber } from './options.ts';
import { writeNew } from './out-file.ts';
import { StatusLine } from './status-line.ts';
import { TABLES_OPTION, tablesOf } from './tables-option.ts';

const HELP = `
Examples:
  millrace schema infer ./data/archive --out ./tables.yaml
  millrace schema infer ./data/archive --type raw.garmin. --out ./garmin.yaml
  millrace schema infer ./data/archive --tables ./tables.yaml   only what these do not cover
  millrace export ./data/archive --tables ./tables.yaml --table raw_garmin_dailies --out ./export/dailies

Proposes tables for events that no table covers: columns with types, nested tables for arrays of objects and for maps, a key, and
the column that tells the newest version. Comments have the counts; no value of an event is written, and names that look like
data (ids, days, foods) never become columns. Check the file, then name it with --tables, or as tables: in the config: export,
ndjson, schema and load use its tables like built-in ones.

Exit codes: 0 done, 1 failed, 2 usage, 3 done, but some records could not be read.`;

const OPTIONS = {
  '--out <file>': 'write the definitions to this new file (default: stdout)',
  '--type <prefix>': repeated('only event types with this prefix'),
  '--limit <count>': readBy(wholeNumber(1), 'look at this many events of each table', '10000'),
  '--all': 'propose tables for types that a table covers, too',
  '--config <file>': 'the config: keys of its sinks open sealed records, and its `tables` are added',
  '--json': 'print one JSON document: {ok, records, covered, tables, without, …}',
  ...TABLES_OPTION,
  ...KEY_OPTIONS,
};
type Options = OptionsOf<typeof OPTIONS>;

export function inferCommand(io: Io): Command {
  return commandOf('infer', OPTIONS, HELP)
    .description('propose tables for the events of archives that no table covers')
    .argument('<path...>', 'folders or URLs of archives, or single files of one')
    .action(async (paths: readonly string[], _: unknown, self: Command) => {
      // Commander gives options that `schema` has too to `schema`.
      const options = self.optsWithGlobals<Options>();
      const tables = await tablesOf(options, io);
      const status = new StatusLine(io);
      const opener = await openerOf(options, io);
      const summary = await withArchives(paths, options, io, (places) =>
        inferTables({
          paths,
          places,
          types: options.type,
          limit: options.limit,
          tables,
          all: options.all === true,
          opener,
          signal: io.signal,
          onProgress: (records, file) =>
            status.show(() => `${records} records${status.pace(records, null)}: ${file}`),
          onProblem: fileReports(status).onProblem,
        }),
      );
      report(summary, options, io);
      if (summary.problems > 0) io.setExit(EXIT.partial);
    });
}

function report(summary: InferSummary, { out, json }: Options, io: Io): void {
  const { tables, without, ...counts } = summary;
  const text = writeTables(tables);
  if (out !== undefined) writeNew(`--out ${out}`, out, text);
  if (json === true)
    return print(
      io,
      JSON.stringify({ ok: counts.problems === 0, ...counts, tables, without, out: out ?? null }),
    );
  if (out === undefined) print(io, text.trimEnd());
  for (const { events, count, reason } of without)
    note(io, `no table for ${events === '' ? 'others' : `${events}*`}, ${count} events: ${reason}`);
  const { records, covered, erased, problems } = counts;
  const lines = [
    `${records} records: ${covered} of types that tables take; tables proposed: ${tables.length}`,
    ...some(erased, 'records stay sealed: their users were erased'),
    ...some(problems, 'records or files could not be read'),
  ];
  for (const line of lines) note(io, line);
  if (out !== undefined && tables.length > 0)
    note(io, `written to ${out}; check it, then use it with --tables ${out}`);
}
