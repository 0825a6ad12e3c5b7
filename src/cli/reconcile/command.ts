import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { makePlan } from '../../history/backfill/plan.ts';
import type { Places } from '../../archive/places.ts';
import type { DescribedConfig } from '../../config/config.ts';
import { MANIFEST } from '../../core/archive.ts';
import { EXIT, MillraceError } from '../../core/errors.ts';
import { isStoreUrl } from '../../core/place.ts';
import type { RecordOpener } from '../../core/sealed-record.ts';
import { missingPlace, realOf } from '../../privacy/erase/earlier-archives.ts';
import { ErasuresInProgress } from '../../privacy/erase/requests.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { readProof } from '../../privacy/proof/open.ts';
import { LogReader } from '../../privacy/receipts/log-reader.ts';
import { receiptsPlace } from '../../privacy/receipts/place.ts';
import type { CountedArchive, CountedSink } from '../../replay/reconcile/account.ts';
import { countFiles } from '../../replay/reconcile/count-files.ts';
import type { HeadReader } from '../../replay/reconcile/log-side.ts';
import { MealIds } from '../../replay/reconcile/meal-ids.ts';
import { reconcile } from '../../replay/reconcile/reconcile.ts';
import { compareWithService } from '../../replay/reconcile/service-side.ts';
import { windowOf, type Window } from '../../replay/reconcile/window.ts';
import type { ServiceClient } from '../../history/service/client.ts';
import { noteOutput } from '../output-target.ts';
import { owningFolder } from '../own-folder.ts';
import { note, printReport, usageError, type Io } from '../io.ts';
import { withPlaces } from '../places.ts';
import { KEY_OPTIONS, openerOf } from '../key-options.ts';
import { withAccount } from '../operations.ts';
import { CONFIG, resolvedConfigOf } from '../config-options.ts';
import { commandOf, endInstant, instant, type OptionsOf, readAs, repeated } from '../options.ts';
import { renderComparison, renderReconciliation } from './report.ts';
import { SERVICE_OPTIONS, withService } from '../service.ts';
import { StatusLine } from '../status-line.ts';

const HELP = `
Examples:
  millrace reconcile
  millrace reconcile --since 2026-11-20 --until 2026-11-20 --json | jq '.sinks[] | {sink, received, missing}'
  millrace reconcile --service --since 2026-11-01 --until 2026-11-07
  millrace reconcile --service --user 00000000-0000-4000-8000-000000001000 --since 2026-11-01 --fill ./data/missing

For every sink: received = delivered + waiting + dead + dropped + quarantined + duplicates + erased + elsewhere + untold
+ missing. The sinks of an event are those of its routes when it was accepted. The window is widened to whole hours of receipt. For
a files sink the records in its files are counted, for other sinks the confirmed events. \`elsewhere\` is for other sinks, or for
none; \`untold\` is past the journal's retention. Ids of missing events are listed. With receipts, the signed log must have one
entry for each event of the journal, and its head is printed.

Many ids are compared in a temporary file (in TMPDIR, else /var/tmp): about 100 bytes for each event and each record. With
journal.type: kafka the topic is read, and --since must be within the retention of the brokers.

--service also asks the service for the meals of the users in the archives, or of --user, on the days from --since to --until, and
compares them with the archives and --tables. --fill fetches missing meals into tables in a separate folder.

Exit codes: 0 everything is accounted for, 1 failed, 2 usage or config, 4 a difference, even if --fill has filled it.`;

const OPTIONS = {
  '--since <time>': 'start: day or time of receipt, UTC (default: 24 hours before --until)',
  '--until <time>': 'end of the window; a day means all of that day (default: now)',
  ...CONFIG,
  '--service': 'compare the meals at the service with the archives',
  '--user <id>': repeated('with --service: a user (default: those in the archives)'),
  '--tables <folder>': repeated('with --service: also compare tables of a backfill or a fill'),
  '--fill <folder>': 'with --service: fetch the missing meals into tables in this folder',
  '--json': 'print one JSON document',
  ...SERVICE_OPTIONS,
  ...KEY_OPTIONS,
};
type Options = OptionsOf<typeof OPTIONS>;

/** Options that need --service. */
const OF_SERVICE = {
  baseUrl: '--base-url',
  apiKeyHeader: '--api-key-header',
  servicePath: '--service-path',
  user: '--user',
  tables: '--tables',
  fill: '--fill',
} as const satisfies Partial<Record<keyof Options, string>>;

export function reconcileCommand(io: Io): Command {
  return commandOf('reconcile', OPTIONS, HELP)
    .description('account for every delivery in a time window: compare the journal with the files')
    .action(async (options: Options) => {
      const stray = Object.entries(OF_SERVICE).find(([key]) => {
        const value = options[key as keyof Options];
        return Array.isArray(value) ? value.length > 0 : value !== undefined;
      });
      if (options.service !== true && stray !== undefined)
        throw usageError(`${stray[1]} goes with --service`);
      const since = options.since === undefined ? null : readAs('--since', options.since, instant);
      const until = options.until === undefined ? null : readAs('--until', options.until, endInstant);
      const loaded = await resolvedConfigOf(options, io);
      if (loaded.config.acknowledge === 'delivered' && options.service !== true)
        throw usageError('with acknowledge: delivered there is no journal to count from');
      const opener = await openerOf({ ...options, config: loaded.file }, io);
      const sinks = countedSinks(loaded.config, opener);
      if (options.service === true)
        return withPlaces(loaded.config.storage, (places) =>
          againstService(io, options, writtenSinks(io, loaded.config, sinks), places),
        );
      const window = windowOf(since, until, Date.now());
      const showFile = fileProgress(io);
      const report = await withPlaces(loaded.config.storage, (places) =>
        withAccount(loaded, (operations) =>
          reconcile({
            operations,
            places,
            sinks,
            earlier: earlierArchives(loaded.config, opener),
            window,
            erasures: new ErasuresInProgress(loaded.config.erasure.path),
            logHead: headReader(loaded.config),
            signal: io.signal,
            onFile: showFile,
          }),
        ),
      );
      printReport(io, options, report, () => renderReconciliation(report));
      if (report.differences.length > 0) io.setExit(EXIT.difference);
    });
}

