import { parseArgs } from 'node:util';
import type { Redaction } from '../../../src/core/redaction.ts';
import type { JournalEvent } from '../../../src/core/event.ts';
import { redacted } from '../../../src/route/redactor.ts';
import { DEFAULT_FIELDS } from '../../../src/validate/envelope.ts';
import { makeEvent, TEAM, USER } from '../../support/events.ts';
import { MadeUpData, readShapes } from '../../warehouse/event-shapes.ts';
import type { Bench, BenchResult } from '../bench.ts';
import { median, rangeOf, round } from '../report.ts';

/** MB a second of processor time. */
const LEAST = 100;

const CASES: Readonly<Record<string, Omit<Redaction, 'fields'> | null>> = {
  'JSON.parse and JSON.stringify': null,
  'nothing that is there': { redact: ['/data/nobody', '/nobody/*/knows'] },
  'three values': { redact: ['/data/id', '/data/source/provider', '/client_user_id'] },
  'names at any depth': { redact: ['/**/name', '/**/timestamp', '/data/*/value'], mask: 'not for you' },
  removed: { remove: ['/data/patient_details', '/data/*/source', '/**/unit'] },
  only: { only: ['/data/id', '/data/*/provider', '/data/data/*/value'] },
};

/** Events of every documented type, once as they are sent and once with line breaks and white space. */
function everyType(bytes: number): JournalEvent[] {
  const bodies = readShapes().shapes.flatMap((shape, n) =>
    shape.types.flatMap((type) => {
      const data = new MadeUpData('full', n + 1).of(shape);
      const body = { event_type: type, data, team_id: TEAM, user_id: USER, client_user_id: 'made-up' };
      return [JSON.stringify(body), JSON.stringify(body, null, 2)];
    }),
  );
  const events: JournalEvent[] = [];
  for (let size = 0, n = 0; size < bytes; n += 1) {
    const body = Buffer.from(bodies[n % bodies.length] ?? '');
    events.push({ ...makeEvent({ body }), seq: n + 1, handling: {} });
    size += body.length;
  }
  return events;
}

/** What a route that redacts costs: megabytes a second through the walk over the bytes. */
export const redaction: Bench = {
  summary:
    'megabytes a second of processor time that a redaction goes through, beside parsing and writing anew',
  help: `Flags:
  --mb N      megabytes of events of every documented type (8)
  --rounds N  rounds, each with every case in turn (7)
`,
  run: (argv, { note, signal }) => {
    const { values } = parseArgs({
      args: [...argv],
      options: { mb: { type: 'string' }, rounds: { type: 'string' } },
    });
    const events = everyType(Number(values.mb ?? 8) * 1e6);
    const megabytes = events.reduce((sum, { body }) => sum + body.length, 0) / 1e6;
    const rates = new Map(Object.keys(CASES).map((name) => [name, [] as number[]]));
    // The first round warms up.
    for (let at = 0; at <= Number(values.rounds ?? 7); at += 1) {
      signal.throwIfAborted();
      for (const [name, written] of Object.entries(CASES)) {
        const redactions = written === null ? null : [{ ...written, fields: DEFAULT_FIELDS }];
        // Of this process: other load makes a round longer, and changes no ratio.
        const started = process.cpuUsage();
        for (const event of events) {
          if (redactions !== null) redacted(event, redactions);
          else Buffer.from(JSON.stringify(JSON.parse(event.body.toString())));
        }
        if (at > 0) rates.get(name)?.push(megabytes / (process.cpuUsage(started).user / 1e6));
      }
      note(`round ${at}`);
    }
    return Promise.resolve(report(rates, events.length, megabytes));
  },
};

function report(
  rates: ReadonlyMap<string, readonly number[]>,
  events: number,
  megabytes: number,
): BenchResult {
  const figures = Object.fromEntries(
    Array.from(rates, ([name, all]) => [name, { mb_per_second: round(median(all)), range: rangeOf(all, 0) }]),
  );
  const own = [...rates].filter(([name]) => CASES[name] !== null);
  const slowest = Math.min(...own.map(([, all]) => median(all)));
  return {
    figures: { events, megabytes: round(megabytes, 1), ...figures },
    rows: Array.from(rates, ([name, all]) => [name, `${round(median(all))} MB/s (${rangeOf(all, 0)})`]),
    targets: [
      {
        name: 'the slowest redaction',
        wanted: `at least ${LEAST} MB/s`,
        measured: `${round(slowest)} MB/s`,
        met: slowest >= LEAST,
      },
    ],
  };
}
