import { integer, json, text, timestamp, type TableDefinition } from '../definition.ts';

export const BULK_OPS: TableDefinition = {
  name: 'bulk_ops',
  description: 'Bulk operations. They have no id: type, provider and start are what one is known by.',
  key: ['type', 'provider', 'started_at'],
  columns: [
    text('type', 'link_bulk_historical_trigger, link_bulk_import; open list', { required: true }),
    text('status', 'in_progress, success, failure, aborted; open list'),
    text('provider', 'provider identifier'),
    integer('pending', 'connections that wait'),
    integer('processed', 'connections that are done'),
    timestamp('started_at', 'start'),
    timestamp('ended_at', 'end'),
  ],
};

const HISTORICAL_PULL_RESOURCES: TableDefinition = {
  name: 'historical_pull_resources',
  description: 'How far historical pulls have got, one resource of a connection a row.',
  key: ['user_id', 'provider', 'resource'],
  columns: [
    text('user_id', 'user, UUID', { from: { parent: 'user_id' }, required: true }),
    text('provider', 'provider identifier', { from: { parent: 'provider' }, required: true }),
    text('resource', 'such as meal', { from: { of: 'key' }, required: true }),
    text('status', 'scheduled, in_progress, retrying, success, failure; open list; retrying is temporary'),
    timestamp('range_start', 'first moment asked for'),
    timestamp('range_end', 'last moment asked for'),
    integer('days_with_data', 'days that had any; success with none is success', { unit: 'days' }),
    json('error_details', 'why it failed, as it came'),
  ],
};

export const HISTORICAL_PULLS: TableDefinition = {
  name: 'historical_pulls',
  description: 'Historical pulls, one connection (user and provider) a row.',
  key: ['user_id', 'provider'],
  unfold: 'provider',
  columns: [
    text('user_id', 'user, UUID', { required: true }),
    text('provider', 'provider identifier', { required: true }),
    json('not_pulled', 'array of resources left out'),
  ],
  nested: [{ at: 'pulled', each: 'map', table: HISTORICAL_PULL_RESOURCES }],
};
