import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { Checkpoint, FOLDER, STATE } from '../../history/backfill/checkpoint.ts';
import { type PulledSummary, runTrigger } from '../../history/backfill/have-pulled.ts';
import {
  checkFiles,
  isFinished,
  OUTCOMES,
  outcomesIn,
  parseOutcomes,
  refuseLoss,
} from '../../history/backfill/outcomes.ts';
import { shardFolder } from '../../history/backfill/plan.ts';
import { type BackfillProgress, type BackfillSummary, runBackfill } from '../../history/backfill/run.ts';
import { systemClock } from '../../core/clock.ts';
import { EXIT } from '../../core/errors.ts';
import { isStoreUrl } from '../../core/place.ts';
import type { ServiceClient } from '../../history/service/client.ts';
import { removeRun } from '../../lib/work-folder.ts';
import type { ActivityReport } from '../activity-report.ts';
import { type Io, note, plural, usageError } from '../io.ts';
import { commandOf } from '../options.ts';
import { makeOutput, noteOutput, type OutputTarget, textPut } from '../output-target.ts';
import { owningFolder } from '../own-folder.ts';
import { storageOf } from '../places.ts';
import { isOfAll, retryNotes, withService } from '../service.ts';
import { type BackfillFlags, backfillOptions, erasedUsers, planOf, showPlan } from './plan.ts';
import {
  activityOf,
  backfillProgress,
  backfillReport,
  showPulled,
  showShards,
  showSummary,
} from './report.ts';
import { summariseShards } from './shards.ts';

const HELP = `
Examples:
  millrace backfill --all-users --since 2026-01-01 --until 2026-06-30 --out ./data/history
  millrace backfill --users-file users.txt --provider made_up --trigger --since 2026-01-01 --out ./data/history
  cat users.txt | millrace backfill --users-file - --since 2026-01-01 --dry-run --out ./data/history
  millrace backfill --resume --out ./data/history
  millrace backfill --all-users --since 2026-01-01 --out s3://acme/history/2026-11-22
  millrace backfill --all-users --since 2026-01-01 --shard 3/16 --out ./data/history
  millrace backfill --all-users --since 2026-01-01 --resource sleep,heartrate --out ./data/history
  millrace backfill --summary --out ./data/history

Writes a file for each table, such as meals.ndjson and meal_items.ndjson (\`millrace schema meals\` prints the matching DDL),
_rejects.ndjson with invalid rows, and _backfill.ndjson with a line for each user, resource and provider: done, failed,
not_connected or not_pulled. --resource takes names of resources, or all; service.resources adds to them. --trigger first starts the
service's bulk pull for users with a connection to the provider, waits until it ends, and fetches only these users.

Each step is on disk before the next begins. --resume continues after an interruption and produces the same files; after a run in
which users failed it fetches these users again, and repeats their failed pulls. Without --resume the same command replaces the
files, but keeps the rows of users that it cannot fetch now. A command that fetches less (other users, providers, fewer days) is
refused unless --replace is given, which keeps nothing. Where the service lists nothing now and there were rows, these stay and the
exit code is 3, unless --accept-empty is given. _pulls.ndjson names the pulls that are whole: an item of their range that is not in
the files has gone. With a URL the files are made in --work and uploaded when all are complete;
nothing there is overwritten. The key comes from MILLRACE_SERVICE_API_KEY or service.apiKey.

--shard 3/16 fetches one of 16 parts of the users (by a hash of their ids) into shard-03-of-16 below --out; job/16 takes the number
from JOB_COMPLETION_INDEX. --max-rate is divided by the number of shards. Run --trigger-only once before the shards. --summary adds
up what all shards did, and names incomplete ones.

Exit codes: 0 complete, even if users are not connected; 1 failed: after an aborted or stuck bulk operation use --resume;
2 usage or config, or the folder is in use; 3 users failed or were not pulled, or interrupted: use --resume; or rows were
rejected.`;

export function backfillCommand(io: Io): Command {
  return commandOf('backfill', backfillOptions(io.env), HELP)
    .description("fetch users' history from the service into tables, resumable")
    .action(async (options: BackfillFlags) => {
      if (options.summary === true) {
        const storage = storageOf(options, io, [options.out]);
        const summary = await summariseShards(options.out, storage, io.signal);
        return showShards(io, summary, options.out, options.json === true);
      }
      const own = shardOptions(options);
      return withService(io, own, async (service) => {
        if (own.dryRun === true) showPlan(io, await planOf(io, own, service), own);
        else await backfill(io, own, service);
      });
    });
}

