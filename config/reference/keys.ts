import { CATALOGUE, EXIT } from '../../src/core/errors.ts';
import { markdownTable } from './markdown.ts';
import type { Written } from '../../src/lib/parse-options.ts';
import { configKeys } from '../../src/config/keys.ts';
import { requirements } from '../../src/config/lists.ts';

const TYPES: Readonly<Record<string, string>> = {
  texts: 'list of texts',
  flag: 'true or false',
  count: 'whole number',
  port: 'port',
  duration: 'duration',
  bytes: 'size',
};

/** Type and default of the keys in lists.ts, in words. */
const LIST_ROWS: Readonly<Record<string, readonly [string, string]>> = {
  'signing.secrets': ['list of texts, or of {secret, teams}', 'none'],
  'envelope.require': ['list of {match, fields}', 'see below'],
  sinks: ['mapping of names to sinks', 'none'],
  sources: ['mapping of names to sources', 'none'],
  routes: ['list of {match, to}', 'everything to every sink'],
};

/** What the codes mean that commands end with. */
const EXIT_ROWS = {
  done: [EXIT.done, 'done'],
  failed: [EXIT.failed, 'failed'],
  usage: [EXIT.usage, 'the command line or the config is invalid'],
  partial: [EXIT.partial, 'partly done; can be resumed'],
  difference: [EXIT.difference, 'a verification found a difference'],
} as const satisfies Record<keyof typeof EXIT, readonly [number, string]>;

/** Every key of the config as a Markdown table. */
export function keyReference(): string {
  const keys = configKeys();
  const scalars = keys.scalars.map(({ key, schema, env }) => {
    const { description = '' } = schema;
    return { key, cells: [code(key), typeOf(schema), fallbackOf(schema), code(env), description] };
  });
  const lists = keys.lists.map(({ key, schema }) => {
    const [type = '', fallback = ''] = LIST_ROWS[key] ?? [];
    return { key, cells: [code(key), type, fallback, '', schema.description ?? ''] };
  });
  // A list stands with the other keys of its section; sinks and routes come last.
  const order = Object.keys(keys.written.properties ?? {});
  const rank = ({ key }: { key: string }): number => order.indexOf(key.split('.')[0] ?? key);
  const rows = [...scalars, ...lists].sort((a, b) => rank(a) - rank(b)).map(({ cells }) => cells);
  return markdownTable(['Key', 'Type', 'Default', 'Environment', 'What it does'], rows);
}

/** The options of each type of sink or source, as a Markdown table. */
export function optionReference(types: Readonly<Record<string, Written>>): string {
  const rows = Object.entries(types).flatMap(([type, schema]) =>
    optionRows(schema, '').map((row, index) => [index === 0 ? code(type) : '', ...row]),
  );
  return markdownTable(['Type', 'Option', 'Values', 'Default', 'What it does'], rows);
}

/** A mapping's own options stand below it, those of several forms of it one after the other. */
function optionRows(
  { properties = {}, required = [], anyOf = [], oneOf = [] }: Written,
  prefix: string,
): string[][] {
  const own = Object.entries(properties).flatMap(([key, schema]: [string, Written]) => {
    const name = `${prefix}${key}`;
    const { description = '' } = schema;
    const row = [code(name), typeOf(schema), fallbackOf(schema, required.includes(key)), description];
    return [...(description === '' ? [] : [row]), ...optionRows(schema, `${name}.`)];
  });
  return [...own, ...[...anyOf, ...oneOf].flatMap((form) => optionRows(form, prefix))];
}

/** What `envelope.require` is when it is left out, as YAML. */
export function requireDefault(): string {
  const rules = requirements.parse(undefined);
  const lines = rules.map(
    ({ match, fields }) => `    - { match: ${quoted(match)}, fields: [${fields.join(', ')}] }`,
  );
  return ['```yaml', 'envelope:', '  require:', ...lines, '```'].join('\n');
}

/** Every error a user can meet, as a Markdown table. */
export function errorReference(): string {
  const rows = Object.entries(CATALOGUE).map(([name, entry]) => [
    code(name),
    entry.title,
    'status' in entry ? String(entry.status) : '',
    'exit' in entry ? String(entry.exit) : '',
    entry.retryable ? 'yes' : 'no',
  ]);
  return markdownTable(['Code', 'Meaning', 'HTTP status', 'Exit code', 'Worth a retry'], rows);
}

/** The exit codes of every command, as a Markdown table. */
export function exitReference(): string {
  const rows = Object.values(EXIT_ROWS).map(([exit, meaning]) => [String(exit), meaning]);
  return markdownTable(['Exit code', 'Meaning'], rows);
}

function typeOf({ kind = '', type, enum: options, const: only, items }: Written): string {
  if (options !== undefined) return options.map((option) => code(String(option))).join(', ');
  if (only !== undefined) return code(only);
  if (items !== undefined && kind === '') return `list of ${typeOf(items)}`;
  return TYPES[kind] ?? (type === 'object' ? 'mapping' : 'text');
}

function fallbackOf({ default: written }: Written, isNeeded = false): string {
  if (written === undefined && isNeeded) return 'needed';
  if (written === undefined || written === null || written === '') return 'none';
  if (Array.isArray(written)) return written.length === 0 ? 'none' : code(`[${written.join(', ')}]`);
  return code(typeof written === 'string' ? written : JSON.stringify(written));
}

function quoted(match: readonly string[]): string {
  return `[${match.map((prefix) => (prefix === '*' ? "'*'" : prefix)).join(', ')}]`;
}

function code(text: string): string {
  return `\`${text}\``;
}
