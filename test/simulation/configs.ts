import { PORT, SECRET } from './client.ts';
import { SINKS } from './judge.ts';
import { MASTER_KEY } from './master-key.ts';

// The configs that an operator of the simulation changes between, by number.

/** Routes of each config; a sink that none names is left out. `third` is what `second` is renamed to, elsewhere. */
const VARIANTS: readonly (readonly (readonly [match: string, to: readonly string[]])[])[] = [
  [['*', ['archive']]],
  [
    ['daily.data.', ['archive']],
    ['*', ['archive', 'second']],
  ],
  [
    ['labtest.', ['second']],
    ['*', ['archive']],
  ],
  [
    ['labtest.', ['third']],
    ['*', ['archive']],
  ],
  [
    ['daily.data.', ['archive']],
    ['*', ['archive', 'third']],
  ],
  [
    ['labtest.', ['second', 'third']],
    ['*', ['archive']],
  ],
];

export const CONFIGS = VARIANTS.length;
/** The config that names every sink. */
export const ALL_SINKS = 5;

/** Who has to have events of a type by a config. */
export function sinksOf(variant: number, type: string): readonly string[] {
  return routesOf(variant).find(([match]) => match === '*' || type.startsWith(match))?.[1] ?? [];
}

/** All have a rule for what goes far away. */
function routesOf(variant: number): (typeof VARIANTS)[number] {
  return [['provider.', ['archive', 'broker', 'lake']], ...(VARIANTS[variant] ?? [])];
}

/** As it stands in the file. @param isSealed whether the archive that every config has is sealed */
export function configOf(folder: string, variant: number, isSealed: boolean): string {
  const routes = routesOf(variant);
  const names = [...new Set(routes.flatMap(([, to]) => to))];
  const sinks = names.map((name) => [name, sinkOf(folder, name, names)] as const);
  const encrypt = { store: `${folder}/keys`, masterKey: MASTER_KEY.toString('base64') };
  return JSON.stringify({
    server: { port: PORT, path: '/webhooks' },
    signing: { secrets: [SECRET] },
    admin: { enabled: false },
    journal: { path: `${folder}/journal`, retention: '1h', maxBytes: '64MiB', dedupWindow: '2d' },
    // A sink that is in the config no more leaves its folder behind.
    erasure: { path: `${folder}/erasure`, folders: SINKS.map((sink) => `${folder}/${sink}`) },
    sinks: Object.fromEntries(
      sinks.map(([name, sink]) => [name, isSealed && name === 'archive' ? { ...sink, encrypt } : sink]),
    ),
    routes: routes.map(([match, to]) => ({ match: [match], to })),
  });
}

function sinkOf(folder: string, name: string, names: readonly string[]): object {
  if (name === 'broker' || name === 'lake') return { type: `./${name}` };
  return {
    type: 'files',
    path: `${folder}/${name}`,
    compress: name === 'archive' ? 'gzip' : 'none',
    rotate: { bytes: 20_000, every: '60s' },
    ...(name === 'third' && !names.includes('second') ? { continues: 'second' } : {}),
  };
}
