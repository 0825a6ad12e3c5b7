import { formatBytes, formatDuration } from '../lib/units.ts';
import type { LoadedConfig, ResolvedConfig } from './config.ts';
import { isMapping, type Mapping, type Path } from './paths.ts';
import { redact } from './redact.ts';
import { formatTarget } from '../core/route.ts';
import { withDefaults } from './written.ts';
import { scalarAt } from './scalar-keys.ts';

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
  const document: Mapping = {
    ...config,
    sinks: Object.fromEntries(
      Object.entries(config.sinks).map(([name, { type, required, oversize, claimCheck, options }]) => [
        name,
        {
          type,
          required,
          oversize,
          ...(claimCheck === null ? {} : { claimCheck }),
          ...withDefaults(options, schemas.get(`sinks.${name}`) ?? {}),
        },
      ]),
    ),
    sources: Object.fromEntries(
      Object.entries(config.sources).map(([name, { type, options }]) => [
        name,
        { type, ...withDefaults(options, schemas.get(`sources.${name}`) ?? {}) },
      ]),
    ),
    routes: config.routes.map(({ match, to }) => ({ match, to: to.map(formatTarget) })),
  };
  return redact(units === 'text' ? withUnits(document, []) : document, substituted);
}

function withUnits(section: Mapping, path: Path): Mapping {
  return Object.fromEntries(
    Object.entries(section).map(([key, value]) => {
      const here = [...path, key];
      if (typeof value === 'number') return [key, withUnit(value, here)];
      return [key, isMapping(value) ? withUnits(value, here) : value];
    }),
  );
}

function withUnit(value: number, path: Path): unknown {
  const format = scalarAt(path)?.leaf.format;
  if (format === 'duration') return formatDuration(value);
  return format === 'bytes' ? formatBytes(value) : value;
}
