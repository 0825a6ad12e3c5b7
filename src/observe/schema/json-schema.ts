import type { SchemaField, SchemaType } from '../../core/schema.ts';

/** A field is required when at least so many objects were seen and all had it. */
const ENOUGH = 20;

/** JSON Schema of the events of a type. */
export type JsonSchema = { readonly [keyword: string]: unknown };

interface Node {
  readonly field: SchemaField | null;
  readonly members: Map<string, Node>;
}

/** The schema of the fields that were seen. */
export function jsonSchemaOf({ fields, looked_at: looked }: SchemaType): JsonSchema {
  const root: Node = { field: null, members: new Map() };
  // Outer fields come before the fields inside them.
  for (const field of fields) {
    const names = field.path.slice(1).split('/');
    const around = names.slice(0, -1).reduce<Node | undefined>((at, name) => at?.members.get(name), root);
    around?.members.set(names.at(-1) ?? '', { field, members: new Map() });
  }
  return objectOf(root, looked);
}

function schemaOf({ field, members }: Node): JsonSchema {
  const kinds = field?.kinds ?? {};
  const ways = Object.keys(kinds).flatMap((kind): JsonSchema[] => {
    if (kind === 'object') return [objectOf({ field, members }, kinds['object'] ?? 0)];
    if (kind === 'array') return [{ type: 'array', items: itemsOf(members, kinds) }];
    // Decimals include integers.
    if (kind === 'integer' && kinds['decimal'] !== undefined) return [];
    return [{ type: TYPES[kind] ?? kind }];
  });
  // A value that was always null may be anything.
  const isKnown = ways.some(({ type }) => type !== 'null');
  if (!isKnown) return {};
  return ways.length === 1 ? (ways[0] ?? {}) : { anyOf: ways };
}

const TYPES: Readonly<Record<string, string>> = { text: 'string', decimal: 'number' };

/** @param objects how many were seen */
function objectOf({ members }: Node, objects: number): JsonSchema {
  const named = [...members].filter(([name]) => name !== '*');
  const values = members.get('*');
  const required = named.flatMap(([name, { field }]) =>
    objects >= ENOUGH && field?.share === 1 ? [nameOf(name)] : [],
  );
  return {
    type: 'object',
    // fromEntries also takes a member called __proto__.
    properties: Object.fromEntries(named.map(([name, member]) => [nameOf(name), schemaOf(member)])),
    required,
    // TypeScript has no type for a map with named members: its value type would apply to these too.
    additionalProperties: values === undefined ? false : named.length > 0 || schemaOf(values),
  };
}

/** Unknown for a field that is both array and object: `*` can be from either. */
function itemsOf(members: Node['members'], kinds: SchemaField['kinds']): JsonSchema {
  const items = members.get('*');
  return items === undefined || kinds['object'] !== undefined ? {} : schemaOf(items);
}

function nameOf(step: string): string {
  return step.replaceAll('~2', '*').replaceAll('~1', '/').replaceAll('~0', '~');
}
