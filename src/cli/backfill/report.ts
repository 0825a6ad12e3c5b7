import { join } from 'node:path';
import type { PulledSummary } from '../../history/backfill/have-pulled.ts';
import type { BackfillSummary, BackfillProgress } from '../../history/backfill/run.ts';
import { MEAL_TABLES } from '../../history/backfill/document.ts';
import { EXIT } from '../../core/errors.ts';
import { isStoreUrl } from '../../core/place.ts';
import { note, plural, printResult, type Io } from '../io.ts';
import type { ShardsSummary } from './shards.ts';
import type { Activity } from '../../core/operations.ts';
import { ActivityReport } from '../activity-report.ts';
import { configOf } from '../config-options.ts';
import { StatusLine } from '../status-line.ts';

/** Milliseconds between two lines of progress. */
const EVERY_MS = 2000;
/** Users named for one reason; the file and `--json` name all of them. */
const NAMED = 50;

export function showSummary(io: Io, summary: BackfillSummary, out: string, json: boolean): void {
  const { rejects, unknown_fields: unknown, files, outcomes } = summary;
  const ok = isComplete(outcomes, rejects);
  if (unknown.length > 0)
    note(io, `in extra, without a column or with a value of another type: ${unknown.join(', ')}`);
  nameUsers(io, 'failed', summary.failed_users);
  nameUsers(io, 'the earlier rows stay', summary.kept_users);
  if (summary.emptied > 0)
    note(
      io,
      `${plural(summary.emptied, 'row')} kept: the service lists nothing now; --accept-empty removes them`,
    );
  nameUsers(io, 'not connected', summary.not_connected_users);
  nameUsers(io, 'not pulled', summary.not_pulled_users);
  const wrote = files.map((file) => `wrote      ${file}`);
  printResult(io, { json }, { ok, ...summary }, ...countsOf(summary), ...wrote);
  if (outcomes.failed + outcomes.not_pulled > 0) note(io, nextStep(summary.to_trigger, out));
  io.setExit(ok ? EXIT.done : EXIT.partial);
}

/** Users who are not connected have no history. */
function isComplete({ failed, not_pulled: unpulled }: BackfillSummary['outcomes'], rejects: number): boolean {
  return failed === 0 && unpulled === 0 && rejects === 0;
}

/** How to fetch the users who failed. */
function nextStep(toTrigger: number, out: string): string {
  if (isStoreUrl(out)) {
    const trigger = toTrigger > 0 ? ' and --trigger' : '';
    const next = `fetch those who failed to another --out, with --user or --users-file${trigger}`;
    return `nothing in ${out} is overwritten: ${next}`;
  }
  const triggers = toTrigger > 0 ? `, and triggers ${plural(toTrigger, 'pull')} again` : '';
  return `${resumeOf(out)} asks again for those who failed${triggers}`;
}

/** The command to resume, quoted for a shell. */
function resumeOf(out: string, ...flags: readonly string[]): string {
  const quoted = /^[\w@%+=:,./-]+$/.test(out) ? out : `'${out.replaceAll("'", "'\\''")}'`;
  return ['millrace backfill', ...flags, '--resume --out', quoted].join(' ');
}

function nameUsers(io: Io, what: string, users: readonly string[]): void {
  for (const user of users.slice(0, NAMED)) note(io, `${what}: ${user} (the reason is in _backfill.ndjson)`);
  if (users.length > NAMED) note(io, `${what}: and ${users.length - NAMED} more, all in _backfill.ndjson`);
}

export function showShards(io: Io, summary: ShardsSummary, out: string, json: boolean): void {
  const { shards, incomplete, failing, rejects, outcomes } = summary;
  const ok = incomplete.length === 0 && isComplete(outcomes, rejects);
  for (const folder of incomplete) note(io, `not complete: ${folder}`);
  for (const folder of failing) {
    const next = isStoreUrl(out) ? '' : ` (${resumeOf(join(out, folder))} asks again)`;
    note(io, `users failed in ${folder}${next}`);
  }
  const complete = `shards     ${shards - incomplete.length} of ${shards} complete`;
  printResult(io, { json }, { ok, ...summary }, complete, ...countsOf(summary));
  io.setExit(ok ? EXIT.done : EXIT.partial);
}

/** For --trigger-only: the pulls of the service. */
export function showPulled(io: Io, summary: PulledSummary, out: string, json: boolean): void {
  const { files: _, ...shown } = summary;
  const ok = summary.failed === 0 && summary.not_pulled === 0;
  for (const { connection, status, reason } of summary.unpulled.slice(0, NAMED))
    note(io, `${status.replace('_', ' ')}: ${connection}: ${reason}`);
  const pulls = `pulls      ${outcomesOf({ ...summary, done: summary.pulled })}`;
  printResult(io, { json }, { ok, ...shown }, `users      ${summary.users}`, pulls);
  if (!ok && !isStoreUrl(out)) note(io, `${resumeOf(out, '--trigger-only')} triggers these again`);
  io.setExit(ok ? EXIT.done : EXIT.partial);
}

function countsOf(summary: BackfillSummary | ShardsSummary): string[] {
  const { users, rows, rejects, outcomes } = summary;
  const isMeals = Object.keys(rows).every((table) => MEAL_TABLES.includes(table));
  const written = Object.entries(rows).map(([table, count]) => `${table} ${count}`);
  return [
    `users      ${users}`,
    `outcomes   ${outcomesOf(outcomes)}`,
    isMeals
      ? `meals      ${summary.meals}, items ${summary.meal_items}, rejected ${rejects}`
      : `rows       ${[...written, `rejected ${rejects}`].join(', ')}`,
  ];
}

function outcomesOf(outcomes: BackfillSummary['outcomes']): string {
  const { done, failed, not_connected: unconnected, not_pulled: unpulled } = outcomes;
  return `${done} done, ${failed} failed, ${unconnected} not connected, ${unpulled} not pulled`;
}

/** Writes a line of progress every two seconds, and one at each change of phase. */
export function backfillProgress(io: Io): (progress: BackfillProgress) => void {
  let status = new StatusLine(io, EVERY_MS);
  let phase = '';
  return (progress) => {
    const { done, left, text } = describe(progress);
    const isNew = progress.phase !== phase;
    if (isNew) [phase, status] = [progress.phase, new StatusLine(io, EVERY_MS)];
    status.show(() => `${phase.padEnd(8)} ${text}${status.pace(done, done + left)}`, isNew || left === 0);
  };
}

/** Reports the backfill to the receiver of the config; null without a config. */
export function backfillReport(io: Io, config: string | undefined, title: string): ActivityReport | null {
  try {
    const loaded = configOf({ config }, io);
    const id = `${process.pid}-${Date.now()}`;
    return new ActivityReport(loaded, { kind: 'backfill', id, title, unit: 'requests' });
  } catch {
    return null;
  }
}

export function activityOf(progress: BackfillProgress): Partial<Pick<Activity, 'done' | 'total' | 'detail'>> {
  const { done, left, text } = describe(progress);
  const detail = `${progress.phase}: ${text}`;
  // The number of requests stays.
  return progress.phase === 'write' ? { detail } : { done, total: done + left, detail };
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
      const { done, total, rows } = progress;
      const { meal_items: _, ...counts } = rows;
      const text = Object.entries(counts).map(([table, count]) => `, ${count} ${table}`);
      return { done, left: total - done, text: `${done} of ${total} requests${text.join('')}` };
    }
    case 'write':
      return { done: 0, left: 0, text: 'putting the files together' };
    default:
      return progress satisfies never;
  }
}
