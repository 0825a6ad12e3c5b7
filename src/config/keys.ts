import { writtenSchema, type Written } from '../lib/parse-options.ts';
import { keyOf, type Path } from './paths.ts';
import { CONFIG } from './schema.ts';

export interface Key {
  readonly path: readonly string[];
  /** `server.port` */
  readonly key: string;
  /** `MILLRACE_SERVER_PORT` */
  readonly env: string;
  readonly schema: Written;
}

interface Keys {
  /** JSON Schema of a whole config. */
  readonly written: Written;
  /** Every key that holds one value, in the order of schema.ts. */
  readonly scalars: readonly Key[];
  /** Every key that holds a list or a mapping of the user's own making. */
  readonly lists: readonly Key[];
}

let known: Keys | undefined;

/** Made when it is first asked for: it is a tenth of the start of a command, and many need no config. */
export function configKeys(): Keys {
  return (known ??= readKeys());
}

function readKeys(): Keys {
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
