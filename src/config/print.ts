import { formatBytes, formatDuration, parseBytes, parseDuration } from '../lib/units.ts';
import type { LoadedConfig, ResolvedConfig } from './config.ts';
import { isMapping, mapDocument, type Mapping } from './paths.ts';
import { CONFIG } from './schema.ts';
import { redact } from './redact.ts';
import { formatTarget, type Target } from '../core/route.ts';
import { withDefaults, scalarAt } from './keys.ts';

/**
 * The resolved config in the shape of a config file, redacted.
 * @param schemas of the options of sinks and sources, for their defaults
 * @param units `text` writes `5m` and `10MiB`; `numbers` writes milliseconds and bytes. Both can be read back.
 */
export function printable(
  loaded: LoadedConfig,
  units: 'text' | 'numbers',
  schemas: ResolvedConfig['schemas'] = new Map(),
): Mapping {
  const { config, substituted } = loaded;
  const show = units === 'text' ? inText : inNumbers;
  const optionsOf = (key: string, options: Mapping): Mapping =>
    withDefaults(options, schemas.get(key) ?? {}, ({ kind }, value) => show(kind, value));
  const sinks = Object.entries(config.sinks).map(
    ([name, { type, required, oversize, claimCheck, continues, options }]) => {
      const others = Object.entries({ continues, claimCheck }).filter(([, other]) => other !== null);
      const own = { type, required, oversize, ...Object.fromEntries(others) };
      return [name, { ...own, ...optionsOf(`sinks.${name}`, options) }];
    },
  );
  const sources = Object.entries(config.sources).map(([name, { type, options }]) => {
    return [name, { type, ...optionsOf(`sources.${name}`, options) }];
  });
  const document: Mapping = {
    ...(mapDocument({ ...config, signing: printSigning(config) }, (value, path) =>
      show(scalarAt(path)?.schema.kind, value),
    ) as Mapping),
    sinks: Object.fromEntries(sinks),
    sources: Object.fromEntries(sources),
    routes: config.routes.map(({ match, to }) => ({ match, to: to.map(printTarget) })),
  };
  return redact(document, substituted);
}

/**
 * The keys whose values are not the defaults, in the shape of a config file, redacted. Without the routes.
 */
export function changedKeys(loaded: LoadedConfig): Mapping {
  const values = CONFIG.parse({});
  const config = { ...values, signing: { ...values.signing, secrets: [], teams: [] }, routes: [] };
  const usual = printable({ ...loaded, config, substituted: new Set() }, 'text');
  const { routes: _, sinks, ...document } = printable(loaded, 'text');
  const own = Object.entries(sinks as Mapping).map(([name, sink]) => [
    name,
    without(sink as Mapping, USUAL_SINK),
  ]);
  return { ...without(document, usual), sinks: Object.fromEntries(own) };
}

const USUAL_SINK: Mapping = { required: true, oversize: 'dead-letter' };

/** The members whose values are not those of `usual`. */
function without(document: Mapping, usual: Mapping): Mapping {
  const left = Object.entries(document).flatMap(([key, value]): [string, unknown][] => {
    const expected = usual[key];
    if (!isMapping(value) || !isMapping(expected))
      return JSON.stringify(value) === JSON.stringify(expected) ? [] : [[key, value]];
    const inner = without(value, expected);
    return Object.keys(inner).length === 0 ? [] : [[key, inner]];
  });
  return Object.fromEntries(left);
}

/** Each secret with its teams, as in a config file. */
function printSigning({ signing: { teams, ...signing } }: LoadedConfig['config']): Mapping {
  const secrets = signing.secrets.map((secret, index) => {
    const own = teams[index] ?? null;
    return own === null ? secret : { secret, teams: own };
  });
  return { ...signing, secrets };
}

/** An entry of `to`. */
function printTarget(target: Target): unknown {
  const [redaction] = target.redactions ?? [];
  if (redaction === undefined) return formatTarget(target);
  const { fields: _, ...written } = redaction;
  return { target: formatTarget(target), ...written };
}

function inText(kind: unknown, value: unknown): unknown {
  if (typeof value !== 'number') return value;
  return kind === 'duration' ? formatDuration(value) : kind === 'bytes' ? formatBytes(value) : value;
}

/** Keeps invalid values: the options of a sink with an unresolved `${…}` were not checked. */
function inNumbers(kind: unknown, value: unknown): unknown {
  const read = kind === 'duration' ? parseDuration : kind === 'bytes' ? parseBytes : null;
  if (typeof value !== 'string' || read === null) return value;
  try {
    return read(value);
  } catch {
    return value;
  }
}
