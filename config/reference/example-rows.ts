import type { Clock } from '../../src/core/clock.ts';
import { bulkOpJson } from '../../src/sandbox/bulk-ops.ts';
import { areaInfo, LABS, labAccountJson, labTestJson } from '../../src/sandbox/made-up-labs.ts';
import { MADE_UP_TEAM, madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { resolveSandbox } from '../../src/sandbox/options.ts';
import { insuranceOf } from '../../src/sandbox/routes/users.ts';
import { subjectOf } from '../../src/sandbox/events.ts';
import { userJson } from '../../src/sandbox/users.ts';
import { createWorld } from '../../src/sandbox/world.ts';
import { columnsOf } from '../../src/tables/definition.ts';
import { linesOf } from '../../src/tables/shape/row-lines.ts';
import { Shaper } from '../../src/tables/shape/shape.ts';
import type { TableEntry } from '../../src/tables/tables.ts';

const LOADED_AT = '2026-07-01T00:00:00Z';
const DOCUMENT_ID = '00000000-0000-4000-8000-000000000042';

/** The event types whose made-up documents are shown, where it is not the table's first with `created`. */
const TYPES: Readonly<Record<string, string>> = {
  events: 'daily.data.steps.created',
  timeseries: 'daily.data.heartrate.created',
  orders: 'labtest.order.updated',
  parsing_jobs: 'lab_report.parsing_job.updated',
  historical_completions: 'historical.data.meal.created',
  provider_connection_errors: 'provider.connection.error',
  lab_results: 'labtest.result.critical',
  continuous_query_results: 'continuous_query.result_table.changed',
};

/** The first row of a table that its made-up document becomes, a member a line. @throws Error when it is rejected */
export function exampleRow(entry: TableEntry): string {
  const { definition, document } = entry;
  const targets = linesOf([definition]);
  const shaper = new Shaper(entry, {
    tables: [definition.name],
    given: document.events === undefined ? { _loaded_at: LOADED_AT, ...GIVEN[document.name] } : {},
    source: () => definition.name,
    targets,
    onReject: ({ code }) => {
      throw new Error(`the made-up document of ${definition.name} is rejected: ${code}`);
    },
  });
  if (document.events === undefined) shaper.shape(Buffer.from(JSON.stringify(answers()[document.name])));
  else shapeEvent(shaper, TYPES[document.name] ?? `${document.events.types[0]}created`);
  const [line = ''] = targets.get(definition.name)?.view().toString().split('\n') ?? [];
  const row = JSON.parse(line) as Readonly<Record<string, unknown>>;
  const members = columnsOf(definition).filter(({ name }) => row[name] !== undefined);
  return `{\n${members.map(({ name }) => `  "${name}": ${JSON.stringify(row[name])}`).join(',\n')}\n}`;
}

function shapeEvent(shaper: Shaper, type: string): void {
  const { body } = madeUpEvent(0, type, DOCUMENT_ID);
  const subject = subjectOf(body);
  const ids = { user_id: subject?.id ?? null, client_user_id: subject?.clientUserId ?? null };
  const received = { event_type: type, received_at: LOADED_AT, team_id: MADE_UP_TEAM, ...ids };
  shaper.about({ event_id: 'msg_made_up', ...received });
  const record = { id: 'msg_made_up', source: 'webhook', ...received, headers: {} };
  if (shaper.takesRecords)
    shaper.shape(Buffer.from(JSON.stringify({ ...record, event: JSON.parse(body.toString()) })));
  else shaper.shapeBody(body);
}

const GIVEN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  insurance: { user_id: DOCUMENT_ID },
};
/** Stands still, so that the pages do not change. */
const CLOCK: Clock = {
  now: () => Date.parse(LOADED_AT),
  monotonic: () => 0,
  after: () => () => undefined,
};

let made: Readonly<Record<string, object | null>> | undefined;

/** What the stand-in of the service answers, by table. */
function answers(): Readonly<Record<string, object | null>> {
  if (made !== undefined) return made;
  const { labs, users, pulls, bulkOps, options } = createWorld(resolveSandbox({ users: 1, clock: CLOCK }));
  const [[user], [marker], [test], [account]] = [
    users.list(MADE_UP_TEAM),
    labs.markers,
    labs.tests,
    labs.accounts,
  ];
  if (user === undefined || marker === undefined || test === undefined || account === undefined)
    throw new Error('the stand-in has made nothing up');
  pulls.start(user, 'made_up');
  made = {
    markers: marker,
    lab_tests: labTestJson(test, labs, 1),
    lab_accounts: labAccountJson(account),
    areas: areaInfo(options.seed, '10001', '25', LABS),
    users: userJson(user),
    insurance: insuranceOf(user),
    bulk_ops: bulkOpJson(bulkOps.enqueue(MADE_UP_TEAM, 'made_up', [user.id])),
    historical_pulls: { user_id: user.id, provider: pulls.statusOf(user) },
  };
  return made;
}
