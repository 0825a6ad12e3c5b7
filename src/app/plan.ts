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

/** What a config decides without I/O; each reload makes a new one. */
export interface Plan {
  readonly config: DescribedConfig;
  readonly verifier: Verifier;
  readonly validate: Validator;
  readonly table: RouteTable;
  readonly sinks: ReadonlyMap<string, PlannedSink>;
  readonly sources: readonly ResolvedSource[];
}

/** @throws MillraceError naming the key that cannot be used */
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

/** The sinks of these names and the keepers they need; without names, all sinks. */
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

/** Keys whose changes a reload brings into force; any other key needs a restart. */
const RELOADED = new Set(['signing', 'envelope', 'quarantine', 'schema', 'tables', 'sinks', 'routes']);

/** Changed keys that need a restart. */
export function needsRestart(from: Config, to: Config): readonly string[] {
  const before = new Map(Object.entries(from));
  return Object.entries(to).flatMap(([key, value]) =>
    RELOADED.has(key) || JSON.stringify(before.get(key)) === JSON.stringify(value) ? [] : [key],
  );
}
