import { boolean, integer, json, text, timestamp } from '../definition.ts';
import { ID, PROVIDER, USER } from './common.ts';
import { inherited, inside, rowsByName, table } from './table.ts';

export const PROVIDER_CONNECTIONS = table({
  name: 'provider_connections',
  description: 'Connections of users to providers, one a row.',
  key: ['user_id', 'provider_slug'],
  events: ['provider.connection.'],
  columns: [
    USER,
    ...inside('provider', [
      text('slug', 'provider identifier, open list'),
      text('name', 'name of the provider'),
      text('logo', 'logo address'),
    ]),
    ...inside('source', [
      text('slug', 'the same as the provider, older'),
      text('name', 'the same as the provider, older'),
      text('logo', 'the same as the provider, older'),
    ]),
    text('external_user_id', 'the user at the provider'),
    json('resource_availability', 'by resource: {status, scope_requirements}'),
  ],
});

export const PROVIDER_CONNECTION_ERRORS = table({
  name: 'provider_connection_errors',
  description: 'Errors of connections to providers, one event a row.',
  key: ['_event_id'],
  events: ['provider.connection.error'],
  columns: [
    USER,
    PROVIDER,
    text('error_type', 'token_refresh_failed, required_scopes_not_granted …; open list'),
    text('message', 'what happened'),
    text('error_details', 'more of it'),
  ],
});

export const PROVIDER_DEVICES = table({
  name: 'provider_devices',
  description: 'Devices of users at providers, one a row.',
  key: ['id'],
  events: ['provider.device.'],
  columns: [
    ID,
    USER,
    PROVIDER,
    text('source_type', 'kind of source, open list'),
    text('app_id', 'app inside the source'),
    text('device_manufacturer', 'manufacturer'),
    text('device_model', 'model'),
    text('device_version', 'version'),
    text('device_id', 'identifier at the provider'),
  ],
});

export const HISTORICAL_COMPLETIONS = table({
  name: 'historical_completions',
  description: 'Historical pulls that have come to an end, one resource of a user and range a row.',
  key: ['user_id', 'provider', 'resource', 'start_date', 'end_date'],
  events: ['historical.data.'],
  columns: [
    USER,
    PROVIDER,
    text('resource', 'what was pulled, from the event type: meal, sleep; open list', {
      from: { envelope: 'resource' },
    }),
    timestamp('start_date', 'first moment pulled'),
    timestamp('end_date', 'last moment pulled'),
    boolean('is_final', 'nothing of this pull is to come'),
  ],
});

export const CONTINUOUS_QUERY_RESULTS = table({
  name: 'continuous_query_results',
  description: 'Results of continuous queries that have changed, one query of a user a row.',
  key: ['user_id', 'query_id'],
  events: ['continuous_query.result_table.'],
  each: 'array',
  columns: [
    text('query_id', 'the query, UUID', { required: true }),
    text('query_slug', 'short name of the query'),
    json('data', 'by column: array of its values'),
  ],
});

export const BULK_OPS = table({
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
});

const OWNER = { ...USER, required: true } as const;
const PULLED_FROM = text('provider', 'provider identifier', { required: true });

export const HISTORICAL_PULLS = table({
  name: 'historical_pulls',
  description: 'Historical pulls, one connection (user and provider) a row.',
  key: ['user_id', 'provider'],
  unfold: 'provider',
  columns: [OWNER, PULLED_FROM, json('not_pulled', 'array of resources left out')],
  nested: [
    rowsByName('pulled', {
      name: 'historical_pull_resources',
      description: 'How far historical pulls have got, one resource of a connection a row.',
      key: ['user_id', 'provider', 'resource'],
      columns: [
        inherited(OWNER),
        inherited(PULLED_FROM),
        text('resource', 'such as meal', { from: { of: 'key' }, required: true }),
        text(
          'status',
          'scheduled, in_progress, retrying, success, failure; open list; retrying is temporary',
        ),
        timestamp('range_start', 'first moment asked for'),
        timestamp('range_end', 'last moment asked for'),
        integer('days_with_data', 'days that had any; success with none is success', { unit: 'days' }),
        json('error_details', 'why it failed, as it came'),
        ...inside(
          'timeline',
          [
            timestamp('scheduled_at', 'when it was scheduled'),
            timestamp('started_at', 'when it started'),
            timestamp('ended_at', 'when it ended'),
          ],
          '',
        ),
        text('release', 'version of the service that pulled'),
        text('trace_id', 'identifier for questions to the service'),
      ],
    }),
  ],
});
