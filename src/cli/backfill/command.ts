import { text } from 'node:stream/consumers';
import { Command } from 'commander';
import { Checkpoint } from '../../backfill/checkpoint.ts';
import { countTasks, makePlan, type BackfillPlan } from '../../backfill/plan.ts';
import { runBackfill, type BackfillSummary } from '../../backfill/run.ts';
import { parseRate, triggerTime, USUAL_RATE, type TriggerRate } from '../../backfill/throttle.ts';
import { EXIT } from '../../core/errors.ts';
import { ErasedUsers } from '../../erase/erased-users.ts';
import { formatDuration, parseDuration } from '../../lib/units.ts';
import { visible } from '../../lib/visible.ts';
import type { ServiceClient } from '../../service/client.ts';
import { backfillProgress, backfillReport, newsOf } from './progress.ts';
import { note, print, usageError, type Io } from '../io.ts';
import { configIfAny } from '../config-options.ts';
import { collect, loadedAtOption, option, workOption, readAs, textOf, wholeNumber } from '../options.ts';
import { makeInPlace } from '../output-place.ts';
import { storageOf } from '../places.ts';
import { serviceOptions, withService, type ServiceFlags } from '../service.ts';

const HELP = `
Examples:
  millrace backfill --all-users --since 2026-01-01 --until 2026-06-30 --out ./data/history
  millrace backfill --users-file users.txt --provider made_up --trigger --since 2026-01-01 --out ./data/history
  cat users.txt | millrace backfill --users-file - --since 2026-01-01 --dry-run --out ./data/history
  millrace backfill --resume --out ./data/history
  millrace backfill --all-users --since 2026-01-01 --out s3://acme/history/2026-11-22

Writes meals.ndjson and meal_items.ndjson (\`millrace schema meals\` prints the matching DDL), _rejects.ndjson with invalid
rows, and _backfill.ndjson with a line for each user and provider: done, failed, not_connected or not_pulled. With --trigger
the service's bulk pull is triggered first, for users with a connection to the provider, and followed until it ends; nothing
is fetched for other users. Every step is on disk before the next begins: after an interruption --resume continues and
produces the same files. With a URL the files are made in --work, put when all are complete, and never overwritten; one run to a
place. The key comes from MILLRACE_SERVICE_API_KEY or service.apiKey.

Exit codes: 0 complete, even if users are not connected; 1 failed: after an aborted or stuck bulk operation use --resume;
2 usage or config, or the folder is in use; 3 users or rows failed, users were not pulled, or interrupted: use --resume.`;

interface Options extends ServiceFlags {
  readonly out: string;
  readonly work?: string;
  readonly user?: readonly string[];
  readonly usersFile?: string;
  readonly allUsers?: boolean;
  readonly provider?: readonly string[];
  readonly since?: string;
  readonly until?: string;
  readonly window: number;
  readonly trigger?: boolean;
  readonly resume?: boolean;
  readonly dryRun?: boolean;
  readonly concurrency: number;
  readonly poll: number;
  readonly patience: number;
  readonly rate?: readonly string[];
  readonly loadedAt?: number;
}

/** `millrace backfill`: history from the service into tables. */
export function backfillCommand(io: Io): Command {
  const command = new Command('backfill')
    .description("fetch users' history from the service into tables, resumable")
    .requiredOption('--out <place>', 'folder of the tables, or a URL such as s3://bucket/prefix')
    .addOption(workOption())
    .option('--user <id>', 'a user; may be repeated', collect)
    .option('--users-file <file>', 'users, one a line; - is standard input')
    .option('--all-users', 'every user the service has')
    .option('--provider <id>', 'only this provider; may be repeated', collect)
    .option('--since <day>', 'first day, YYYY-MM-DD')
    .option('--until <day>', 'last day (default: today)')
    .addOption(
      option('--window <days>', 'days per request; 0 requests the whole range at once', wholeNumber(), '0'),
    )
    .option('--trigger', 'trigger the bulk historical pull first, and follow it to its end')
    .option('--resume', 'continue what is unfinished in --out')
    .option('--dry-run', 'print the plan, fetch nothing')
    .addOption(option('--concurrency <n>', 'requests of one provider at once', wholeNumber(1), '8'))
    .addOption(
      option('--poll <duration>', 'how often the status of the pulls is checked', parseDuration, '10s'),
    )
    .addOption(
      option(
        '--patience <duration>',
        'longest wait without progress of the bulk operation or a pull; 0 waits forever',
        parseDuration,
        '6h',
      ),
    )
    .addOption(loadedAtOption())
    .option('--rate <provider=n/time>', "the service's trigger rate, for the estimate", collect)
    .option('--config <file>', 'the config file, for its service section')
    .option('--json', 'print one JSON object as the last line');
  return serviceOptions(command)
    .addHelpText('after', HELP)
    .action(async (options: Options) => {
      await withService(io, options, async (service) => {
        if (options.dryRun === true) showPlan(io, await planOf(io, options, service), options);
        // Before the plan: that of an unfinished run lies in the folder too.
        else await backfill(io, options, service);
      });
    });
}

