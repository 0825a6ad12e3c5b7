import { type Column, integer, text, timestamp } from '../definition.ts';

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
