import type { Operation } from './operation.ts';
import type { World } from './world.ts';

/** A plain page that lists the operations, for whoever opens the sandbox's address in a browser. */
export function indexPage(operations: readonly Operation[], { users, team, options }: World): string {
  const all = users.list(team.id);
  const rows = operations.map(({ method, path, auth, title }) => {
    const key = auth === 'team' ? options.apiKeyHeader : 'X-Management-Key';
    return `${method.toUpperCase().padEnd(6)} ${path}\n       ${title} (${key})`;
  });
  const text = [
    'A stand-in of a health data and lab testing service. Everything in it is made up.',
    `Team ${team.id} has ${all.length} users.`,
    ...all
      .slice(0, 1)
      .map(({ id }) => `Try /v2/summary/meal/${id}?start_date=2026-01-01&end_date=2026-01-07`),
    '',
    ...rows,
  ].join('\n');
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>millrace sandbox</title><pre>${escaped}</pre>`;
}
