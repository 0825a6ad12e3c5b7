import type { Written } from '../lib/parse-options.ts';
import { isMapping, type Mapping, type Path } from './paths.ts';

/** The keys that an object at `path` may have, by the schema; none when it is not described. */
export function keysAt(schema: Written, path: Path): string[] {
  const found = path.reduce<readonly Written[]>(
    (schemas, step) => schemas.flatMap((one) => childrenOf(one, step)),
    alternatives(schema),
  );
  return [...new Set(found.flatMap(({ properties = {} }) => Object.keys(properties)))];
}

function childrenOf({ properties, items, additionalProperties }: Written, step: string | number) {
  const named = properties?.[step];
  const rest = typeof additionalProperties === 'object' ? additionalProperties : undefined;
  const child = named ?? (typeof step === 'number' ? items : rest);
  return child === undefined ? [] : alternatives(child);
}

function alternatives(schema: Written): readonly Written[] {
  return [schema, ...[...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap(alternatives)];
}

/** Options as written, with the defaults of what was left out. */
export function withDefaults(
  written: Mapping,
  { properties = {} }: Written,
  show: (schema: Written, value: unknown) => unknown,
): Mapping {
  const filled = Object.entries(properties).flatMap(([key, schema]) => {
    const value = written[key] ?? schema.default;
    if (value === undefined || value === null) return [];
    return [[key, isMapping(value) ? withDefaults(value, schema, show) : show(schema, value)]];
  });
  return { ...written, ...Object.fromEntries(filled) };
}
