import { type Column, text } from '../definition.ts';

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
