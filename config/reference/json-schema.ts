import type { Written } from '../../src/lib/parse-options.ts';
import type { Kind } from '../../src/lib/fields.ts';
import { configKeys } from '../../src/config/keys.ts';
import { ONE_OR_MORE } from '../../src/config/lists.ts';
import { isMapping, type Mapping } from '../../src/config/paths.ts';

/** JSON Schemas of options by type. */
export interface OptionSchemas {
  readonly sinks: Readonly<Record<string, Written>>;
  readonly sources: Readonly<Record<string, Written>>;
}

/** Text with a `${…}` inside may stand wherever a value may. */
const PLACEHOLDER = { type: 'string', pattern: String.raw`\$\{[^}]+\}` };

/** Other ways to write a value of a kind. */
const WITH_UNIT: Readonly<Partial<Record<Kind, Mapping>>> = {
  duration: { type: 'string', pattern: String.raw`^\s*\d+(\.\d+)?\s*(ms|s|m|h|d|w)?\s*$` },
  bytes: { type: 'string', pattern: String.raw`^\s*\d+(\.\d+)?\s*([KMGTkmgt][Ii]?)?[Bb]?\s*$` },
};

/** The JSON Schema (draft 2020-12) of a config file, for editors. `check` knows more than it can say. */
export function jsonSchema(options: OptionSchemas): Mapping {
  const { properties, ...rest } = forEditors(configKeys().written);
  const { sinks, sources, ...sections } = properties as Record<string, Mapping>;
  const typed = { sinks: withTypes(sinks, options.sinks), sources: withTypes(sources, options.sources) };
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'millrace config',
    ...rest,
    properties: { ...sections, ...typed },
  };
}

/** Each type brings its own options. */
function withTypes(schema: Mapping = {}, types: OptionSchemas['sinks']): Mapping {
  const cases = Object.entries(types).map(([type, { properties = {} }]) => ({
    if: { properties: { type: { const: type } } },
    // oxlint-disable-next-line unicorn/no-thenable -- the name is from JSON Schema, and the object is never awaited
    then: forEditors({ properties }),
  }));
  return { ...schema, additionalProperties: { ...Object(schema['additionalProperties']), allOf: cases } };
}

/** What zod says of a schema, with all the ways to write a value. */
function forEditors(node: object): Mapping {
  const {
    $schema: _,
    kind,
    sensitive: _hidden,
    [ONE_OR_MORE]: isList,
    description,
    ...rest
  } = node as Mapping;
  const { default: fallback, ...value } = Object.fromEntries(
    Object.entries(rest).flatMap(([key, child]) => (isUnbounded(child) ? [] : [[key, inside(key, child)]])),
  );
  const said = {
    ...(description === undefined ? {} : { description }),
    ...(fallback === undefined ? {} : { default: fallback }),
  };
  if (isList === true) return { ...said, anyOf: [value['items'], value] };
  // An empty section (`server:` with nothing after it) is an absent one.
  if (isMapping(fallback)) {
    // A section with a switch can be written as the switch alone.
    const isSwitch = isMapping(value['properties']) && value['properties']['enabled'] !== undefined;
    return { ...value, type: isSwitch ? ['object', 'boolean', 'null'] : ['object', 'null'] };
  }
  if (kind === undefined && value['pattern'] === undefined) return { ...said, ...value };
  const written = WITH_UNIT[kind as Kind];
  const ways = value['anyOf'] === undefined ? [value] : (value['anyOf'] as Mapping[]);
  const takesAnyText = ways.some(
    ({ type, pattern, enum: options }) =>
      String(type).includes('string') && pattern === undefined && options === undefined,
  );
  const placeholder = takesAnyText ? [] : [PLACEHOLDER];
  return { ...said, anyOf: [...(written === undefined ? [] : [written]), ...ways, ...placeholder] };
}

function inside(key: string, child: unknown): unknown {
  if (Array.isArray(child)) return child.map((item) => (isMapping(item) ? forEditors(item) : item));
  if (!isMapping(child) || key === 'default' || key === 'propertyNames') return child;
  if (key !== 'properties') return forEditors(child);
  return Object.fromEntries(Object.entries(child).map(([name, one]) => [name, forEditors(Object(one))]));
}

/** A bound that only says that a number is a safe one. */
function isUnbounded(value: unknown): boolean {
  return value === Number.MAX_SAFE_INTEGER || value === Number.MIN_SAFE_INTEGER;
}
