import { messageOf } from '../../src/core/errors.ts';
import type { Bench } from './bench.ts';
import { consoleCost } from './console/console.ts';
import { eventHubs } from './event-hubs/event-hubs.ts';
import { exportRows } from './export/export.ts';
import { fleet } from './fleet.ts';
import { hostile } from './hostile/hostile.ts';
import { ingest } from './ingest/ingest.ts';
import { load } from './load/load.ts';
import { ndjson } from './ndjson/ndjson.ts';
import { reconcile } from './reconcile/reconcile.ts';
import { receipts } from './receipts.ts';
import { redaction } from './redaction/redaction.ts';
import { replay } from './replay/replay.ts';
import { renderResult } from './report.ts';
import { search } from './search.ts';
import { sealed } from './sealed/sealed.ts';
import { sinks } from './sinks/sinks.ts';
import { storage } from './storage/storage.ts';

/** One entry a bench; each is a file or folder beside this one. */
const BENCHES: Readonly<Record<string, Bench>> = {
  ingest,
  fleet,
  hostile,
  console: consoleCost,
  'event-hubs': eventHubs,
  sinks,
  sealed,
  storage,
  ndjson,
  load,
  receipts,
  redaction,
  search,
  replay,
  reconcile,
  export: exportRows,
};

const USAGE = `Usage: npm run bench -- NAME [flags]

${Object.entries(BENCHES)
  .map(([name, { summary }]) => `  ${name.padEnd(10)} ${summary}`)
  .join('\n')}

A table goes to stderr, one JSON line to stdout. Exit code 1 when a target is missed, 2 for wrong usage.
\`npm run bench -- NAME --help\` lists its flags.
`;

const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopping.abort());

process.exitCode = await main(process.argv.slice(2));

function note(line: string): void {
  process.stderr.write(`${line}\n`);
}

async function main([name = '', ...argv]: readonly string[]): Promise<number> {
  const bench = Object.hasOwn(BENCHES, name) ? BENCHES[name] : undefined;
  if (bench === undefined) {
    const asked = name === '--help' || name === '-h';
    (asked ? process.stdout : process.stderr).write(USAGE);
    return asked ? 0 : 2;
  }
  if (argv.includes('--help') || argv.includes('-h')) {
    process.stdout.write(`Usage: npm run bench -- ${name} [flags]\n\n${bench.summary}\n\n${bench.help}`);
    return 0;
  }
  try {
    const result = await bench.run(argv, { note, signal: stopping.signal });
    note(renderResult(result));
    const met = result.targets.every((target) => target.met);
    process.stdout.write(`${JSON.stringify({ bench: name, ok: met, ...result.figures })}\n`);
    return met ? 0 : 1;
  } catch (error) {
    note(`bench ${name}: ${messageOf(error)}`);
    return error instanceof TypeError ? 2 : 1;
  }
}
