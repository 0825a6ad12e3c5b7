import type { ReconcileReport } from '../../replay/reconcile/report.ts';
import type { ServiceReport } from '../../replay/reconcile/service-side.ts';
import { inColumns } from '../../lib/columns.ts';
import { visible } from '../../lib/visible.ts';

/** A table of the sinks, then notes, then differences. */
export function renderReconciliation(report: ReconcileReport): string {
  const { since, until, sinks, nowhere, log, differences, notes } = report;
  const columns = [
    'received',
    'delivered',
    'waiting',
    'dead',
    'dropped',
    'quarantined',
    'duplicates',
    'erased',
    'elsewhere',
    'untold',
    'missing',
  ] as const;
  const header = ['SINK', 'FROM', ...columns.map((column) => column.toUpperCase())];
  const rows = sinks.map((sink) => [
    sink.sink,
    sink.counted_from,
    ...columns.map((column) => String(sink[column])),
  ]);
  const lines = [`received from ${since} to ${until}`, '', inColumns([header, ...rows]), ''];
  const say = (line: string): void => void lines.push(visible(line));
  for (const { sink, copies, sealed } of sinks) {
    if (copies > 0) say(`${sink}: ${copies} repeated records`);
    if (sealed > 0) say(`${sink}: ${sealed} records stay sealed`);
  }
  if (nowhere > 0) lines.push(`nowhere    ${nowhere} events were sent to no sink by the routes at the time`);
  if (log !== null) {
    say(`log        ${log.origin}: ${log.size} entries, root ${log.root}`);
    if (log.waiting > 0) say(`           ${log.waiting} events wait for their entry`);
  }
  for (const text of notes) say(`note       ${text}`);
  for (const { code, sink, count, ids, detail } of differences) {
    say(`difference ${sink ?? 'journal'}: ${code}: ${count} ${detail}`);
    for (const id of ids) say(`           ${id}`);
    if (ids.length > 0 && count > ids.length) lines.push(`           and ${count - ids.length} more`);
  }
  lines.push(differences.length === 0 ? 'all accounted for' : `${differences.length} differences`);
  return lines.join('\n');
}

/** Missing meals, and those that were filled. */
export function renderComparison(report: ServiceReport): string {
  const { users, meals, held, missing, missing_meals: named, rejects, filled } = report;
  const lines = [
    `users      ${users}`,
    `meals      ${meals} at the service, ${held} held, ${missing} missing`,
  ];
  const say = (line: string): void => void lines.push(visible(line));
  for (const { id, user_id: user, timestamp } of named)
    say(`missing    ${id} of ${user}${timestamp === null ? '' : ` at ${timestamp}`}`);
  if (missing > named.length && named.length > 0) lines.push(`           and ${missing - named.length} more`);
  if (rejects > 0) lines.push(`rejected   ${rejects} invalid rows in the service's answers`);
  for (const [table, rows] of Object.entries(filled?.rows ?? {}))
    lines.push(`filled     ${rows} rows of ${table}`);
  for (const file of filled?.files ?? []) say(`wrote      ${file}`);
  return lines.join('\n');
}
