import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import { Checkpoint, FOLDER } from '../../history/backfill/checkpoint.ts';
import { type PulledSummary, runTrigger } from '../../history/backfill/have-pulled.ts';
import {
  isFinished,
  OUTCOMES,
  outcomesIn,
  parseOutcomes,
  refuseLoss,
} from '../../history/backfill/outcomes.ts';
import { type BackfillPlan, shardFolder } from '../../history/backfill/plan.ts';
import { type BackfillProgress, type BackfillSummary, runBackfill } from '../../history/backfill/run.ts';
import { systemClock } from '../../core/clock.ts';
import { EXIT } from '../../core/errors.ts';
import { isStoreUrl } from '../../core/place.ts';
import type { ServiceClient } from '../../history/service/client.ts';
import { type Io, note, usageError } from '../io.ts';
import { commandOf } from '../options.ts';
import { makeInPlace, noteOutput, type OutputPlace, textPut } from '../output-place.ts';
import { owningFolder } from '../own-folder.ts';
import { storageOf } from '../places.ts';
import { retryNotes, withService } from '../service.ts';
import { type BackfillFlags, backfillOptions, erasedUsers, isOfAll, planOf, showPlan } from './plan.ts';
import { backfillProgress, backfillReport, newsOf, showPulled, showShards, showSummary } from './report.ts';
import { summariseShards } from './shards.ts';

const HELP = `
Examples:
  millrace backfill --all-users --since 2026-01-01 --until 2026-06-30 --out ./data/history
  millrace backfill --users-file users.txt --provider made_up --trigger --since 2026-01-01 --out ./data/history
  cat users.txt | millrace backfill --users-file - --since 2026-01-01 --dry-run --out ./data/history
  millrace backfill --resume --out ./data/history
  millrace backfill --all-users --since 2026-01-01 --out s3://acme/history/2026-11-22
  millrace backfill --all-users --since 2026-01-01 --shard 3/16 --out ./data/history
  millrace backfill --summary --out ./data/history

Writes meals.ndjson and meal_items.ndjson (\`millrace schema meals\` prints the matching DDL), _rejects.ndjson with invalid
rows, and _backfill.ndjson with a line for each user and provider: done, failed, not_connected or not_pulled. With --trigger
the service's bulk pull is triggered first, for users with a connection to the provider, and followed until it ends; nothing
is fetched for other users. The same command again replaces the files, but for the rows of those whom it cannot fetch now; one that
fetches less (other users, providers, fewer days) is refused. With --replace it is not, and nothing stays. Every step is on disk before the
next begins: after an interruption --resume continues and produces the same files; after a run in which users failed it asks again for
these, from what stays in _backfill until then, and triggers those pulls again that failed or were not made. With a URL the files are made in --work, put when all are complete, and never overwritten;
one run to a place. The key comes from MILLRACE_SERVICE_API_KEY or service.apiKey.

With --shard 3/16 a run takes its share of the users, told by a hash of their ids, and writes to shard-03-of-16 below --out; job/16
takes the number from JOB_COMPLETION_INDEX. --max-rate is then divided by the number of shards. The history is pulled before, once
and for all shards, with --trigger-only. --summary puts together what all of them did, and names those that are not complete.

Exit codes: 0 complete, even if users are not connected; 1 failed: after an aborted or stuck bulk operation use --resume;
2 usage or config, or the folder is in use; 3 users failed or were not pulled, or interrupted: use --resume; or rows were rejected.`;

export function backfillCommand(io: Io): Command {
  return commandOf('backfill', backfillOptions(io.env), HELP)
    .description("fetch users' history from the service into tables, resumable")
    .action(async (options: BackfillFlags) => {
      if (options.summary === true) {
        const storage = storageOf(options, io, [options.out]);
        const summary = await summariseShards(options.out, storage, io.signal);
        return showShards(io, summary, options.out, options.json === true);
      }
      const own = ownShare(options);
      return withService(io, own, async (service) => {
        if (own.dryRun === true) showPlan(io, await planOf(io, own, service), own);
        // Before the plan: that of an unfinished run lies in the folder too.
        else await backfill(io, own, service);
      });
    });
}

