import { type Column, integer, type TableDefinition, text, timestamp } from '../definition.ts';

/** When the service has seen a document, and its version. */
export const TIMES: readonly Column[] = [
  timestamp('created_at', 'first seen by the service'),
  timestamp('updated_at', 'the newest version wins'),
];

/** Columns of the `sport` object of workouts. */
export const SPORT: readonly Column[] = [
  integer('sport_id', 'sport, identifier', { from: 'sport.id' }),
  text('sport_name', 'sport, name', { from: 'sport.name' }),
  text('sport_slug', 'sport, short name', { from: 'sport.slug' }),
];

/**
 * A table of what daily events bring: documents with an id and a user, of which the newest version counts.
 * @param resource as event types name it; the name of the table where left out
 */
export function daily({
  name,
  resource = name,
  description,
  columns,
}: Pick<TableDefinition, 'name' | 'description' | 'columns'> & {
  readonly resource?: string;
}): TableDefinition {
  return {
    name,
    description,
    key: ['id'],
    newest: 'updated_at',
    events: { types: [`daily.data.${resource}.`], member: 'data' },
    columns: [text('id', 'identifier, UUID', { required: true }), text('user_id', 'user, UUID'), ...columns],
  };
}

/** Columns of the `source` object that most health data has. */
export const SOURCE: readonly Column[] = [
  text('source_provider', 'provider identifier, open list', { from: 'source.provider' }),
  text('source_type', 'kind of source, open list', { from: 'source.type' }),
  text('source_app', 'app inside the source', { from: 'source.app_id' }),
  text('source_device', 'device, UUID', { from: 'source.device_id' }),
  text('source_sport', 'sport of the workout', { from: 'source.sport' }),
  text('source_workout_id', 'workout that it belongs to, UUID', { from: 'source.workout_id' }),
  text('source_name', 'name of the provider, older data', { from: 'source.name' }),
  text('source_slug', 'provider identifier, older data', { from: 'source.slug' }),
  text('source_logo', 'logo address, older data', { from: 'source.logo' }),
];

/** The same said once more beside `source`. */
export const BESIDE_SOURCE: readonly Column[] = [
  text('document_provider', 'provider identifier beside the source, open list', { from: 'source_provider' }),
  text('document_source_type', 'kind of source beside the source, open list', { from: 'source_type' }),
  text('source_app_id', 'app, beside the source'),
  text('source_device_id', 'device beside the source, UUID'),
];