/** With --shard: the folder and the request rate of that shard. @throws MillraceError usage */
function shardOptions(options: BackfillFlags): BackfillFlags {
  const { shard, out, maxRate, trigger, triggerOnly } = options;
  if (shard === undefined) return options;
  if (trigger === true || triggerOnly === true)
    throw usageError(
      '--trigger with --shard: the service cannot tell bulk pulls apart; run --trigger-only once without --shard, then the shards',
    );
  const folder = shardFolder(shard);
  return {
    ...options,
    out: isStoreUrl(out) ? `${out.replace(/\/$/, '')}/${folder}` : join(out, folder),
    ...(maxRate === undefined ? {} : { maxRate: maxRate / shard.of }),
  };
}

async function backfill(io: Io, options: BackfillFlags, service: ServiceClient): Promise<void> {
  const { out, work, resume, user, usersFile, allUsers, provider, resource, since, until, window } = options;
  // Meals alone are asked for as before there were other resources.
  const others = resource.length === 0 ? [] : [resource];
  const asks =
    resume === true
      ? null
      : JSON.stringify([user, usersFile, allUsers, provider, since, until, window, ...others]);
  const storage = storageOf(options, io, [out]);
  const kind = options.triggerOnly === true ? 'trigger' : 'backfill';
  const noted = (): Promise<void> => noteOutput(io, options.config, out, work);
  const target = { out, work, storage, kind, asks, signal: io.signal, note: noted };
  if (resume === true && kind === 'backfill' && (await isComplete(options, target))) {
    if (!isStoreUrl(out)) await removeLeft(out);
    return note(io, `${out} is complete: there is nothing to resume`);
  }
  let report = null as ActivityReport | null;
  try {
    const summary = await makeOutput<BackfillSummary | PulledSummary>(target, async (folder, onWritten) => {
      const plan = await planOf(io, { ...options, out: folder }, service);
      const begins = resume === true ? Checkpoint.planOf(folder) === null : !Checkpoint.isUnfinished(folder);
      if (begins && options.replace !== true && plan.triggerOnly !== true)
        refuseLoss(folder, { plan, isOfAll: isOfAll(options), isErased: erasedUsers(io, options.config) });
      const show = backfillProgress(io);
      // The console shows it: no ids.
      const title = `${plural(plan.users.length, 'user')}, ${plan.since} to ${plan.until}`;
      const activity = (report = backfillReport(io, options.config, title));
      const shared = {
        service,
        plan,
        output: folder,
        resume: resume === true,
        replaces: options.replace === true,
        acceptsEmpty: options.acceptEmpty === true,
        pollMs: options.poll,
        patienceMs: options.patience,
        signal: io.signal,
        onProgress: (progress: BackfillProgress) => {
          show(progress);
          activity?.update(activityOf(progress));
        },
      };
      if (plan.triggerOnly === true) return runTrigger({ ...shared, clock: systemClock });
      const { loadedAt, concurrency, trigger = false } = options;
      const onRetry = retryNotes(io);
      const onCut = (path: string, bytes: number) =>
        note(io, `${path}: cut off ${plural(bytes, 'byte')} of a write that was interrupted`);
      return runBackfill({ ...shared, loadedAt, trigger, concurrency, onWritten, onRetry, onCut });
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

/** A Kubernetes Job repeats its command with --resume also after it was complete. @throws MillraceError rows_missing */
async function isComplete({ out, ...named }: BackfillFlags, target: OutputTarget): Promise<boolean> {
  if (isStoreUrl(out)) {
    const text = await textPut(target, OUTCOMES);
    return text !== null && isFinished(parseOutcomes(text), named);
  }
  const outcomes = Checkpoint.planOf(out) === null ? outcomesIn(out) : null;
  if (outcomes === null || !isFinished(outcomes, named)) return false;
  await checkFiles(out, outcomes);
  return true;
}

/** Removes the state that a killed run was about to remove. */
async function removeLeft(out: string): Promise<void> {
  const left = join(out, FOLDER);
  if (!existsSync(left)) return;
  await owningFolder(out, async () => {
    if (Checkpoint.planOf(out) === null) await removeRun(left, STATE);
  });
}
