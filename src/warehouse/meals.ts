import { table } from './definition.ts';
import { NUTRITION } from './nutrition.ts';

export const MEAL_ITEMS = table({
  name: 'meal_items',
  description: 'The foods of the meals, one a row.',
  key: ['meal_id', 'item_index'],
  columns: [
    { name: 'meal_id', type: 'text', from: { parent: 'id' }, required: true, description: 'the meal, UUID' },
    { name: 'user_id', type: 'text', from: { parent: 'user_id' }, description: 'owner, UUID' },
    {
      name: 'meal_timestamp',
      type: 'timestamp',
      from: { parent: 'timestamp' },
      description: 'time of the meal',
    },
    {
      name: 'meal_updated_at',
      type: 'timestamp',
      from: { parent: 'updated_at' },
      description: 'which version of the meal the food belongs to',
    },
    {
      name: 'item_index',
      type: 'integer',
      from: { of: 'position' },
      required: true,
      description: 'position in the meal, from 0; the same food can stand in a meal twice',
    },
    {
      name: 'name',
      type: 'text',
      from: { of: 'key' },
      required: true,
      description: 'name of the food, as in `Coffee, black, 1 tbsp(s)`',
    },
    ...NUTRITION,
  ],
});

export const MEALS = table({
  name: 'meals',
  description: 'Meal summaries, one meal a row. Its foods are in `meal_items`.',
  key: ['id'],
  newest: 'updated_at',
  columns: [
    { name: 'id', type: 'text', from: 'id', required: true, description: 'the meal, UUID' },
    { name: 'user_id', type: 'text', from: 'user_id', description: 'owner, UUID' },
    { name: 'name', type: 'text', from: 'name', description: 'name of the meal' },
    { name: 'timestamp', type: 'timestamp', from: 'timestamp', description: 'time of the meal' },
    { name: 'calendar_date', type: 'date', from: 'calendar_date', description: 'day of the meal' },
    { name: 'created_at', type: 'timestamp', from: 'created_at', description: 'first seen by the service' },
    { name: 'updated_at', type: 'timestamp', from: 'updated_at', description: 'the newest version wins' },
    { name: 'provider_id', type: 'text', from: 'provider_id', description: 'identifier at the provider' },
    { name: 'source_id', type: 'integer', from: 'source_id', description: 'identifier of the source' },
    { name: 'source_app_id', type: 'text', from: 'source_app_id', description: 'app, beside the source' },
    { name: 'priority_id', type: 'integer', from: 'priority_id', description: 'rank among sources' },
    {
      name: 'source_provider',
      type: 'text',
      from: 'source.provider',
      older: 'source.slug',
      description: 'provider identifier, open list',
    },
    { name: 'source_type', type: 'text', from: 'source.type', description: 'kind of source, open list' },
    { name: 'source_app', type: 'text', from: 'source.app_id', description: 'app inside the source' },
    { name: 'source_device', type: 'text', from: 'source.device_id', description: 'device' },
    {
      name: 'source_name',
      type: 'text',
      from: 'source.name',
      description: 'provider name, older meals only',
    },
    { name: 'source_logo', type: 'text', from: 'source.logo', description: 'logo address, older meals only' },
    ...NUTRITION,
  ],
  nested: [{ at: 'data', each: 'map', table: MEAL_ITEMS }],
});
