import type { LazySourceModule } from '../core/source.ts';

/** Options and module of each type, loaded on demand: a config without a vendor's source loads none of its code. */
const BUILT_IN = {
  'event-hubs': [() => import('./event-hubs/config.ts'), () => import('./event-hubs/source.ts')],
  pubsub: [() => import('./pubsub/config.ts'), () => import('./pubsub/source.ts')],
  kafka: [() => import('./kafka/config.ts'), () => import('./kafka/source.ts')],
} as const satisfies Record<
  string,
  readonly [options: () => Promise<Omit<LazySourceModule, 'load'>>, load: LazySourceModule['load']]
>;

export const SOURCE_TYPES: readonly string[] = Object.keys(BUILT_IN);

/** @throws Error that names the types */
export async function loadSourceModule(type: string): Promise<LazySourceModule> {
  const found = Object.entries(BUILT_IN).find(([name]) => name === type)?.[1];
  if (found === undefined) throw new Error(`must be ${SOURCE_TYPES.join(' or ')}`);
  const [options, load] = found;
  return { ...(await options()), load };
}