/** Reads the head of the log of receipts; null without receipts. The report has its errors. */
function headReader(config: DescribedConfig): HeadReader | null {
  if (config.receipts.path === null) return null;
  return async () => {
    const place = await receiptsPlace(config, false);
    if (place === null) throw new Error('the log has no name');
    return new LogReader(place.folder).head(place.verifier);
  };
}

function countedSinks({ sinks }: DescribedConfig, opener: RecordOpener | undefined): CountedSink[] {
  return Object.entries(sinks).map(([name, { type, description }]) => {
    const { archive } = description;
    return { name, type, archive: archive === undefined ? null : { path: archive, opener } };
  });
}

/** Archives that files sinks wrote under earlier configs, by the name of the sink. */
function earlierArchives(
  config: DescribedConfig,
  opener: RecordOpener | undefined,
): ReadonlyMap<string, CountedArchive[]> {
  const found = new Map<string, CountedArchive[]>();
  for (const { place, sinks } of readProof(config).heads.archives())
    for (const name of sinks) {
      const { archive } = config.sinks[name]?.description ?? {};
      if (archive === undefined || realOf(archive) !== place)
        getOrMake(found, name, () => []).push({ path: place, opener });
    }
  return found;
}

/**
 * Without the sinks that have never written anything.
 * @throws MillraceError archive_unreadable for an archive that was written and is not there
 */
function writtenSinks(io: Io, config: DescribedConfig, sinks: readonly CountedSink[]): CountedSink[] {
  const { heads } = readProof(config);
  return sinks.filter(({ name, archive }) => {
    if (archive === null || isStoreUrl(archive.path) || existsSync(join(archive.path, MANIFEST))) return true;
    const root = realOf(archive.path);
    for (const noted of heads.archives()) {
      if (noted.place !== root && !noted.sinks.includes(name)) continue;
      const missing = missingPlace({ path: noted.place, archive: noted });
      if (missing !== null) throw new MillraceError('archive_unreadable', missing.message);
    }
    // A forged note may be of what was written there.
    if (existsSync(archive.path) || heads.noted(root).some(({ forged }) => forged)) return true;
    note(io, `${name}: ${archive.path} is not there, and nothing was written there yet`);
    return false;
  });
}

async function againstService(
  io: Io,
  options: Options,
  sinks: readonly CountedSink[],
  places: Places,
): Promise<void> {
  const { fill, since } = options;
  if (since === undefined) throw usageError('--service needs --since');
  const work = async (): Promise<void> => {
    if (fill !== undefined && existsSync(join(fill, 'meals.ndjson')))
      throw usageError(`--fill ${fill} has a meals.ndjson already; name another folder`);
    if (fill !== undefined) await noteOutput(io, options.config, fill);
    await withService(io, options, (service) =>
      compare(io, { ...options, since }, sinks, { service, places }),
    );
  };
  await (fill === undefined ? work() : owningFolder(fill, work));
}

async function compare(
  io: Io,
  options: Options & { readonly since: string },
  sinks: readonly CountedSink[],
  { service, places }: { readonly service: ServiceClient; readonly places: Places },
): Promise<void> {
  const held = new MealIds();
  const showFile = fileProgress(io);
  const status = new StatusLine(io);
  try {
    const known = new Set<string>();
    for (const { name, archive } of sinks) {
      if (archive === null) continue;
      await countFiles(archive.path, EVER, {
        places,
        opener: archive.opener,
        signal: io.signal,
        onRecord: ({ record, text, body }) => {
          const user = held.addRecord(record, text, body);
          if (user !== null) known.add(user);
        },
        onFile: (file) => showFile(name, file),
      });
    }
    for (const folder of options.tables) await held.addTable(join(folder, 'meals.ndjson'));
    const users = options.user.length > 0 ? options.user : [...known];
    if (users.length === 0) throw usageError('the archives know no user; name some with --user');
    const until = options.until ?? new Date().toISOString().slice(0, 10);
    const plan = makePlan({ users, providers: [], since: options.since, until, windowDays: WINDOW_DAYS });
    const report = await compareWithService({
      service,
      plan,
      held,
      fill: options.fill ?? null,
      signal: io.signal,
      onTask: (done, total, { start }) =>
        status.show(
          () => `request ${done + 1}/${total}${status.pace(done, total)}: from ${start.slice(0, 10)}`,
        ),
    });
    printReport(io, options, report, () => renderComparison(report));
    if (report.missing > 0 || report.rejects > 0) io.setExit(EXIT.difference);
  } finally {
    held.close();
  }
}

/** Shows which file is being read. */
function fileProgress(io: Io): (sink: string, file: string) => void {
  const status = new StatusLine(io);
  let files = 0;
  return (sink, file) => {
    files += 1;
    status.show(() => `${files} files read${status.pace(files, null)}, ${sink}: ${file}`);
  };
}

/** A meal can be received at any time after it. */
const EVER: Window = { since: 0, until: Number.POSITIVE_INFINITY };
/** Days of one request. */
const WINDOW_DAYS = 31;