async function backfill(io: Io, options: Options, service: ServiceClient): Promise<void> {
  let report = null as ReturnType<typeof backfillReport>;
  try {
    const { out, work, resume, user, usersFile, allUsers, provider, since, until, window } = options;
    const asks =
      resume === true ? null : JSON.stringify([user, usersFile, allUsers, provider, since, until, window]);
    const storage = storageOf(options, io, [out]) ?? undefined;
    const place = { out, work, storage, kind: 'backfill', asks, signal: io.signal };
    const summary = await makeInPlace<BackfillSummary>(place, async (folder, onWritten) => {
      const plan = await planOf(io, { ...options, out: folder }, service);
      const show = backfillProgress(io);
      report = backfillReport(io, options.config, titleOf(plan));
      return runBackfill({
        service,
        plan,
        output: folder,
        resume: resume === true,
        loadedAt: options.loadedAt,
        trigger: options.trigger === true,
        concurrency: options.concurrency,
        pollMs: options.poll,
        patienceMs: options.patience,
        signal: io.signal,
        onProgress: (progress) => {
          show(progress);
          report?.update(newsOf(progress));
        },
        onWritten,
      });
    });
    await report?.end({ state: 'done' });
    showSummary(io, summary, options.json === true);
  } catch (error) {
    await report?.end({ state: io.signal.aborted ? 'interrupted' : 'failed' });
    if (!io.signal.aborted) throw error;
    note(io, 'interrupted; add --resume to continue');
    io.setExit(EXIT.partial);
  }
}

/** For whoever watches: how much, and nobody's id. */
function titleOf({ users, since, until }: BackfillPlan): string {
  return `${users.length} ${users.length === 1 ? 'user' : 'users'}, ${since} to ${until}`;
}

async function planOf(io: Io, options: Options, service: ServiceClient): Promise<BackfillPlan> {
  const named = options.user !== undefined || options.usersFile !== undefined || options.allUsers === true;
  if (options.resume === true && !named) {
    const before = Checkpoint.planOf(options.out);
    if (before === null) throw usageError(`there is nothing to resume in ${options.out}`);
    return before;
  }
  if (!named) throw usageError('name the users: --user, --users-file or --all-users');
  if (options.since === undefined) throw usageError('--since is needed');
  return makePlan({
    users: withoutErased(io, options.config, await usersOf(io, options, service)),
    providers: options.provider ?? [],
    since: options.since,
    until: options.until ?? new Date().toISOString().slice(0, 10),
    windowDays: options.window,
  });
}

async function usersOf(io: Io, options: Options, service: ServiceClient): Promise<string[]> {
  const users = [...(options.user ?? [])];
  if (options.usersFile !== undefined) users.push(...(await readUsers(io, options.usersFile)).split(/\s+/));
  if (options.allUsers === true) {
    for await (const { user_id: user } of service.users.all({}, { signal: io.signal })) users.push(user);
  }
  return users;
}

async function readUsers(io: Io, file: string): Promise<string> {
  if (file === '-') return text(io.stdin);
  return readAs('--users-file', file, textOf);
}

function showPlan(io: Io, plan: BackfillPlan, options: Options): void {
  const rates = new Map((options.rate ?? []).map((given) => readAs('--rate', given, parseRate)));
  const triggers = plan.providers.map((provider) => {
    const rate: TriggerRate = rates.get(provider) ?? USUAL_RATE;
    return { provider, connections: plan.users.length, estimate_ms: triggerTime(plan.users.length, rate) };
  });
  const { users, ...rest } = plan;
  const shown = {
    ...rest,
    users: users.length,
    tasks: countTasks(plan),
    triggers: options.trigger === true ? triggers : [],
  };
  if (options.json === true) return print(io, JSON.stringify(shown));
  print(io, `users      ${shown.users}`);
  print(io, `range      ${plan.since} to ${plan.until}`);
  print(io, `requests   ${shown.tasks}`);
  for (const { provider, connections, estimate_ms: ms } of shown.triggers) {
    const estimate = `about ${formatDuration(ms)} at the service's rate`;
    print(io, `trigger    ${provider}: ${connections} connections, ${estimate}`);
  }
}

function showSummary(io: Io, summary: BackfillSummary, json: boolean): void {
  const { users, meals, meal_items: items, rejects, unknown_fields: unknown, files, outcomes } = summary;
  // Who is not connected has no history to fetch.
  const ok = outcomes.failed === 0 && outcomes.not_pulled === 0 && rejects === 0;
  if (unknown.length > 0) note(io, `in extra, without a column or not fitting it: ${unknown.join(', ')}`);
  name(io, 'failed', summary.failed_users);
  name(io, 'not connected', summary.not_connected_users);
  name(io, 'not pulled', summary.not_pulled_users);
  if (json) print(io, JSON.stringify({ ok, ...summary }));
  else {
    const { failed, not_connected: unconnected, not_pulled: unpulled } = outcomes;
    print(io, `users      ${users}`);
    print(
      io,
      `outcomes   ${outcomes.done} done, ${failed} failed, ${unconnected} not connected, ${unpulled} not pulled`,
    );
    print(io, `meals      ${meals}, items ${items}, rejected ${rejects}`);
    for (const file of files) print(io, visible(`wrote      ${file}`));
  }
  io.setExit(ok ? EXIT.done : EXIT.partial);
}

/** Users named for one reason; the file and `--json` name all of them. */
const NAMED = 50;

function name(io: Io, what: string, users: readonly string[]): void {
  for (const user of users.slice(0, NAMED)) note(io, `${what}: ${user} (the reason is in _backfill.ndjson)`);
  if (users.length > NAMED) note(io, `${what}: and ${users.length - NAMED} more, all in _backfill.ndjson`);
}

/** The users whose data was not erased: history of the others is not to be fetched again. */
function withoutErased(io: Io, config: string | undefined, users: readonly string[]): string[] {
  const loaded = configIfAny({ config }, io);
  // Without a config nothing says where the list is.
  const erased = loaded === null ? null : ErasedUsers.open(loaded.config.erasure.path);
  const left = users.filter((user) => erased?.has({ team: null, user, clientUser: null }) !== true);
  const count = users.length - left.length;
  if (count > 0) note(io, `left out: ${count} erased ${count === 1 ? 'user' : 'users'}`);
  return left;
}
