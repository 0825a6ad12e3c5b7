import { date, type EventOrigin, integer, text, timestamp, type TableDefinition } from '../definition.ts';
import { TIMES } from './common.ts';
import { NUTRITION } from './nutrition.ts';
import { SOURCE } from './source.ts';

const EVENTS: EventOrigin = { types: ['daily.data.meal.'], member: 'data' };

export const MEAL_ITEMS: TableDefinition = {
  name: 'meal_items',
  description: 'The foods of the meals, one a row.',
  key: ['meal_id', 'item_index'],
  events: EVENTS,
  columns: [
    text('meal_id', 'the meal, UUID', { from: { parent: 'id' }, required: true }),
    text('user_id', 'owner, UUID', { from: { parent: 'user_id' } }),
    timestamp('meal_timestamp', 'time of the meal', { from: { parent: 'timestamp' } }),
    timestamp('meal_updated_at', 'which version of the meal the food belongs to', {
      from: { parent: 'updated_at' },
    }),
    integer('item_index', 'position in the meal, from 0; the same food can stand in a meal twice', {
      from: { of: 'position' },
      required: true,
    }),
    text('name', 'name of the food, as in `Coffee, black, 1 tbsp(s)`', {
      from: { of: 'key' },
      required: true,
    }),
    ...NUTRITION,
  ],
};

export const MEALS: TableDefinition = {
  name: 'meals',
  description: 'Meal summaries, one meal a row. Its foods are in `meal_items`.',
  key: ['id'],
  newest: 'updated_at',
  events: EVENTS,
  columns: [
    text('id', 'the meal, UUID', { required: true }),
    text('user_id', 'owner, UUID'),
    text('name', 'name of the meal'),
    timestamp('timestamp', 'time of the meal'),
    date('calendar_date', 'day of the meal'),
    ...TIMES,
    text('provider_id', 'identifier at the provider'),
    integer('source_id', 'identifier of the source'),
    text('source_app_id', 'app, beside the source'),
    text('source_device_id', 'device beside the source, UUID'),
    integer('priority_id', 'rank among sources'),
    ...SOURCE.map((column) =>
      column.name === 'source_provider' ? { ...column, older: 'source.slug' } : column,
    ),
    ...NUTRITION,
  ],
  nested: [{ at: 'data', each: 'map', table: MEAL_ITEMS }],
};
