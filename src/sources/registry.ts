import type { SourceModule } from '../core/source.ts';

/** Loaded on demand: a config without a vendor's source loads none of that vendor's code. */
const BUILT_IN = {
  'event-hubs': () => import('./event-hubs/index.ts'),
  pubsub: () => import('./pubsub/index.ts'),
} as const satisfies Record<string, () => Promise<SourceModule>>;

export function loadSourceModule(type: keyof typeof BUILT_IN): Promise<SourceModule> {
  return BUILT_IN[type]();
}
