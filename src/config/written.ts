import type { OptionsSchema } from '../core/sink.ts';
import { isMapping, type Mapping, type Path } from './paths.ts';

/** The keys that an object at `path` may have, by the schema; none when it is not described. */
export function keysAt(schema: OptionsSchema, path: Path): string[] {
  const found = path.reduce<readonly OptionsSchema[]>(
    (schemas, step) => schemas.flatMap((one) => childrenOf(one, step)),
    alternatives(schema),
  );
  return [...new Set(found.flatMap(({ properties = {} }) => Object.keys(properties)))];
}

function childrenOf({ properties, items, additionalProperties }: OptionsSchema, step: string | number) {
  const named = properties?.[step];
  const rest = typeof additionalProperties === 'object' ? additionalProperties : undefined;
  const child = named ?? (typeof step === 'number' ? items : rest);
  return child === undefined ? [] : alternatives(child);
}

function alternatives(schema: OptionsSchema): readonly OptionsSchema[] {
  return [schema, ...[...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap(alternatives)];
}

/** Options as written, with the defaults of what was left out. */
export function withDefaults(
  written: Mapping,
  { properties = {} }: OptionsSchema,
  show: (schema: OptionsSchema, value: unknown) => unknown,
): Mapping {
  const filled = Object.entries(properties).flatMap(([key, schema]) => {
    const value = written[key] ?? schema.default;
    if (value === undefined || value === null) return [];
    return [[key, isMapping(value) ? withDefaults(value, schema, show) : show(schema, value)]];
  });
  return { ...written, ...Object.fromEntries(filled) };
}
