import { date, integer, type TableDefinition, text, timestamp } from '../definition.ts';
import { inside, type Rows, table } from './table.ts';

export const ID = text('id', 'identifier, UUID', { required: true });
export const TEAM = text('team_id', 'team, UUID');
export const USER = text('user_id', 'user, UUID');
export const CLIENT_USER = text('client_user_id', "the team's id of the user");
export const PROVIDER = text('provider', 'provider identifier, open list');
export const PROVIDER_ID = text('provider_id', 'identifier at the provider');

export const CREATED_AT = timestamp('created_at', 'creation');
export const UPDATED_AT = timestamp('updated_at', 'the newest version wins');
/** When the service first saw a document, and its version. */
export const TIMES = [timestamp('created_at', 'first seen by the service'), UPDATED_AT];

export const CALENDAR_DATE = date('calendar_date', 'the day');
export const DAY = [timestamp('date', 'the day, as a time'), CALENDAR_DATE];
export const SESSION = [timestamp('session_start', 'start'), timestamp('session_end', 'end')];
export const TIMEZONE_OFFSET = integer('timezone_offset', 'offset from UTC', { unit: 's' });
export const TIME_ZONE = text('time_zone', 'IANA name of the time zone');

export const INTERPRETATION = text('interpretation', 'normal, abnormal, critical; open list');

export const ADDRESS = [
  text('first_line', 'address, first line'),
  text('second_line', 'address, second line'),
  text('city', 'city'),
  text('state', 'state'),
  text('zip_code', 'zip code'),
];

/** The `source` object that most health data has. */
export const SOURCE = inside('source', [
  text('provider', 'provider identifier, open list'),
  text('type', 'kind of source, open list'),
  text('app', 'app inside the source', { from: 'app_id' }),
  text('device', 'device, UUID', { from: 'device_id' }),
  text('sport', 'sport of the workout'),
  text('workout_id', 'workout that it belongs to, UUID'),
  text('name', 'name of the provider, older data'),
  text('slug', 'provider identifier, older data'),
  text('logo', 'logo address, older data'),
]);

export const APP_BESIDE_SOURCE = [
  text('source_app_id', 'app, beside the source'),
  text('source_device_id', 'device beside the source, UUID'),
];
/** Members of the document that repeat what `source` has. */
export const BESIDE_SOURCE = [
  text('document_provider', 'provider identifier beside the source, open list', { from: 'source_provider' }),
  text('document_source_type', 'kind of source beside the source, open list', { from: 'source_type' }),
  ...APP_BESIDE_SOURCE,
];

/**
 * A table of daily events: documents with an id and a user, of which the newest version counts.
 * @param resource its name in event types
 */
export function daily({
  resource,
  ...rows
}: Pick<Rows, 'name' | 'description' | 'columns'> & { readonly resource?: string }): TableDefinition {
  const events = [`daily.data.${resource ?? rows.name}.`];
  return table({ ...rows, key: ['id'], newest: 'updated_at', events, columns: [ID, USER, ...rows.columns] });
}
