import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { SearchQuery } from '../../src/core/search.ts';
import { SearchIndex } from '../../src/journal/search/search-index.ts';
import type { Bench } from './bench.ts';
import { fillJournal } from './ingest/fill.ts';
import { median, rangeOf, round } from './report.ts';

const HELP = `Flags:
  --events N     events in the journal (default 10000000: 4 GB in the temporary folder, some minutes)
  --rounds N     times each question is asked (default 7)
  --folder DIR   make the temporary folder here
`;
const WANTED_MS = 300;
const USERS = 100_000;
const PAGE = { limit: 50 };

/** What the console asks: a page of the newest that are meant. */
const QUERIES: Readonly<Record<string, SearchQuery>> = {
  'the newest': PAGE,
  'a user': { ...PAGE, user: '00000000-0000-4000-8000-000000012345' },
  'a user who is not there': { ...PAGE, user: 'nobody' },
  'an id that is not there': { ...PAGE, id: 'msg_nowhere' },
  'a type that is not there': { ...PAGE, type: 'labtest.' },
  'a user and a type': { ...PAGE, user: '00000000-0000-4000-8000-000000000777', type: 'daily.' },
  'before all': { ...PAGE, until: 1 },
};

/** The console's search over a full journal, in the thread that has the index. */
export const search: Bench = {
  summary: 'questions of the console to a journal of ten million events, and what the index takes',
  help: HELP,
  run: async (argv, context) => {
    const text = { type: 'string' } as const;
    const { values } = parseArgs({ args: [...argv], options: { events: text, rounds: text, folder: text } });
    const count = Number(values.events ?? 10_000_000);
    const rounds = Number(values.rounds ?? 7);
    if (!(count > 0) || !(rounds > 0)) throw new TypeError('--events and --rounds must be numbers above 0');
    const folder = mkdtempSync(join(values.folder ?? tmpdir(), 'millrace-bench-'));
    const remove = (): void => rmSync(folder, { recursive: true, force: true });
    process.once('exit', remove);
    const path = join(folder, 'journal');
    const progress = (done: number): void => {
      if (done % 1_048_576 === 0) context.note(`filled ${done} of ${count}`);
    };
    await fillJournal(path, count, progress, context.signal, { users: USERS, body: Buffer.from('{}') });

    const index = new SearchIndex(path);
    globalThis.gc?.();
    const before = process.memoryUsage().arrayBuffers;
    const [started, cpu] = [performance.now(), process.cpuUsage()];
    index.build(1, count, Infinity);
    const seconds = (performance.now() - started) / 1000;
    const { user, system } = process.cpuUsage(cpu);
    const mib = (process.memoryUsage().arrayBuffers - before) / 2 ** 20;
    const times = Object.entries(QUERIES).map(([name, query]) => {
      const taken = Array.from({ length: rounds }, () => {
        const asked = performance.now();
        const { searched } = index.find(query);
        if (searched !== count) throw new Error(`${searched} of ${count} events are in the index`);
        return performance.now() - asked;
      });
      return { name, taken };
    });
    index.close();
    remove();
    const worst = Math.max(...times.map(({ taken }) => median(taken)));
    return {
      figures: {
        events: count,
        build_s: round(seconds, 1),
        build_us_an_event: round((user + system) / count, 2),
        index_mib: round(mib),
        ms: Object.fromEntries(times.map(({ name, taken }) => [name, taken.map((ms) => round(ms, 1))])),
      },
      rows: [
        [
          'index',
          `${round(seconds, 1)} s, ${round((user + system) / count, 2)} µs an event, ${round(mib)} MiB`,
        ],
        ...times.map(
          ({ name, taken }) => [name, `${round(median(taken), 1)} ms (${rangeOf(taken, 1)})`] as const,
        ),
      ],
      targets: [
        {
          name: 'slowest question, ms',
          wanted: `≤ ${WANTED_MS}`,
          measured: round(worst, 1).toFixed(1),
          met: worst <= WANTED_MS,
        },
      ],
    };
  },
};
