import { z } from 'zod';
import type { Format, Leaf } from './leaf.ts';
import { LISTS, ONE_OR_MORE } from './lists.ts';
import { keyOf, type Mapping } from './paths.ts';
import { isLeaf } from './scalar-keys.ts';
import { SCALARS } from './scalars.ts';

/** Text with a `${…}` inside may stand wherever a value may. */
const PLACEHOLDER = { type: 'string', pattern: String.raw`\$\{[^}]+\}` };

const DURATION = String.raw`^\s*\d+(\.\d+)?\s*(ms|s|m|h|d|w)?\s*$`;
const BYTES = String.raw`^\s*\d+(\.\d+)?\s*([KMGTkmgt][Ii]?)?[Bb]?\s*$`;

/** The ways to write each format, placeholders aside. */
const VALUES: Readonly<Record<Format, (leaf: Leaf<unknown>) => Mapping[]>> = {
  text: ({ pattern }) => [pattern === null ? { type: 'string' } : { type: 'string', pattern }],
  texts: () => [{ type: 'array', items: { type: 'string' } }],
  flag: () => [{ type: 'boolean' }],
  count: (leaf) => [range(leaf)],
  port: (leaf) => [range(leaf)],
  duration: (leaf) => [{ type: 'string', pattern: DURATION }, range(leaf)],
  bytes: (leaf) => [{ type: 'string', pattern: BYTES }, range(leaf)],
  choice: ({ options }) => [{ enum: options }],
  status: ({ options }) => [{ enum: options }],
};

/** The JSON Schema (draft 2020-12) of a config file, for editors. `check` knows more than it can say. */
export function jsonSchema(): Mapping {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'millrace config',
    ...section(SCALARS, []),
  };
}

function section(node: object, path: readonly string[]): Mapping {
  const scalars = Object.entries(node).map(([key, child]: [string, object]) => [
    key,
    isLeaf(child) ? leafSchema(child) : section(child, [...path, key]),
  ]);
  const lists = Object.entries(LISTS)
    .map(([key, schema]) => ({ steps: key.split('.'), schema }))
    .filter(({ steps }) => keyOf(steps.slice(0, -1)) === keyOf(path))
    .map(({ steps, schema }) => [steps.at(-1), listSchema(schema)]);
  return {
    // An empty section (`server:` with nothing after it) is an absent one.
    type: ['object', 'null'],
    additionalProperties: false,
    properties: Object.fromEntries([...scalars, ...lists]),
  };
}

function leafSchema(leaf: Leaf<unknown>): Mapping {
  const nullable = leaf.nullable ? [{ type: 'null' }] : [];
  const values = VALUES[leaf.format](leaf);
  const placeholder = values.some((value) => value['type'] === 'string' && !('pattern' in value))
    ? []
    : [PLACEHOLDER];
  return { description: leaf.doc, default: leaf.default, anyOf: [...values, ...placeholder, ...nullable] };
}

function range({ min, max }: Leaf<unknown>): Mapping {
  return { type: 'integer', minimum: min, ...(max === Number.MAX_SAFE_INTEGER ? {} : { maximum: max }) };
}

function listSchema(schema: z.ZodType): Mapping {
  const { $schema: _, ...result } = z.toJSONSchema(schema, {
    io: 'input',
    override: ({ jsonSchema: node }) => {
      if (node[ONE_OR_MORE] !== true) return;
      const { [ONE_OR_MORE]: _mark, description, ...list } = node;
      for (const key of Object.keys(node)) delete node[key];
      Object.assign(node, { description, anyOf: [list['items'], list] });
    },
  });
  return result;
}
