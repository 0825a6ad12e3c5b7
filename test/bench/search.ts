import { join } from 'node:path';
import { Agent, request } from 'undici';
import { bench, type BenchContext, FOLDER } from './bench.ts';
import { type Figure, median, round } from './figures.ts';
import { ReceiverProcess } from './ingest/children.ts';
import { fillJournal, openJournal } from './ingest/fill.ts';
import { memoryOf } from './processes.ts';

const WANTED = '≤ 300';
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
export const search = bench(
  'questions of the console to a receiver with ten million events, and what the index takes',
  {
    events: [10_000_000, 'events in the journal: 4 GB in the temporary folder, some minutes'],
    rounds: [20, 'times each question is asked'],
    folder: FOLDER,
  },
  async ({ events, rounds }, context) => {
    const from = Date.now() - DAYS * DAY;
    await fill(events, from, context);
    const receiver = await ReceiverProcess.start(context.folder);
    context.atEnd(() => receiver.kill('SIGKILL'));
    const agent = new Agent({ connections: 1, headersTimeout: 120_000 });
    context.atEnd(() => agent.close());
    const ask = (query: object): Promise<Answer> => asked(receiver, agent, query);

    const [before, started] = [memoryOf(receiver.pid), performance.now()];
    // The first search begins the index.
    const first = await ask({ limit: 50 });
    for (let { searched, of } = first; searched < of;) {
      context.signal.throwIfAborted();
      ({ searched, of } = await ask({ limit: 1 }));
    }
    const seconds = (performance.now() - started) / 1000;
    context.note(`the index is whole after ${round(seconds, 1)} s`);
    const mib = memoryOf(receiver.pid) - before;
    const figures: Figure[] = [];
    for (const [name, query] of Object.entries(queriesOf(events, from))) {
      const values: number[] = [];
      for (let n = 0; n < rounds; n += 1) values.push((await ask({ limit: 50, ...query(n) })).ms);
      figures.push({ name, values, unit: ' ms', digits: 1 });
    }
    const slowest = Math.max(...figures.map(({ values }) => median(values)));
    const p95 = Math.max(...figures.map(({ values }) => p95Of(values)));
    return [
      { name: 'first answer, of the newest events', values: [first.ms], unit: ' ms', digits: 1 },
      { name: 'until all events are in the index', values: [seconds], unit: ' s', digits: 1 },
      { name: 'memory of the index', values: [mib], unit: ' MiB', digits: 0 },
      ...figures,
      { name: 'slowest question, median', values: [slowest], unit: ' ms', digits: 1, wanted: WANTED },
      { name: 'slowest question, p95', values: [p95], unit: ' ms', digits: 1, wanted: WANTED },
    ];
  },
);

/** As `fillJournal` numbers them. */
function userOf(n: number): string {
  return `00000000-0000-4000-8000-${String(2 + (n % USERS)).padStart(12, '0')}`;
}

function p95Of(taken: readonly number[]): number {
  return taken.toSorted((a, b) => a - b)[Math.ceil(taken.length * 0.95) - 1] ?? Number.NaN;
}

/** Events, of which some are dead letters too, and as many quarantined ones. */
async function fill(count: number, from: number, { folder, note, signal }: BenchContext): Promise<void> {
  const progress = (done: number): void => {
    if (done % 1_048_576 === 0) note(`filled ${done} of ${count}`);
  };
  const path = join(folder, 'journal');
  await fillJournal(path, count, progress, signal, {
    users: USERS,
    body: Buffer.from('{}'),
    as: (n) => ({
      id: `msg_${n}`,
      type: n % 2000 === 0 ? RARE : (TYPES[n % TYPES.length] ?? RARE),
      receivedAt: Math.floor(from + (n / count) * DAYS * DAY),
    }),
  });
  const journal = await openJournal(path, { create: false });
  try {
    const events = await journal.read(0, { count: SET_ASIDE, bytes: 2 ** 30 });
    for (const [n, event] of events.entries()) {
      const letter = { code: 'made_up', reason: 'made up', attempts: 1, diedAt: Date.now() };
      await journal.addDeadLetter({ sink: 'archive', destination: null, ...letter, event });
      await journal.quarantine({ ...event, id: `msg_q${n}` }, [{ code: 'team_missing', detail: 'made up' }]);
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

/** As a browser, one after the other over one connection, to the last byte of the answer. */
async function asked(receiver: ReceiverProcess, dispatcher: Agent, query: object): Promise<Answer> {
  const started = performance.now();
  const { statusCode, body } = await request(`${receiver.adminUrl}/api/search`, {
    method: 'POST',
    headers: { ...receiver.authorization, 'content-type': 'application/json' },
    dispatcher,
    body: JSON.stringify(query),
  });
  const { searched, of } = (await body.json()) as { searched: number; of: number };
  if (statusCode !== 200) throw new Error(`the search was answered ${statusCode}`);
  return { ms: performance.now() - started, searched, of };
}
