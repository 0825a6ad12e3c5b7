import { describe, expect, test } from 'vitest';
import { ServiceClient } from '../../../src/history/service/client.ts';
import { ServiceInputError } from '../../../src/history/service/errors.ts';
import type { ServiceOptions } from '../../../src/history/service/options.ts';

const USER = '00000000-0000-4000-8000-000000000001';

/** Nothing listens there: whatever is sent would fail in another way. */
const client = new ServiceClient({ baseUrl: 'http://127.0.0.1:9', apiKey: 'made-up' });

const named = (parameter: string): unknown => expect.stringContaining(`${parameter} `);

type Case = readonly [parameter: string, call: () => Promise<unknown>];

const CASES: readonly Case[] = [
  ['user', () => client.users.data('mealSummary', 'me', { start: '2026-01-01' })],
  ['start', () => client.users.data('mealSummary', USER, { start: '2026-02-30' })],
  ['start', () => client.users.data('mealSummary', USER, { start: '1 Jan 2026' })],
  ['end', () => client.users.data('mealSummary', USER, { start: '2026-01-02', end: '2026-01-01' })],
  [
    'end',
    () =>
      client.users.data('mealSummary', USER, {
        start: '2026-01-02T10:00:00Z',
        end: '2026-01-02T12:30:00+03:00',
      }),
  ],
  ['provider', () => client.users.data('mealSummary', USER, { start: '2026-01-02', provider: '' })],
  ['userIds', () => client.bulk.trigger({ userIds: [], provider: 'made_up' })],
  ['userIds[1]', () => client.bulk.trigger({ userIds: [USER, 'me'], provider: 'made_up' })],
  ['provider', () => client.bulk.trigger({ userIds: [USER], provider: '' })],
  ['pageSize', () => client.bulk.listOps({ pageSize: 51 })],
  ['pageSize', () => client.bulk.listOps({ pageSize: 0 })],
  ['userLimit', () => client.pulls.status({ userLimit: 51 })],
  ['userId', () => client.pulls.status({ userId: 'me' })],
  ['page', () => client.labs.orderSetMarkers({}, { page: 0 })],
  ['size', () => client.labs.orderSetMarkers({}, { size: 101 })],
  ['size', () => client.labs.markers({ size: 1.5 })],
  ['zipCode', () => client.labs.areaInfo({ zipCode: '12345-6789' })],
  ['radius', () => client.labs.areaInfo({ zipCode: '12345', radius: 30 as 25 })],
  ['labs[0]', () => client.labs.areaInfo({ zipCode: '12345', labs: [''] })],
  ['labAccountId', () => client.labs.accounts({ labAccountId: 'ours' })],
  ['limit', () => client.users.list({ limit: 501 })],
  ['offset', () => client.users.list({ offset: -1 })],
  ['user', () => client.users.delete('../team')],
  ['url', () => client.webhooks.create(USER, { url: 'file:///made/up', eventTypes: [], secret: 'made-up' })],
  ['managementKey', () => client.webhooks.teams()],
];

describe('nothing is sent when a parameter is wrong', () => {
  test.each(CASES)('%s', async (parameter, call) => {
    // Some throw at once; to a caller that awaits, it is the same.
    const error = { name: 'ServiceInputError', code: 'usage', detail: named(parameter) };
    await expect((async () => call())()).rejects.toMatchObject(error);
  });
});

describe('options', () => {
  test.each<[string, Partial<ServiceOptions>]>([
    ['baseUrl', { baseUrl: 'service' }],
    ['baseUrl', { baseUrl: 'ftp://made.up' }],
    ['baseUrl', { baseUrl: 'https://made.up/?key=1' }],
    ['apiKey', { apiKey: '' }],
    ['apiKey', { apiKey: 'two words' }],
    ['apiKeyHeader', { apiKeyHeader: 'x key' }],
    ['paths.users', { paths: { users: '/v2/user' } as object }],
    ['paths.deleteUser', { paths: { deleteUser: '/v2/user' } }],
  ])('%s', (parameter, options) => {
    const create = (): ServiceClient => new ServiceClient({ baseUrl: 'http://127.0.0.1:9', ...options });
    expect(create).toThrow(expect.objectContaining({ detail: named(parameter) }) as Error);
  });

  test('a key is never quoted in an error', () => {
    const options = { baseUrl: 'http://made.up', apiKey: 'secret words' };
    expect(() => new ServiceClient(options)).not.toThrow(/secret/);
    expect(() => new ServiceClient(options)).toThrow(ServiceInputError);
  });
});

test('non-exhaustive enums stay open', async () => {
  const options = { baseUrl: 'http://127.0.0.1:9', apiKey: 'made-up', attempts: 1 };
  const { labs } = new ServiceClient(options);
  const unreachable = { name: 'ServiceError', code: 'unreachable' };
  await expect(labs.accounts({ status: 'something new' })).rejects.toMatchObject(unreachable);
  await expect(labs.orders({ interpretation: 'something new' })).rejects.toMatchObject(unreachable);
});
