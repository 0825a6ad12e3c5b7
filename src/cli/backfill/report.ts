import { join } from 'node:path';
import type { PulledSummary } from '../../history/backfill/have-pulled.ts';
import type { BackfillSummary, BackfillProgress } from '../../history/backfill/run.ts';
import { EXIT } from '../../core/errors.ts';
import { isStoreUrl } from '../../core/place.ts';
import { visible } from '../../lib/visible.ts';
import { note, printResult, type Io } from '../io.ts';
import type { ShardsSummary } from './shards.ts';
import type { Activity } from '../../core/operations.ts';
import { ActivityReport } from '../activity-report.ts';
import { configOf } from '../config-options.ts';
import { StatusLine } from '../status-line.ts';

export function showSummary(io: Io, summary: BackfillSummary, out: string, json: boolean): void {
  const { rejects, unknown_fields: unknown, files, outcomes } = summary;
  // Who is not connected has no history to fetch.
  const ok = outcomes.failed === 0 && outcomes.not_pulled === 0 && rejects === 0;
  if (unknown.length > 0) note(io, `in extra, without a column or not fitting it: ${unknown.join(', ')}`);
  name(io, 'failed', summary.failed_users);
  name(io, 'the rows of before stay', summary.kept_users);
  name(io, 'not connected', summary.not_connected_users);
  name(io, 'not pulled', summary.not_pulled_users);
  const wrote = files.map((file) => visible(`wrote      ${file}`));
  printResult(io, { json }, { ok, ...summary }, ...countsOf(summary), ...wrote);
  if (outcomes.failed + outcomes.not_pulled > 0) showNext(io, summary.to_trigger, out);
  io.setExit(ok ? EXIT.done : EXIT.partial);
}

/** What gets those who failed. */
function showNext(io: Io, toTrigger: number, out: string): void {
  if (isStoreUrl(out)) {
    const trigger = toTrigger > 0 ? ' and --trigger' : '';
    const next = `fetch those who failed to another --out, with --user or --users-file${trigger}`;
    return note(io, visible(`nothing in ${out} is overwritten: ${next}`));
  }
  const triggers =
    toTrigger > 0 ? `, and triggers ${toTrigger} ${toTrigger === 1 ? 'pull' : 'pulls'} again` : '';
  note(io, visible(`${resumeOf(out)} asks again for those who failed${triggers}`));
}

/** The command that a shell takes. */
function resumeOf(out: string, ...flags: readonly string[]): string {
  const quoted = /^[\w@%+=:,./-]+$/.test(out) ? out : `'${out.replaceAll("'", "'\\''")}'`;
  return ['millrace backfill', ...flags, '--resume --out', quoted].join(' ');
}

/** Users named for one reason; the file and `--json` name all of them. */
const NAMED = 50;

function name(io: Io, what: string, users: readonly string[]): void {
  for (const user of users.slice(0, NAMED)) note(io, `${what}: ${user} (the reason is in _backfill.ndjson)`);
  if (users.length > NAMED) note(io, `${what}: and ${users.length - NAMED} more, all in _backfill.ndjson`);
}

export function showShards(io: Io, summary: ShardsSummary, out: string, json: boolean): void {
  const { shards, incomplete, failing, rejects, outcomes } = summary;
  const isComplete = incomplete.length === 0;
  const ok = isComplete && outcomes.failed === 0 && outcomes.not_pulled === 0 && rejects === 0;
  for (const folder of incomplete) note(io, `not complete: ${folder}`);
  for (const folder of failing) {
    const next = isStoreUrl(out) ? '' : ` (${resumeOf(join(out, folder))} asks again)`;
    note(io, visible(`users failed in ${folder}${next}`));
  }
  const complete = `shards     ${shards - incomplete.length} of ${shards} complete`;
  printResult(io, { json }, { ok, ...summary }, complete, ...countsOf(summary));
  io.setExit(ok ? EXIT.done : EXIT.partial);
}

/** What the service has pulled, and nobody has fetched. */
export function showPulled(io: Io, summary: PulledSummary, out: string, json: boolean): void {
  const { files: _, ...shown } = summary;
  const ok = summary.failed === 0 && summary.not_pulled === 0;
  for (const { connection, status, reason } of summary.unpulled.slice(0, NAMED))
    note(io, visible(`${status.replace('_', ' ')}: ${connection}: ${reason}`));
  const pulls = `pulls      ${outcomesOf({ ...summary, done: summary.pulled })}`;
  printResult(io, { json }, { ok, ...shown }, `users      ${summary.users}`, pulls);
  if (!ok && !isStoreUrl(out)) note(io, visible(`${resumeOf(out, '--trigger-only')} triggers these again`));
  io.setExit(ok ? EXIT.done : EXIT.partial);
}

function countsOf({
  users,
  meals,
  meal_items: items,
  rejects,
  outcomes,
}: BackfillSummary | ShardsSummary): string[] {
  return [
    `users      ${users}`,
    `outcomes   ${outcomesOf(outcomes)}`,
    `meals      ${meals}, items ${items}, rejected ${rejects}`,
  ];
}

function outcomesOf(outcomes: BackfillSummary['outcomes']): string {
  const { done, failed, not_connected: unconnected, not_pulled: unpulled } = outcomes;
  return `${done} done, ${failed} failed, ${unconnected} not connected, ${unpulled} not pulled`;
}

/** Milliseconds between two lines. */
const EVERY = 2000;

/** Writes a line of progress now and then; each phase has a pace of its own. */
export function backfillProgress(io: Io): (progress: BackfillProgress) => void {
  let status = new StatusLine(io, EVERY);
  let phase = '';
  return (progress) => {
    const { done, left, text } = describe(progress);
    const isNew = progress.phase !== phase;
    if (isNew) [phase, status] = [progress.phase, new StatusLine(io, EVERY)];
    status.show(() => `${phase.padEnd(8)} ${text}${status.pace(done, done + left)}`, isNew || left === 0);
  };
}

/** What a running receiver is told of a backfill, for its console; null where no config says which receiver that is. */
export function backfillReport(io: Io, config: string | undefined, title: string): ActivityReport | null {
  try {
    const loaded = configOf({ config }, io);
    const id = `${process.pid}-${Date.now()}`;
    return new ActivityReport(loaded, { kind: 'backfill', id, title, unit: 'requests' });
  } catch {
    return null;
  }
}

export function newsOf(progress: BackfillProgress): Pick<Activity, 'done' | 'total' | 'detail'> {
  const { done, left, text } = describe(progress);
  const total = progress.phase === 'write' ? null : done + left;
  return { done, total, detail: `${progress.phase}: ${text}` };
}

function describe(progress: BackfillProgress): { done: number; left: number; text: string } {
  switch (progress.phase) {
    case 'trigger': {
      const { provider, processed: done, pending: left } = progress;
      return { done, left, text: `${provider}: ${done} processed, ${left} pending` };
    }
    case 'follow': {
      const { finished: done, total, retrying, failed } = progress;
      const text = `${done} of ${total} pulls, ${retrying} retrying, ${failed} failed`;
      return { done, left: total - done, text };
    }
    case 'pull': {
      const { done, total, meals } = progress;
      return { done, left: total - done, text: `${done} of ${total} requests, ${meals} meals` };
    }
    case 'write':
      return { done: 0, left: 0, text: 'putting the files together' };
    default:
      return progress satisfies never;
  }
}
