import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseTarget } from '../../src/core/route.ts';
import type { ReconcileReport } from '../../src/replay/reconcile/report.ts';
import { archivedEvent } from '../replay/made-up-archive.ts';
import { writeConfig } from '../support/millrace.ts';
import { FIRST_RECEIVED, makeArchive, receivedAt } from './archives.ts';
import { bench, type BenchContext, FOLDER, MAIN_FLAG, ROUNDS } from './bench.ts';
import { openJournal } from './ingest/fill.ts';
import { figuresOfRuns, multiplesOf, programOf, tellTime, type Timed, timed } from './processes.ts';
import { inTurns } from './rounds.ts';

/** `millrace reconcile` against `millrace archive verify`, which reads the same archive and compares no ids. */
export const reconcile = bench(
  'events a second that reconcile accounts for, as a share of archive verify; memory',
  {
    events: [1_000_000, 'events in the journal and in the archive, 1 KB each'],
    files: [20, 'gzip files that hold them'],
    rounds: ROUNDS,
    main: MAIN_FLAG,
    folder: FOLDER,
  },
  async ({ events, files, rounds, main }, context) => {
    const { folder, note, signal } = context;
    note(`writing ${events} events into a journal and an archive`);
    await makeBoth({ events, files }, context);
    const program = await programOf(main, context);
    const config = writeConfig(folder);
    const archive = join(folder, 'archive');
    const output = join(folder, 'output');
    const run = (...args: readonly string[]): Promise<Timed> =>
      timed([process.execPath, program, ...args], output, signal);
    // Lists the files in a manifest.
    await run('archive', 'verify', '--repair', archive);
    const window = [FIRST_RECEIVED, receivedAt(events)].map((at) => new Date(at).toISOString());
    const [since = '', until = ''] = window;
    // The archive is in the page cache.
    const runs = await inTurns(
      {
        verify: () => run('archive', 'verify', archive),
        reconcile: async () => {
          const took = await run(
            'reconcile',
            '--config',
            config,
            '--since',
            since,
            '--until',
            until,
            '--json',
          );
          const { sinks } = JSON.parse(await readFile(output, 'utf8')) as ReconcileReport;
          if (sinks[0]?.delivered !== events)
            throw new Error(`it accounts for ${sinks[0]?.delivered} events`);
          return took;
        },
      },
      { rounds, tell: tellTime },
      context,
    );
    return [
      ...figuresOfRuns('verify', runs.verify),
      ...figuresOfRuns('reconcile', runs.reconcile, '< 500'),
      ...multiplesOf('events a second, as a share of verify', runs.reconcile, runs.verify, '≥ 0.5'),
    ];
  },
);

/** Writes the same events into a journal, confirmed by the sink `archive`, and into gzip files of that sink. */
async function makeBoth(
  size: { readonly events: number; readonly files: number },
  { folder, signal }: BenchContext,
): Promise<void> {
  const journal = await openJournal(join(folder, 'journal'), { dedupWindow: 1000 });
  await journal.openCursor('archive');
  await journal.acceptUnder([{ match: ['*'], to: [parseTarget('archive')] }]);
  await makeArchive(
    join(folder, 'archive'),
    size,
    (n) => ({ ...archivedEvent(n), receivedAt: receivedAt(n) }),
    signal,
    (batch) => Promise.all(batch.map((event) => journal.accept(event))),
  );
  journal.moveCursor('archive', size.events);
  await journal.flush();
  await journal.close();
}
