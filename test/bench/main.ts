import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../../src/core/errors.ts';
import { flagsOf, helpOf } from '../support/flags.ts';
import { backfill } from './backfill.ts';
import type { Bench } from './bench.ts';
import { exportRows } from './export/export.ts';
import { isMet, jsonOf, tableOf } from './figures.ts';
import { hostile } from './hostile/hostile.ts';
import { ingest } from './ingest/ingest.ts';
import { ndjson } from './ndjson/ndjson.ts';
import { reconcile } from './reconcile.ts';
import { replay } from './replay/replay.ts';
import { sealed } from './sealed.ts';

/** One entry a bench; each is a file or folder beside this one. */
const BENCHES: Readonly<Record<string, Bench>> = {
  ingest,
  hostile,
  sealed,
  ndjson,
  replay,
  reconcile,
  export: exportRows,
  backfill,
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
    process.stdout.write(
      `Usage: npm run bench -- ${name} [flags]\n\n${bench.summary}\n\n${helpOf(bench.flags)}`,
    );
    return 0;
  }
  try {
    return await measure(name, bench, argv);
  } catch (error) {
    note(`bench ${name}: ${messageOf(error)}`);
    return error instanceof TypeError ? 2 : 1;
  }
}

async function measure(name: string, bench: Bench, argv: readonly string[]): Promise<number> {
  const flags = flagsOf(bench.flags, argv);
  await using ends = new AsyncDisposableStack();
  const folder = mkdtempSync(join(String(flags['folder'] ?? '') || tmpdir(), 'millrace-bench-'));
  ends.defer(() => rmSync(folder, { recursive: true, force: true }));
  const atEnd = (stop: () => unknown): void => ends.defer(async () => void (await stop()));
  const figures = await bench.run(flags, { note, signal: stopping.signal, folder, atEnd });
  note(tableOf(figures));
  const met = figures.every(isMet);
  process.stdout.write(`${JSON.stringify({ bench: name, ok: met, ...jsonOf(figures) })}\n`);
  return met ? 0 : 1;
}
