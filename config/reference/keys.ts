import { CATALOGUE, EXIT } from '../../src/core/errors.ts';
import type { Written } from '../../src/lib/parse-options.ts';
import { configKeys } from '../../src/config/keys.ts';
import { requirements } from '../../src/config/lists.ts';
import { code, entry, GENERATED, markdownTable, page, wrap } from './markdown.ts';

const TYPES: Readonly<Record<string, string>> = {
  texts: 'list of texts',
  flag: 'true or false',
  count: 'whole number',
  port: 'port',
  duration: 'duration',
  bytes: 'size',
};

/** Of the keys in lists.ts: what stands in the reference, as YAML. */
const LISTS: Readonly<Record<string, string>> = {
  'signing.secrets': "secrets: ['${MILLRACE_SECRET}']",
  'envelope.require': 'require:\n' + requiredIds(),
  'service.resources':
    "# resources:\n#   made_up:\n#     { path: '/v2/timeseries/{user_id}/made_up/grouped', list: groups, table: timeseries, pages: cursor }",
  sinks: 'sinks:\n  archive: { type: files, path: ./data/archive }',
  sources:
    '# sources:\n#   hub: { type: event-hubs, connectionString: "${EVENT_HUBS}", hub: events, consumerGroup: millrace }',
  routes: "routes:\n  - { match: [labtest., lab_report.], to: archive }\n  - { match: '*', to: archive }",
};

/** What the codes mean that commands end with. */
const EXIT_ROWS = {
  done: [EXIT.done, 'done'],
  failed: [EXIT.failed, 'failed'],
  usage: [EXIT.usage, 'the command line or the config is invalid'],
  partial: [EXIT.partial, 'partly done; can be resumed'],
  difference: [EXIT.difference, 'a verification found a difference'],
} as const satisfies Record<keyof typeof EXIT, readonly [number, string]>;

/** Every key with its default, as a config that can be used. Keys without a default are commented out. */
export function annotatedConfig(): string {
  const { scalars, lists, written: schema } = configKeys();
  const lines = [
    '# yaml-language-server: $schema=../../config/schema.json',
    `# ${GENERATED}`,
    '# Every key, its default and its environment variable. A key that is commented out has no default.',
  ];
  const known = new Map([...scalars, ...lists].map((key) => [key.key, key]));
  const section = (part: Written, path: readonly string[]): void => {
    const indent = '  '.repeat(path.length);
    for (const [name, child] of Object.entries(part.properties ?? {})) {
      const key = [...path, name].join('.');
      if (path.length === 0) lines.push('');
      const found = known.get(key);
      if (found === undefined) {
        lines.push(`${indent}${name}:`);
        section(child, [...path, name]);
        continue;
      }
      const { description = '', default: value } = found.schema;
      const list = LISTS[key];
      for (const line of wrap(description).split('\n')) lines.push(`${indent}# ${line}`);
      if (list !== undefined) {
        lines.push(...list.split('\n').map((line) => indent + line));
        continue;
      }
      const isSet = value !== undefined && value !== null && value !== '';
      const written = typeof value === 'string' ? quoted(value) : JSON.stringify(value);
      const about = `# ${typeOf(found.schema)}; ${found.env}`;
      lines.push(`${indent}${isSet ? `${name}: ${written}` : `# ${name}:`} ${about}`);
    }
  };
  section(schema, []);
  return `${lines.join('\n')}\n`;
}

/** The page of one type of sink or source. */
export function typePage(kind: 'Sink' | 'Source', type: string, schema: Written): string {
  return page(
    `# ${kind} ${code(type)}`,
    `${GENERATED} In the config: ${code(`${kind.toLowerCase()}s.NAME.type: ${type}`)}.`,
    optionEntries(schema, '').join('\n'),
  );
}

/** A mapping's own options stand below it, those of several forms of it one after the other. */
function optionEntries(
  { properties = {}, required = [], anyOf = [], oneOf = [] }: Written,
  prefix: string,
): string[] {
  const own = Object.entries(properties).flatMap(([key, schema]: [string, Written]) => {
    const name = `${prefix}${key}`;
    const { description = '' } = schema;
    const about = [typeOf(schema), fallbackOf(schema, required.includes(key))].filter(Boolean).join(', ');
    const row = entry(`${code(name)} (${about})`, description);
    return [...(description === '' ? [] : [row]), ...optionEntries(schema, `${name}.`)];
  });
  return [...own, ...[...anyOf, ...oneOf].flatMap((form) => optionEntries(form, prefix))];
}

/** What `envelope.require` is when it is left out, as lines of YAML. */
function requiredIds(): string {
  return requirements
    .parse(undefined)
    .map(
      ({ match, fields }) =>
        `  - { match: [${match.map(quoted).join(', ')}], fields: [${fields.join(', ')}] }`,
    )
    .join('\n');
}

/** Every error a user can meet. */
export function errorReference(): string {
  return Object.entries(CATALOGUE)
    .map(([name, error]) => {
      const said = [
        'status' in error ? `HTTP ${error.status}` : '',
        'exit' in error ? `exit ${error.exit}` : '',
        error.retryable ? 'worth a retry' : '',
      ].filter(Boolean);
      return entry(code(name), `${error.title}${said.length === 0 ? '' : ` (${said.join(', ')})`}`);
    })
    .join('\n');
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
  if (written === undefined || written === null || written === '') return '';
  if (Array.isArray(written)) return written.length === 0 ? '' : `default ${code(`[${written.join(', ')}]`)}`;
  return `default ${code(typeof written === 'string' ? written : JSON.stringify(written))}`;
}

/** A text as YAML reads it back. */
function quoted(text: string): string {
  return /^[A-Za-z./][\w./-]*$/.test(text) && !/^(?:true|false|null|yes|no|on|off)$/i.test(text)
    ? text
    : `'${text.replaceAll("'", "''")}'`;
}
