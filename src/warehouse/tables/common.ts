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
