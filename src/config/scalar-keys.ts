import { isField, type Field, type Kind } from '../lib/fields.ts';
import { keyOf, type Path } from './paths.ts';
import { SCALARS } from './scalars.ts';

export interface ScalarKey {
  readonly path: readonly string[];
  /** `server.port` */
  readonly key: string;
  /** `MILLRACE_SERVER_PORT` */
  readonly env: string;
  readonly field: Field<unknown>;
  readonly kind: Kind;
  readonly sensitive: boolean;
}

/** Every scalar key, in the order of scalars.ts. */
export const SCALAR_KEYS: readonly ScalarKey[] = collect(SCALARS, []);

export function scalarAt(path: Path): ScalarKey | undefined {
  const key = keyOf(path);
  return SCALAR_KEYS.find((scalar) => scalar.key === key);
}

/** `server.maxBodyBytes` → `MILLRACE_SERVER_MAX_BODY_BYTES` */
function envName(path: readonly string[]): string {
  const words = path.map((step) => step.replaceAll(/([a-z])([A-Z])/g, '$1_$2').toUpperCase());
  return ['MILLRACE', ...words].join('_');
}

function collect(node: object, path: readonly string[]): ScalarKey[] {
  if (!isField(node))
    return Object.entries(node).flatMap(([key, child]: [string, object]) => collect(child, [...path, key]));
  const { kind, sensitive } = Object(node.meta()) as { kind: Kind; sensitive?: boolean };
  const env = envName(path);
  return [{ path, key: keyOf(path), env, field: node, kind, sensitive: sensitive === true }];
}
