import { writtenSchema, type Written } from '../lib/parse-options.ts';
import { keyOf, type Path } from './paths.ts';
import { CONFIG } from './schema.ts';

/** JSON Schema of a whole config. */
export const WRITTEN: Written = writtenSchema(CONFIG);

export interface Key {
  readonly path: readonly string[];
  /** `server.port` */
  readonly key: string;
  /** `MILLRACE_SERVER_PORT` */
  readonly env: string;
  readonly schema: Written;
}

const ALL: readonly Key[] = collect(WRITTEN, []);

/** Every key that holds one value, in the order of schema.ts. */
export const SCALAR_KEYS: readonly Key[] = ALL.filter(({ schema }) => schema.kind !== undefined);

/** Every key that holds a list or a mapping of the user's own making. */
export const LIST_KEYS: readonly Key[] = ALL.filter(({ schema }) => schema.kind === undefined);

export function scalarAt(path: Path): Key | undefined {
  const key = keyOf(path);
  return SCALAR_KEYS.find((scalar) => scalar.key === key);
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
