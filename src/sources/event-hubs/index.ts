import type { Source, SourceContext } from '../../core/source.ts';
import type { EventHubsSourceOptions } from './config.ts';
import { EventHubsSource } from './source.ts';

export { parseOptions, optionsSchema, describe } from './config.ts';

export function createSource(options: EventHubsSourceOptions, context: SourceContext): Source {
  return new EventHubsSource(options, context);
}
