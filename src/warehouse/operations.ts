import { table } from './definition.ts';

export const BULK_OPS = table({
  name: 'bulk_ops',
  description: 'Bulk operations. They have no id: type, provider and start are what one is known by.',
  key: ['type', 'provider', 'started_at'],
  columns: [
    {
      name: 'type',
      type: 'text',
      from: 'type',
      required: true,
      description: 'link_bulk_historical_trigger, link_bulk_import; open list',
    },
    {
      name: 'status',
      type: 'text',
      from: 'status',
      description: 'in_progress, success, failure, aborted; open list',
    },
    { name: 'provider', type: 'text', from: 'provider', description: 'provider identifier' },
    { name: 'pending', type: 'integer', from: 'pending', description: 'connections that wait' },
    { name: 'processed', type: 'integer', from: 'processed', description: 'connections that are done' },
    { name: 'started_at', type: 'timestamp', from: 'started_at', description: 'start' },
    { name: 'ended_at', type: 'timestamp', from: 'ended_at', description: 'end' },
  ],
});

const HISTORICAL_PULL_RESOURCES = table({
  name: 'historical_pull_resources',
  description: 'How far historical pulls have got, one resource of a connection a row.',
  key: ['user_id', 'provider', 'resource'],
  columns: [
    { name: 'user_id', type: 'text', from: { parent: 'user_id' }, required: true, description: 'user, UUID' },
    {
      name: 'provider',
      type: 'text',
      from: { parent: 'provider' },
      required: true,
      description: 'provider identifier',
    },
    { name: 'resource', type: 'text', from: { of: 'key' }, required: true, description: 'such as meal' },
    {
      name: 'status',
      type: 'text',
      from: 'status',
      description: 'scheduled, in_progress, retrying, success, failure; open list; retrying is temporary',
    },
    { name: 'range_start', type: 'timestamp', from: 'range_start', description: 'first moment asked for' },
    { name: 'range_end', type: 'timestamp', from: 'range_end', description: 'last moment asked for' },
    {
      name: 'days_with_data',
      type: 'integer',
      from: 'days_with_data',
      description: 'days that had any; success with none is success',
      unit: 'days',
    },
    { name: 'error_details', type: 'json', from: 'error_details', description: 'why it failed, as it came' },
  ],
});

export const HISTORICAL_PULLS = table({
  name: 'historical_pulls',
  description: 'Historical pulls, one connection (user and provider) a row.',
  key: ['user_id', 'provider'],
  columns: [
    { name: 'user_id', type: 'text', from: 'user_id', required: true, description: 'user, UUID' },
    { name: 'provider', type: 'text', from: 'provider', required: true, description: 'provider identifier' },
    { name: 'not_pulled', type: 'json', from: 'not_pulled', description: 'array of resources left out' },
  ],
  nested: [{ at: 'pulled', each: 'map', table: HISTORICAL_PULL_RESOURCES }],
});
