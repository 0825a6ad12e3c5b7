import { usageError } from '../io.ts';

export const INIT_SINKS = ['files', 'event-hubs', 'pubsub', 'http'] as const;
export type InitSink = (typeof INIT_SINKS)[number];

export const RUNNERS = ['compose', 'systemd', 'none'] as const;
export type Runner = (typeof RUNNERS)[number];

export interface InitRoute {
  /** Prefixes of event types, or `*`. */
  readonly match: readonly string[];
  readonly to: readonly string[];
}

export interface InitPlan {
  readonly sinks: readonly InitSink[];
  readonly routes: readonly InitRoute[];
  readonly runner: Runner;
  /** Absolute path of the key file that signs archives; null for the default beside the archives. */
  readonly key: string | null;
}

export const NAMES: Readonly<Record<InitSink, string>> = {
  files: 'archive',
  'event-hubs': 'hubs',
  pubsub: 'topics',
  http: 'services',
};

/** Reads `files,http`. @throws TypeError */
export function readSinks(text: string): readonly InitSink[] {
  const names = text.split(',').map((name) => name.trim()).filter((name) => name !== ''); // prettier-ignore
  const sinks = names.map((name) => INIT_SINKS.find((known) => known === name) ?? unknown(name));
  if (sinks.length === 0) throw new TypeError(`must name at least one of ${INIT_SINKS.join(', ')}`);
  return [...new Set(sinks)];
}

function unknown(name: string): never {
  throw new TypeError(`${name} is none of ${INIT_SINKS.join(', ')}; others can be added to the config later`);
}

/**
 * Reads rules such as `labtest.,lab_report.=hubs`; other types go to every sink.
 * @throws MillraceError usage
 */
export function readRoutes(rules: readonly string[], sinks: readonly InitSink[]): readonly InitRoute[] {
  const names = sinks.map((sink) => NAMES[sink]);
  const routes = rules.map((rule): InitRoute => {
    const [types = '', targets = '', ...more] = rule.split('=');
    const match = types.split(',').filter((type) => type !== '');
    const to = targets.split(',').filter((target) => target !== '');
    if (match.length === 0 || to.length === 0 || more.length > 0)
      throw usageError(`--routes ${rule}: must be TYPES=SINKS, such as labtest.,lab_report.=${names[0]}`);
    for (const target of to)
      if (!names.includes(target.replace(/:.*$/, '')))
        throw usageError(`--routes ${rule}: ${target} is none of this config's sinks: ${names.join(', ')}`);
    return { match, to };
  });
  const hasRest = routes.some(({ match }) => match.includes('*'));
  return hasRest ? routes : [...routes, { match: ['*'], to: names }];
}