/** The options as those of one shard. @throws MillraceError usage */
function ownShare(options: BackfillFlags): BackfillFlags {
  const { shard, out, maxRate, trigger, triggerOnly } = options;
  if (shard === undefined) return options;
  if (trigger === true || triggerOnly === true)
    throw usageError(
      '--trigger with --shard: the service does not tell one bulk pull from another; have it pull once for all shards, ' +
        'with --trigger-only and without --shard, and then run them',
    );
  const folder = shardFolder(shard);
  return {
    ...options,
    out: isStoreUrl(out) ? `${out.replace(/\/$/, '')}/${folder}` : join(out, folder),
    ...(maxRate === undefined ? {} : { maxRate: maxRate / shard.of }),
  };
}

async function backfill(io: Io, options: BackfillFlags, service: ServiceClient): Promise<void> {
  const { out, work, resume, user, usersFile, allUsers, provider, since, until, window } = options;
  const asks =
    resume === true ? null : JSON.stringify([user, usersFile, allUsers, provider, since, until, window]);
  const storage = storageOf(options, io, [out]);
  const kind = options.triggerOnly === true ? 'trigger' : 'backfill';
  const place = { out, work, storage, kind, asks, signal: io.signal };
  if (resume === true && kind === 'backfill' && (await isComplete(options, place))) {
    if (!isStoreUrl(out)) await removeLeft(out);
    return note(io, `${out} is complete: there is nothing to resume`);
  }
  let report = null as ReturnType<typeof backfillReport>;
  try {
    await noteOutput(io, options.config, out, work);
    const summary = await makeInPlace<BackfillSummary | PulledSummary>(place, async (folder, onWritten) => {
      const plan = await planOf(io, { ...options, out: folder }, service);
      const begins = resume === true ? Checkpoint.planOf(folder) === null : !Checkpoint.isUnfinished(folder);
      if (begins && options.replace !== true && plan.triggerOnly !== true)
        refuseLoss(folder, { plan, isOfAll: isOfAll(options), isErased: erasedUsers(io, options.config) });
      const show = backfillProgress(io);
      report = backfillReport(io, options.config, titleOf(plan));
      const shared = {
        service,
        plan,
        output: folder,
        resume: resume === true,
        replaces: options.replace === true,
        pollMs: options.poll,
        patienceMs: options.patience,
        signal: io.signal,
        onProgress: (progress: BackfillProgress) => {
          show(progress);
          report?.update(newsOf(progress));
        },
      };
      if (plan.triggerOnly === true) return runTrigger({ ...shared, clock: systemClock });
      const { loadedAt, concurrency, trigger = false } = options;
      const onRetry = retryNotes(io);
      return runBackfill({ ...shared, loadedAt, trigger, concurrency, onWritten, onRetry });
    });
    await report?.end({ state: 'done' });
    if ('pulled' in summary) showPulled(io, summary, out, options.json === true);
    else showSummary(io, summary, out, options.json === true);
  } catch (error) {
    await report?.end({ state: io.signal.aborted ? 'interrupted' : 'failed' });
    if (!io.signal.aborted) throw error;
    note(io, 'interrupted; add --resume to continue');
    io.setExit(EXIT.partial);
  }
}

/** A Job that repeats its command with --resume does not fetch again what a run before has finished. */
async function isComplete({ out, ...named }: BackfillFlags, place: OutputPlace): Promise<boolean> {
  if (isStoreUrl(out)) {
    const text = await textPut(place, OUTCOMES);
    return text !== null && isFinished(parseOutcomes(text), named);
  }
  const outcomes = Checkpoint.planOf(out) === null ? outcomesIn(out) : null;
  return outcomes !== null && isFinished(outcomes, named);
}

/** What is left of a run that was killed while it removed it. */
async function removeLeft(out: string): Promise<void> {
  const left = join(out, FOLDER);
  if (!existsSync(left)) return;
  await owningFolder(out, async () => {
    if (Checkpoint.planOf(out) === null) await rm(left, { recursive: true, force: true });
  });
}

/** For whoever watches: how much, and nobody's id. */
function titleOf({ users, since, until }: BackfillPlan): string {
  return `${users.length} ${users.length === 1 ? 'user' : 'users'}, ${since} to ${until}`;
}
