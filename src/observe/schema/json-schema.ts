import type { SchemaField, SchemaType } from '../../core/schema.ts';

/** Objects after which a field that all of them had is taken to be always there. */
const ENOUGH = 20;

/** JSON Schema of the events of a type: what was seen, and nothing else. */
export type JsonSchema = { readonly [keyword: string]: unknown };

interface Node {
  readonly field: SchemaField | null;
  readonly members: Map<string, Node>;
}

/** The document of a type's events. A member is required when every object had it, and there were enough of them. */
export function jsonSchemaOf({ fields, looked_at: looked }: SchemaType): JsonSchema {
  const root: Node = { field: null, members: new Map() };
  // An outer field stands in front of those inside it.
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
    // A fraction can be whole.
    if (kind === 'integer' && kinds['decimal'] !== undefined) return [];
    return [{ type: TYPES[kind] ?? kind }];
  });
  // What was always null may be anything.
  const isKnown = ways.some(({ type }) => type !== 'null');
  if (!isKnown) return {};
  return ways.length === 1 ? (ways[0] ?? {}) : { anyOf: ways };
}

const TYPES: Readonly<Record<string, string>> = { text: 'string', decimal: 'number' };

/** @param objects how many there were */
function objectOf({ members }: Node, objects: number): JsonSchema {
  const named = [...members].filter(([name]) => name !== '*');
  const values = members.get('*');
  const required = named.flatMap(([name, { field }]) =>
    objects >= ENOUGH && field?.share === 1 ? [nameOf(name)] : [],
  );
  return {
    type: 'object',
    // Not by assignment: one may be called __proto__.
    properties: Object.fromEntries(named.map(([name, member]) => [nameOf(name), schemaOf(member)])),
    required,
    // Beside names a map can be no type of TypeScript: its entries' type would be that of the names as well.
    additionalProperties: values === undefined ? false : named.length > 0 || schemaOf(values),
  };
}

/** Of what is an array here and an object there, nothing says which of the two the star is about. */
function itemsOf(members: Node['members'], kinds: SchemaField['kinds']): JsonSchema {
  const items = members.get('*');
  return items === undefined || kinds['object'] !== undefined ? {} : schemaOf(items);
}

function nameOf(step: string): string {
  return step.replaceAll('~2', '*').replaceAll('~1', '/').replaceAll('~0', '~');
}
