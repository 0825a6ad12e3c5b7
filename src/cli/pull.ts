import type { Command } from 'commander';
import { type PullProgress, pullReference } from '../history/backfill/reference.ts';
import { type ReferenceQuery, type Resource, RESOURCES } from '../history/backfill/resources.ts';
import { EXIT } from '../core/errors.ts';
import { RADII } from '../history/service/labs.ts';
import { type Io, printResult, usageError } from './io.ts';
import { commandOf, LOADED_AT, oneOf, type OptionsOf, repeated, required, WORK } from './options.ts';
import { makeOutput, noteOutput } from './output-target.ts';
import { storageOf } from './places.ts';
import { SERVICE_OPTIONS, usersOf, withService } from './service.ts';
import { StatusLine } from './status-line.ts';

const NAMES = Object.keys(RESOURCES).join(', ');

const HELP = `
Examples:
  millrace pull users --out ./data/reference
  millrace pull markers --out ./data/reference
  millrace pull orders --out s3://acme/reference/2026-11-22
  millrace pull markers --lab-test 00000000-0000-4000-8000-000000000001 --out ./data/order-set
  millrace pull areas --zip 10001 --zip 94103 --radius 50 --out ./data/reference
  millrace pull insurance --all-users --out ./data/reference
  millrace pull orders --interpretation critical --out ./data/critical

Writes one file for the table and one for each nested table; \`millrace schema\` prints the matching DDL. Every row has the time
of the run in _loaded_at. Items that the service does not have, such as the insurance of a user without one, are named and
counted. With a URL the files are made in --work and uploaded when all are complete; nothing there is overwritten, so name another
place for each run. The key comes from MILLRACE_SERVICE_API_KEY or service.apiKey. For meals see \`millrace backfill\`.

Exit codes: 0 done, 1 failed, 2 usage or config, 3 done, but some rows were rejected, or a list may be incomplete; the reason is
named.`;

/** The option of each part of a query. */
const FLAGS: Readonly<Record<keyof ReferenceQuery, string>> = {
  users: '--user',
  zipCodes: '--zip',
  labTests: '--lab-test',
  addOns: '--add-on',
  jobs: '--job',
  labs: '--lab',
  radius: '--radius',
  labAccount: '--lab-account',
  labSlug: '--lab-slug',
  status: '--status',
  interpretation: '--interpretation',
  provider: '--provider',
};

const OPTIONS = {
  '--out <place>': required('folder of the tables, or a URL such as s3://bucket/prefix'),
  ...WORK,
  '--user <id>': repeated('a user, for insurance, users and historical-pulls'),
  '--users-file <file>': 'users, one a line',
  '--all-users': 'every user the service has, for insurance',
  '--zip <code>': repeated('a zip code of five digits, for areas'),
  '--radius <miles>': oneOf(RADII.map(String), 'how far service centers may be, for areas'),
  '--lab <id>': repeated('a laboratory whose service centers are counted, for areas'),
  '--lab-account <id>': 'for lab-accounts: only this one; for areas: the one that has to serve them',
  '--status <status>': 'lab-accounts of this status, such as active',
  '--lab-test <id>': repeated('a lab test whose markers are wanted'),
  '--add-on <id>': repeated("a marker's identifier at the lab, beside those of --lab-test"),
  '--lab-slug <slug>': 'markers of this laboratory',
  '--interpretation <word>': 'orders of this interpretation, such as critical',
  '--job <id>': repeated('a parsing job'),
  '--provider <id>': 'historical-pulls of this provider',
  ...LOADED_AT,
  '--config <file>': 'the config file, for its service section',
  '--json': 'print one JSON object',
  ...SERVICE_OPTIONS,
};
type Options = OptionsOf<typeof OPTIONS>;

export function pullCommand(io: Io): Command {
  return commandOf('pull', OPTIONS, HELP)
    .description('fetch reference data from the service into tables')
    .argument('<resource>', NAMES)
    .action(async (name: string, options: Options) => {
      const known = name.replaceAll('_', '-');
      const resource = Object.hasOwn(RESOURCES, known) ? RESOURCES[known] : undefined;
      if (resource === undefined) throw usageError(`${name} is not one of ${NAMES}`);
      checkFlags(name, resource, options);
      const status = new StatusLine(io);
      const summary = await withService(io, options, async (service) => {
        const query = { ...partsOf(options), users: await usersOf(io, options, service) };
        const pull = {
          query,
          now: options.loadedAt ?? Date.now(),
          signal: io.signal,
          onProgress: (progress: PullProgress) => status.show(() => progressOf(progress, status)),
        };
        const { out, work } = options;
        const target = {
          storage: storageOf(options, io, [out]),
          out,
          work,
          kind: `pull-${known}`,
          asks: JSON.stringify(query),
          signal: io.signal,
          note: () => noteOutput(io, options.config, out, work),
        };
        return makeOutput(target, (output) => pullReference(service, resource, { ...pull, output }));
      });
      for (const field of summary.unknown_fields)
        status.note(`${field} has no column, or values of another type; they are in extra`);
      const report = status.atMost(NAMED);
      for (const { item, reason } of summary.missing) report(`missing: ${item}: ${reason}`);
      for (const reason of summary.incomplete) status.note(`incomplete: ${reason}`);
      if (summary.rejects > 0)
        status.note(`${summary.rejects} rows were rejected: they are in _rejects.ndjson`);
      const isWhole = summary.rejects + summary.incomplete.length === 0;
      const lines = Object.entries(summary.rows).map(([table, rows]) => `${table.padEnd(26)} ${rows}`);
      printResult(io, options, { ok: isWhole, ...summary }, ...lines);
      io.setExit(isWhole ? EXIT.done : EXIT.partial);
    });
}

function progressOf({ answers, total, rows, missing }: PullProgress, status: StatusLine): string {
  const counts = Object.entries(rows).map(([table, count]) => `${count} ${table}`);
  const asked = total === null ? `${answers} answers` : `${answers}/${total} answers`;
  const all = [asked, ...counts, ...(missing > 0 ? [`${missing} missing`] : [])].join(', ');
  return `${all}${status.pace(answers, total)}`;
}

/** Missing items that are named on stderr. */
const NAMED = 50;

/** @throws MillraceError usage for an option that the resource needs, or does not take */
function checkFlags(name: string, { needs, takes = [] }: Resource, options: Options): void {
  const query = { ...partsOf(options), users: options.user };
  const has = (part: keyof ReferenceQuery): boolean => {
    if (part === 'users' && (options.usersFile !== undefined || options.allUsers === true)) return true;
    const value = query[part];
    return Array.isArray(value) ? value.length > 0 : value !== undefined;
  };
  if (needs !== undefined && !has(needs)) throw usageError(`${name} needs ${FLAGS[needs]}`);
  for (const part of Object.keys(FLAGS) as (keyof ReferenceQuery)[])
    if (has(part) && part !== needs && !takes.includes(part))
      throw usageError(`${name} does not take ${FLAGS[part]}`);
}

function partsOf(options: Options): Omit<ReferenceQuery, 'users'> {
  const { zip, labTest, addOn, job, lab, radius } = options;
  const { labAccount, labSlug, status, interpretation, provider } = options;
  return {
    zipCodes: zip,
    labTests: labTest,
    addOns: addOn,
    jobs: job,
    labs: lab,
    radius: RADII.find((miles) => String(miles) === radius),
    labAccount,
    labSlug,
    status,
    interpretation,
    provider,
  };
}
