import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { TABLES } from '../../src/tables/tables.ts';
import { DAY, HOUR, MINUTE } from '../support/manual-clock.ts';
import { Bench, pdf } from '../sandbox/support.ts';
import { exportOf, loaded } from './support.ts';

/** A sandbox in which all has happened that sends events, and these in the order of sending. */
async function everything(): Promise<{ bench: Bench; events: JournalEvent[] }> {
  const events: JournalEvent[] = [];
  const bench = await Bench.start({
    features: { partialResults: true },
    dailyEveryMs: HOUR,
    pipelines: {
      destinations: [{ name: 'all', kind: 'event_hubs', fallback: 'all' }],
      publish: (_, { metadata, body }) => {
        const plain = metadata['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
        const type = metadata['event-type'] ?? '';
        const id = metadata['idempotency-key'] ?? '';
        const user = metadata['user-id'] ?? null;
        events.push(contractEvent(events.length, { id, type, user, body: plain }));
      },
    },
  });
  bench.sandbox.connect(bench.user(), 'made_up_other');
  bench.sandbox.sendEvents(Array.from({ length: 18 }, (_, n) => madeUpEvent(n)));
  const tests = bench.sandbox.state.labs.tests;
  for (let n = 0; n < 20; n += 1)
    await bench.post('/v3/order/create', {
      user_id: bench.user(n),
      lab_test_id: tests[n % tests.length]!.id,
    });
  for (const review of ['true', 'false', 'false']) {
    const form = new FormData();
    form.set('file', pdf());
    form.set('user_id', bench.user());
    form.set('needs_human_review', review);
    await bench.call('POST', '/lab_report/v1/parser/job', form);
  }
  const { json } = await bench.get('/v2/user');
  const [user] = json['users'] as { connected_sources: { source: { slug: string } }[] }[];
  await bench.post('/v2/link/bulk_trigger_historical_pull', {
    user_ids: [bench.user()],
    provider: user!.connected_sources[0]!.source.slug,
  });
  bench.clock.advance(MINUTE);
  bench.clock.advance(30 * DAY);
  return { bench, events };
}

test('everything the sandbox sends becomes rows without a reject, and the newest row is the last state', async () => {
  const { bench, events } = await everything();
  const types = new Set(events.map(({ type }) => type));
  for (const sent of [
    'daily.data.meal.created',
    'historical.data.meal.created',
    'provider.connection.created',
    'labtest.order.created',
    'labtest.order.updated',
    'labtest.result.critical',
    'lab_report.parsing_job.created',
    'lab_report.parsing_job.updated',
  ])
    expect(types).toContain(sent);

  const typed = new Set<string>();
  const inExtra = new Set<string>();
  for (const { definition, document } of TABLES.ofEvents()) {
    if (definition.name === 'events' || (definition !== document && document.ownRows !== false)) continue;
    const { all, messages, rejects, problems, without_table } = await exportOf(events, definition.name);
    expect([definition.name, rejects, problems, without_table], messages.join()).toEqual([
      definition.name,
      0,
      0,
      {},
    ]);
    for (const row of Object.values(all).flat()) {
      typed.add(String(row['_event_type']));
      for (const field of Object.keys(Object(row['extra']))) inExtra.add(field);
    }
  }
  // Only what is not documented has no table, and nothing is without a column.
  expect([...types].filter((type) => !typed.has(type))).toEqual(['something.never.documented']);
  expect([...inExtra]).toEqual([]);

  const sql = await loaded(events, 'orders');
  const { json } = await bench.get('/orders?size=100');
  const orders = json['orders'] as { id: string; status: string; interpretation: string | null }[];
  expect(orders).toHaveLength(20);
  expect(await sql('SELECT id, status, interpretation FROM orders_latest')).toEqual(
    expect.arrayContaining(orders.map(({ id, status, interpretation }) => [id, status, interpretation])),
  );
});
