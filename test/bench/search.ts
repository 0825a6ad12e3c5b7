import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Agent, request } from 'undici';
import { systemClock } from '../../src/core/clock.ts';
import { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import type { Bench } from './bench.ts';
import { ReceiverProcess } from './ingest/children.ts';
import { fillJournal } from './ingest/fill.ts';
import { newSecret } from './ingest/requests.ts';
import { median, rangeOf, round } from './report.ts';

const HELP = `Flags:
  --events N     events in the journal (default 10000000: 4 GB in the temporary folder, some minutes)
  --rounds N     times each question is asked (default 20)
  --folder DIR   make the temporary folder here
`;
const WANTED_MS = 300;
const USERS = 100_000;
const DAY = 86_400_000;
const DAYS = 6;
const SET_ASIDE = 5000;
/** Types a sender has; each 2,000th event is of the last one. */
const TYPES = ['daily.data.meal.created', 'daily.data.sleep.updated', 'daily.data.activity.created'];
const RARE = 'labtest.order.updated';

/** What a person asks the console, by what is asked for; `n` is the round. */
function queriesOf(count: number, from: number): Readonly<Record<string, (n: number) => object>> {
  const at = (n: number, rounds = 97): number => Math.floor((count - 1) * ((n * 37) % rounds) * (1 / rounds));
  const day = (n: number): object => ({
    since: new Date(from + (n % DAYS) * DAY).toISOString(),
    until: new Date(from + (n % DAYS) * DAY + 3_600_000).toISOString(),
  });
  return {
    'the newest': () => ({}),
    'an id': (n) => ({ id: `msg_${at(n)}` }),
    'an id that is not there': (n) => ({ id: `msg_nowhere_${n}` }),
    'a user': (n) => ({ user: userOf(at(n)) }),
    'a user who is not there': () => ({ user: 'nobody' }),
    'a type and an hour': (n) => ({ type: 'daily.data.sleep.', ...day(n) }),
    'a rare type and an hour': (n) => ({ type: 'labtest.', ...day(n) }),
    'a user, a type and an hour': (n) => ({ user: userOf(at(n)), type: 'daily.', ...day(n) }),
    'goes nowhere': () => ({ state: 'nowhere' }),
    'waiting, and there are none': () => ({ state: 'waiting' }),
    'settled, a type': () => ({ state: 'settled', type: 'labtest.' }),
    'dead letters': () => ({ state: 'dead' }),
    'a dead letter by its user': (n) => ({ state: 'dead', user: userOf(n) }),
    'quarantined, by id': (n) => ({ state: 'quarantined', id: `msg_q${n}` }),
  };
}

/** The console's search as a browser asks it: requests to the admin API of a receiver with a full journal. */
export const search: Bench = {
  summary: 'questions of the console to a receiver with ten million events, and what the index takes',
  help: HELP,
  run: async (argv, context) => {
    const text = { type: 'string' } as const;
    const { values } = parseArgs({ args: [...argv], options: { events: text, rounds: text, folder: text } });
    const count = Number(values.events ?? 10_000_000);
    const rounds = Number(values.rounds ?? 20);
    if (!(count > 0) || !(rounds > 0)) throw new TypeError('--events and --rounds must be numbers above 0');
    const folder = mkdtempSync(join(values.folder ?? tmpdir(), 'millrace-bench-'));
    const remove = (): void => rmSync(folder, { recursive: true, force: true });
    process.once('exit', remove);
    const from = Date.now() - DAYS * DAY;
    const progress = (done: number): void => {
      if (done % 1_048_576 === 0) context.note(`filled ${done} of ${count}`);
    };
    const path = join(folder, 'journal');
    await fillJournal(path, count, progress, context.signal, {
      users: USERS,
      body: Buffer.from('{}'),
      as: (n) => ({
        id: `msg_${n}`,
        type: n % 2000 === 0 ? RARE : (TYPES[n % TYPES.length] ?? RARE),
        receivedAt: Math.floor(from + (n / count) * DAYS * DAY),
      }),
    });
    await setAside(path);

    const receiver = await ReceiverProcess.start({ folder, secret: newSecret(), profile: null });
    try {
      const asker = new Asker(receiver);
      const before = receiver.memory();
      const build = await asker.untilWhole(context.signal);
      context.note(`the index is whole after ${round(build.seconds, 1)} s`);
      const mib = receiver.memory() - before;
      const times: { readonly name: string; readonly taken: readonly number[] }[] = [];
      for (const [name, query] of Object.entries(queriesOf(count, from))) {
        const taken: number[] = [];
        for (let n = 0; n < rounds; n += 1) taken.push((await asker.ask({ limit: 50, ...query(n) })).ms);
        times.push({ name, taken });
      }
      await asker.close();
      const slowest = Math.max(...times.map(({ taken }) => median(taken)));
      const p95 = Math.max(...times.map(({ taken }) => p95Of(taken)));
      const row = (taken: readonly number[]): string =>
        `${round(median(taken), 1)} ms, p95 ${round(p95Of(taken), 1)} (${rangeOf(taken, 1)}, n ${taken.length})`;
      return {
        figures: {
          events: count,
          first_ms: round(build.first, 1),
          whole_after_s: round(build.seconds, 1),
          index_mib: round(mib),
          ms: Object.fromEntries(times.map(({ name, taken }) => [name, taken.map((ms) => round(ms, 1))])),
        },
        rows: [
          ['first answer, of the newest events', `${round(build.first, 1)} ms`],
          ['all events in the index', `${round(build.seconds, 1)} s after that, ${round(mib)} MiB`],
          ...times.map(({ name, taken }) => [name, row(taken)] as const),
        ],
        targets: [targetOf('slowest question, median', slowest), targetOf('slowest question, p95', p95)],
      };
    } finally {
      await receiver.kill();
      remove();
    }
  },
};

function targetOf(name: string, ms: number) {
  return {
    name: `${name}, ms`,
    wanted: `≤ ${WANTED_MS}`,
    measured: round(ms, 1).toFixed(1),
    met: ms <= WANTED_MS,
  };
}

/** As `fillJournal` numbers them. */
function userOf(n: number): string {
  return `00000000-0000-4000-8000-${String(2 + (n % USERS)).padStart(12, '0')}`;
}

function p95Of(taken: readonly number[]): number {
  return taken.toSorted((a, b) => a - b)[Math.ceil(taken.length * 0.95) - 1] ?? Number.NaN;
}

/** Some quarantined events, and as many dead letters. */
async function setAside(path: string): Promise<void> {
  const journal = await SqliteJournal.open({
    path,
    retention: 7 * DAY,
    maxBytes: 2 ** 40,
    dedupWindow: 7 * DAY,
    create: false,
    clock: systemClock,
    onFailure: (error) => {
      throw error;
    },
  });
  try {
    const events = await journal.read(0, { count: SET_ASIDE, bytes: 2 ** 30 });
    for (const [n, event] of events.entries()) {
      const letter = { code: 'made_up', reason: 'made up', attempts: 1, diedAt: Date.now() };
      await journal.addDeadLetter({ sink: 'archive', destination: null, ...letter, event });
      const { type, team, user, clientUser, receivedAt, headers, body, source } = event;
      const about = { type, team, user, clientUser, receivedAt, headers, body, source };
      await journal.quarantine({ ...about, id: `msg_q${n}` }, [{ code: 'team_missing', detail: 'made up' }]);
    }
  } finally {
    await journal.close();
  }
}

interface Answer {
  readonly ms: number;
  readonly searched: number;
  readonly of: number;
}

/** A browser's requests, one after the other over one connection. */
class Asker {
  readonly #agent = new Agent({ connections: 1, headersTimeout: 120_000 });
  readonly #url: string;
  readonly #headers: Record<string, string>;

  constructor({ adminUrl, authorization }: ReceiverProcess) {
    this.#url = `${adminUrl}/api/search`;
    this.#headers = { ...authorization, 'content-type': 'application/json' };
  }

  /** To the last byte of the answer. */
  async ask(query: object): Promise<Answer> {
    const started = performance.now();
    const options = { method: 'POST', headers: this.#headers, dispatcher: this.#agent } as const;
    const { statusCode, body } = await request(this.#url, { ...options, body: JSON.stringify(query) });
    const { searched, of } = (await body.json()) as { searched: number; of: number };
    if (statusCode !== 200) throw new Error(`the search was answered ${statusCode}`);
    return { ms: performance.now() - started, searched, of };
  }

  /** The first search begins the index. @returns milliseconds of its answer, and seconds until all is in it */
  async untilWhole(signal: AbortSignal): Promise<{ first: number; seconds: number }> {
    const started = performance.now();
    const first = await this.ask({ limit: 50 });
    for (let { searched, of } = first; searched < of;) {
      signal.throwIfAborted();
      ({ searched, of } = await this.ask({ limit: 1 }));
    }
    return { first: first.ms, seconds: (performance.now() - started) / 1000 };
  }

  close(): Promise<void> {
    return this.#agent.close();
  }
}
