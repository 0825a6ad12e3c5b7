import type { Leaf } from './leaf.ts';
import { isMapping, keyOf, type Path } from './paths.ts';
import { SCALARS } from './scalars.ts';

export interface ScalarKey {
  readonly path: readonly string[];
  /** `server.port` */
  readonly key: string;
  /** `MILLRACE_SERVER_PORT` */
  readonly env: string;
  readonly leaf: Leaf<unknown>;
}

/** Every scalar key, in the order of scalars.ts. */
export const SCALAR_KEYS: readonly ScalarKey[] = collect(SCALARS, []);

export function scalarAt(path: Path): ScalarKey | undefined {
  const key = keyOf(path);
  return SCALAR_KEYS.find((scalar) => scalar.key === key);
}

/** A leaf has a format; a section has keys. No section has a key of that name. */
export function isLeaf(node: unknown): node is Leaf<unknown> {
  return isMapping(node) && typeof node['format'] === 'string';
}

/** `server.maxBodyBytes` → `MILLRACE_SERVER_MAX_BODY_BYTES` */
function envName(path: readonly string[]): string {
  const words = path.map((step) => step.replaceAll(/([a-z])([A-Z])/g, '$1_$2').toUpperCase());
  return ['MILLRACE', ...words].join('_');
}

function collect(node: object, path: readonly string[]): ScalarKey[] {
  if (isLeaf(node)) return [{ path, key: keyOf(path), env: envName(path), leaf: node }];
  return Object.entries(node).flatMap(([key, child]: [string, object]) => collect(child, [...path, key]));
}
