import type { SourceModule } from '../core/source.ts';

/** Loaded on demand: a config without a vendor's source loads none of that vendor's code. */
const BUILT_IN = {
  'event-hubs': () => import('./event-hubs/source.ts'),
  pubsub: () => import('./pubsub/source.ts'),
  kafka: () => import('./kafka/source.ts'),
} as const satisfies Record<string, () => Promise<SourceModule>>;

export const SOURCE_TYPES: readonly string[] = Object.keys(BUILT_IN);

/** @throws Error that names the types there are */
export async function loadSourceModule(type: string): Promise<SourceModule> {
  const load = Object.entries(BUILT_IN).find(([name]) => name === type)?.[1];
  if (load === undefined) throw new Error(`must be ${SOURCE_TYPES.join(' or ')}`);
  return load();
}
