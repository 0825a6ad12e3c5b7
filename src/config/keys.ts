import { writtenSchema, type Written } from '../lib/parse-options.ts';
import { keyOf, type Path, isMapping, type Mapping } from './paths.ts';
import { CONFIG } from './schema.ts';

export interface Key {
  readonly path: readonly string[];
  /** `server.port` */
  readonly key: string;
  /** `MILLRACE_SERVER_PORT` */
  readonly env: string;
  readonly schema: Written;
}

let known: ReturnType<typeof readKeys> | undefined;

/** Built at the first call: it takes a tenth of the start of a command, and many read no config. */
export function configKeys() {
  return (known ??= readKeys());
}

/** The JSON Schema of a whole config; its keys with one value, in the order of schema.ts; those with a list or a mapping of names. */
function readKeys() {
  const written = writtenSchema(CONFIG);
  const all = collect(written, []);
  return {
    written,
    scalars: all.filter(({ schema }) => schema.kind !== undefined),
    lists: all.filter(({ schema }) => schema.kind === undefined),
  };
}

export function scalarAt(path: Path): Key | undefined {
  const key = keyOf(path);
  return configKeys().scalars.find((scalar) => scalar.key === key);
}

/** `server.maxBodyBytes` → `MILLRACE_SERVER_MAX_BODY_BYTES` */
function envName(path: readonly string[]): string {
  const words = path.map((step) => step.replaceAll(/([a-z])([A-Z])/g, '$1_$2').toUpperCase());
  return ['MILLRACE', ...words].join('_');
}

function collect(schema: Written, path: readonly string[]): Key[] {
  if (schema.properties === undefined) return [{ path, key: keyOf(path), env: envName(path), schema }];
  return Object.entries(schema.properties).flatMap(([key, child]) => collect(child, [...path, key]));
}

/** The valid keys of an object at `path`; none when the schema does not describe it. */
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

/** Options with the defaults of absent ones. */
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
