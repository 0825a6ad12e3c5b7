import type { Source, SourceContext } from '../../core/source.ts';
import type { PubSubSourceOptions } from './config.ts';
import { PubSubSource } from './source.ts';

export { parseOptions, optionsSchema } from './config.ts';

export function createSource(options: PubSubSourceOptions, _context: SourceContext): Source {
  return new PubSubSource(options);
}
