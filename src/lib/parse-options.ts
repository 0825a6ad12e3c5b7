import { z } from 'zod';

/** The part of JSON Schema that describes options. */
export interface Written {
  readonly properties?: Readonly<Record<string, Written>>;
  readonly required?: readonly string[];
  readonly items?: Written;
  readonly additionalProperties?: Written | boolean;
  readonly anyOf?: readonly Written[];
  readonly oneOf?: readonly Written[];
  readonly type?: string | readonly string[];
  readonly const?: string;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly description?: string;
  /** `Kind` of fields.ts, such as `duration`. */
  readonly kind?: string;
  /** Never to be printed. */
  readonly sensitive?: boolean;
}

/** Invalid options; the message names each key: `rotate.bytes: …; partitionBy[0]: …`. */
export class OptionsError extends Error {
  readonly issues: readonly z.core.$ZodIssue[];

  constructor(issues: readonly z.core.$ZodIssue[]) {
    const problems = issues.map(({ path, message }) =>
      path.length === 0 ? message : `${keyOf(path)}: ${message}`,
    );
    super(problems.join('; '));
    this.issues = issues;
  }
}

/** A path as users write it: `routes[0].match`. */
export function keyOf(path: readonly PropertyKey[]): string {
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`));
  return steps.join('').replace(/^\./, '');
}

/** The parser of a module's options, which throws an OptionsError with all problems, and their schema. */
export function optionsOf<T>(schema: z.ZodType<T>): {
  parseOptions: (options: unknown) => T;
  optionsSchema: () => Written;
} {
  return {
    parseOptions: (options) => parse(schema, options ?? {}),
    optionsSchema: () => writtenSchema(schema),
  };
}

function parse<T>(schema: z.ZodType<T>, options: unknown): T {
  const result = schema.safeParse(options);
  if (result.success) return result.data;
  const { issues } = result.error;
  // With an unknown key zod skips checks over several keys: parsed again without it.
  const unknown = issues.filter((issue) => issue.code === 'unrecognized_keys');
  const rest = unknown.length === 0 ? result : schema.safeParse(without(options, unknown));
  throw new OptionsError([...unknown, ...(rest.error?.issues ?? [])]);
}

/** JSON Schema of the options as written, with `kind` and `sensitive` of fields.ts. */
export function writtenSchema(schema: z.ZodType): Written {
  return z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Written;
}

function without(options: unknown, unknown: readonly z.core.$ZodIssueUnrecognizedKeys[]): unknown {
  const copy: unknown = structuredClone(options);
  for (const { path, keys } of unknown) {
    const holder = path.reduce((value, step) => Reflect.get(Object(value), step) as unknown, copy);
    for (const key of keys) Reflect.deleteProperty(Object(holder), key);
  }
  return copy;
}
