import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { messageOf } from '../../src/core/errors.ts';
import { MINUTE } from '../support/manual-clock.ts';
import { Bench } from './support.ts';

/** A public client library of such a service, on npm; it refuses answers that lack what it requires. */
const PACKAGE = process.env['MILLRACE_TEST_CLIENT'];

type Call = (...args: unknown[]) => Promise<unknown>;
type Client = Readonly<Record<string, Readonly<Record<string, Call>>>>;

const RANGE = { startDate: '2026-01-01', endDate: '2026-01-07' };

test.skipIf(PACKAGE === undefined)(
  `a public client reads every operation (skipped without MILLRACE_TEST_CLIENT, the name of its package)`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    writeFileSync(join(folder, 'package.json'), '{"private":true}');
    execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', PACKAGE!], {
      cwd: folder,
    });
    const exported = createRequire(join(folder, 'index.js'))(PACKAGE!) as Record<
      string,
      new (options: object) => Client
    >;
    const [, Made] = Object.entries(exported).find(([name]) => name.endsWith('Client'))!;
    const bench = await Bench.start();
    const { url, apiKey, teamId } = bench.sandbox;
    const client = new Made({
      baseUrl: url,
      environment: url,
      apiKey,
      headers: { 'x-service-api-key': apiKey },
    });
    const { json } = await bench.order();
    const orderId = (json['order'] as { id: string }).id;
    await bench.trigger('made_up', 8);
    bench.clock.advance(MINUTE);
    const [userId, labTestId] = [bench.user(), bench.state.labs.tests[0]!.id];
    const of = { userId, ...RANGE };
    const calls: readonly (readonly [group: string, name: string, request?: object])[] = [
      ['user', 'getAll'],
      ['user', 'get', { userId }],
      ['user', 'getByClientUserId', { clientUserId: 'made-up-client-0' }],
      ['user', 'getConnectedProviders', { userId }],
      ['user', 'getLatestInsurance', { userId }],
      ['providers', 'getAll'],
      ['team', 'get', { teamId }],
      ['labTests', 'get'],
      ['labTests', 'getById', { labTestId }],
      ['labTests', 'getMarkers'],
      ['labTests', 'getMarkersForOrderSet', { body: { labTestIds: [labTestId] } }],
      ['labTests', 'getOrders'],
      ['labTests', 'getOrder', { orderId }],
      // Not the area information: it needs a member that is named after the vendor.
      ['labTests', 'getPscInfo', { zipCode: '12345', labId: 4 }],
      ['labTests', 'getPscAppointmentAvailability', { lab: 'quest', startDate: '2026-02-01' }],
      ['labTests', 'cancelOrder', { orderId }],
      ['link', 'listBulkOps'],
      ['introspect', 'getUserHistoricalPulls'],
      ...[
        'activity',
        'sleep',
        'workouts',
        'body',
        'meal',
        'electrocardiogram',
        'sleepCycle',
        'menstrualCycle',
      ].map((group) => [group, 'get', of] as const),
      ['profile', 'get', { userId }],
      ...[
        'heartrate',
        'bloodPressure',
        'steps',
        'glucose',
        'bodyWeight',
        'note',
        'insulinInjection',
        'hrv',
      ].map((name) => ['vitals', `${name}Grouped`, of] as const),
    ];
    const refused: string[] = [];
    for (const [group, name, request] of calls) {
      const all = client[group]!;
      await all[name]!(request).catch((error: unknown) =>
        refused.push(`${group}.${name}: ${messageOf(error)}`),
      );
    }
    expect(refused).toEqual([]);
  },
);
