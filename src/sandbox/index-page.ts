import type { Operation } from './operation.ts';
import type { World } from './world.ts';

/** A plain page that lists the operations, for whoever opens the sandbox's address in a browser. */
export function indexPage(operations: readonly Operation[], world: World): string {
  const { users, team, options } = world;
  const rows = operations.map(
    ({ method, path, auth, title }) =>
      `<tr><td>${method.toUpperCase()}</td><td><code>${escape(path)}</code></td><td>${escape(title)}</td>` +
      `<td>${auth === 'team' ? escape(options.apiKeyHeader) : 'X-Management-Key'}</td></tr>`,
  );
  const first = users.list(team.id)[0];
  const example =
    first === undefined ? '' : `/v2/summary/meal/${first.id}?start_date=2026-01-01&end_date=2026-01-07`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>millrace sandbox</title>
<style>
  body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; max-width: 70rem }
  td, th { text-align: left; padding: .2rem 1rem .2rem 0; vertical-align: top }
</style>
<h1>millrace sandbox</h1>
<p>A stand-in of a health data and lab testing service. Everything in it is made up.</p>
<p>Team <code>${escape(team.id)}</code> has ${users.list(team.id).length} users. Try <code>${escape(example)}</code></p>
<table>
<tr><th>Method<th>Path<th>What it does<th>Key</tr>
${rows.join('\n')}
</table>
</html>
`;
}

function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
