import type { JournalEvent } from '../../src/core/event.ts';
import type { Redaction } from '../../src/core/redaction.ts';
import { redacted } from '../../src/route/redactor.ts';
import { DEFAULT_FIELDS } from '../../src/validate/envelope.ts';
import { makeEvent, TEAM, USER } from '../support/events.ts';
import { MadeUpData, readShapes } from '../warehouse/event-shapes.ts';
import { bench } from './bench.ts';
import { inTurns } from './rounds.ts';

const CASES: Readonly<Record<string, Omit<Redaction, 'fields'>>> = {
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

/** What a route that redacts costs: megabytes a second of processor time through the walk over the bytes. */
export const redaction = bench(
  'megabytes a second of processor time that a redaction goes through, beside parsing and writing anew',
  {
    mb: [8, 'megabytes of events of every documented type'],
    rounds: [7, 'rounds, each with every case in turn'],
  },
  async ({ mb, rounds }, context) => {
    const events = everyType(mb * 1e6);
    const megabytes = events.reduce((sum, { body }) => sum + body.length, 0) / 1e6;
    const rateOf = async (work: (event: JournalEvent) => unknown): Promise<number> => {
      // Of this process: other load makes a round longer, and changes no ratio.
      const started = process.cpuUsage();
      for (const event of events) work(event);
      return megabytes / (process.cpuUsage(started).user / 1e6);
    };
    const parsing = 'JSON.parse and JSON.stringify';
    const contenders = {
      [parsing]: () => rateOf(({ body }) => Buffer.from(JSON.stringify(JSON.parse(body.toString())))),
      ...Object.fromEntries(
        Object.entries(CASES).map(([name, written]) => {
          const redactions = [{ ...written, fields: DEFAULT_FIELDS }];
          return [name, () => rateOf((event) => redacted(event, redactions))];
        }),
      ),
    };
    const rates = await inTurns(contenders, { rounds, warmUp: 1, tell: (rate) => rate.toFixed() }, context);
    return Object.entries(rates).map(([name, values]) => {
      const wanted = name === parsing ? undefined : ('≥ 100' as const);
      return { name, values, unit: ' MB/s', digits: 0, wanted };
    });
  },
);
