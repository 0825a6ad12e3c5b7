import type {
  Config,
  DescribedConfig,
  ResolvedConfig,
  ResolvedSink,
  ResolvedSource,
} from '../config/config.ts';
import { requireSecrets } from '../config/config.ts';
import { claimCheckSink } from '../config/rules.ts';
import type { Target } from '../core/route.ts';
import type { Verifier } from '../core/verifier.ts';
import type { PlannedSink } from '../deliver/live-sinks.ts';
import { compileRoutes, type RouteTable } from '../deliver/routes/table.ts';
import { createValidator, type Validator } from '../receive/validate/envelope.ts';
import { createVerifier } from '../receive/verify/registry.ts';

/** Everything a config decides that needs no I/O: made anew, and whole, for each reload. */
export interface Plan {
  readonly config: DescribedConfig;
  readonly verifier: Verifier;
  readonly validate: Validator;
  readonly table: RouteTable;
  readonly sinks: ReadonlyMap<string, PlannedSink>;
  readonly sources: readonly ResolvedSource[];
}

/** @throws MillraceError for whatever cannot be used, naming the key */
export async function makePlan(loaded: ResolvedConfig): Promise<Plan> {
  const { config } = loaded;
  requireSecrets(config);
  return {
    config,
    sinks: await planSinks(loaded),
    sources: loaded.sources,
    table: compileRoutes(config.routes),
    verifier: createVerifier(config.signing),
    validate: createValidator(config.envelope),
  };
}

/** The sinks of these names and the keepers they need; all of them when no names are given. */
export async function planSinks(
  { config, sinks }: ResolvedConfig,
  names?: readonly string[],
): Promise<Plan['sinks']> {
  const keepers = (names ?? []).flatMap((name) => keeperOf(config, name) ?? []);
  const needed = new Set(names === undefined ? sinks.keys() : [...names, ...keepers]);
  const planned = [...sinks].filter(([name]) => needed.has(name));
  const made = planned.map(async ([name, sink]) => [name, await planSink(config, sink)] as const);
  return new Map(await Promise.all(made));
}

function keeperOf(config: DescribedConfig, name: string): string | null {
  return config.sinks[name]?.oversize === 'claim-check' ? claimCheckSink(config, name) : null;
}

async function planSink(config: DescribedConfig, resolved: ResolvedSink): Promise<PlannedSink> {
  const own = config.sinks[resolved.name];
  const keeper = keeperOf(config, resolved.name);
  const routes = routesTo(config, resolved.name);
  const redacts = routes.some(({ targets }) => targets.some(({ redactions }) => redactions !== undefined));
  return {
    module: await resolved.module.load(),
    options: resolved.options,
    keeper,
    continues: own?.continues ?? null,
    fingerprint: JSON.stringify([own, keeper === null ? null : config.sinks[keeper], routes]),
    redacting: redacts ? JSON.stringify(routes) : null,
  };
}

function routesTo({ routes }: Config, name: string): readonly { readonly targets: readonly Target[] }[] {
  return routes.flatMap(({ match, to }) => {
    const targets = to.filter(({ sink }) => sink === name);
    return targets.length === 0 ? [] : [{ match, targets }];
  });
}

/** Keys whose change only a restart can bring about. */
export function needsRestart(from: Config, to: Config): readonly string[] {
  const fixed = [
    'server',
    'admin',
    'console',
    'journal',
    'delivery',
    'acknowledge',
    'shutdown',
    'log',
    'sources',
    'service',
    'erasure',
    'proof',
    'receipts',
    'storage',
  ] as const;
  return fixed.filter((key) => JSON.stringify(from[key]) !== JSON.stringify(to[key]));
}
