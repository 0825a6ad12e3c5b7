/**
 * Writes what is generated from the code: schema.json for editors, and the parts of pages between markers: the
 * config's keys and errors here, the commands in commands.md, the metrics in metrics.md, the tables in src/tables.
 * `node config/generate.ts` writes; with `--check` it writes nothing and exits 1 when a file is stale, naming it.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { PassThrough } from 'node:stream';
import { format, resolveConfig } from 'prettier';
import { createProgram } from '../src/cli/program.ts';
import { commandReference, environmentReference } from './reference/commands.ts';
import { jsonSchema } from './reference/json-schema.ts';
import {
  errorReference,
  exitReference,
  keyReference,
  optionReference,
  requireDefault,
} from './reference/keys.ts';
import { loadSinkModule, SINK_TYPES } from '../src/sinks/registry.ts';
import { loadSourceModule, SOURCE_TYPES } from '../src/sources/registry.ts';
import type { SinkModule } from '../src/core/sink.ts';
import type { Written } from '../src/lib/parse-options.ts';
import { METRICS } from '../src/observe/metrics/catalogue.ts';
import { decimalRule, tableReference, typeReference } from './reference/tables.ts';

const SECTIONS = {
  keys: keyReference,
  require: requireDefault,
  errors: errorReference,
  exits: exitReference,
};

const METRIC_SECTIONS = { metrics: metricReference };

const WAREHOUSE_SECTIONS = { types: typeReference, decimals: decimalRule, tables: tableReference };

/** Path and text of every generated file, as the format gate wants them. */
async function generated(): Promise<{ path: string; text: string }[]> {
  const program = await commandLine();
  const commandSections = {
    commands: () => commandReference(program),
    environment: environmentReference,
  };
  const options = {
    sinks: await schemasOf(SINK_TYPES, (type) => loadSinkModule(type, '.')),
    sources: await schemasOf(SOURCE_TYPES, loadSourceModule),
  };
  const sections = {
    ...SECTIONS,
    'sink-options': () => optionReference(options.sinks),
    'source-options': () => optionReference(options.sources),
  };
  const schema = join(import.meta.dirname, 'schema.json');
  const readme = join(import.meta.dirname, 'README.md');
  const commands = join(import.meta.dirname, 'commands.md');
  const metrics = join(import.meta.dirname, 'metrics.md');
  const tables = join(import.meta.dirname, '../src/tables/README.md');
  return [
    { path: schema, text: await pretty(JSON.stringify(jsonSchema(options)), schema) },
    { path: readme, text: await pretty(replaceSections(readme, sections), readme) },
    { path: commands, text: await pretty(replaceSections(commands, commandSections), commands) },
    { path: metrics, text: await pretty(replaceSections(metrics, METRIC_SECTIONS), metrics) },
    { path: tables, text: await pretty(replaceSections(tables, WAREHOUSE_SECTIONS), tables) },
  ];
}

/** What the modules of these types say of their options. */
async function schemasOf(
  types: readonly string[],
  load: (type: string) => Promise<Pick<SinkModule, 'optionsSchema'>>,
): Promise<Record<string, Written>> {
  const schemas = types.map(async (type) => [type, (await load(type)).optionsSchema?.() ?? {}] as const);
  return Object.fromEntries(await Promise.all(schemas));
}

/** Every metric of our own, as a Markdown table. */
function metricReference(): string {
  const rows = METRICS.map(({ name, type, labels, help }) => [
    `\`${name}\``,
    type,
    labels.map((label) => `\`${label}\``).join(', '),
    help.replaceAll('|', String.raw`\|`),
  ]);
  return [['Metric', 'Type', 'Labels', 'What it counts'], ['---', '---', '---', '---'], ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}

/** The command line, to be looked at only. */
function commandLine(): ReturnType<typeof createProgram> {
  const none = new PassThrough();
  return createProgram({
    stdout: none,
    stderr: none,
    stdin: none,
    env: {},
    signal: new AbortController().signal,
    onHangUp: () => undefined,
    onUncaught: () => undefined,
    whenOutputIsLost: () => undefined,
    setExit: () => undefined,
  });
}

function replaceSections(path: string, sections: Readonly<Record<string, () => string>>): string {
  let text = readFileSync(path, 'utf8');
  for (const [name, build] of Object.entries(sections)) text = replaceSection(text, name, build());
  return text;
}

function replaceSection(text: string, name: string, content: string): string {
  const [start, end] = [`<!-- ${name}: generated -->`, `<!-- /${name} -->`];
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  if (from === -1 || to < from) throw new Error(`A page has lost its markers ${start} and ${end}`);
  return `${text.slice(0, from + start.length)}\n\n${content}\n\n${text.slice(to)}`;
}

async function pretty(text: string, filepath: string): Promise<string> {
  return await format(text, { ...(await resolveConfig(filepath)), filepath });
}

const check = process.argv.includes('--check');
for (const { path, text } of await generated()) {
  if (existsSync(path) && readFileSync(path, 'utf8') === text) continue;
  if (!check) writeFileSync(path, text);
  const name = relative(process.cwd(), path);
  process.stderr.write(check ? `${name} is stale: run npm run docs\n` : `${name} written\n`);
  if (check) process.exitCode = 1;
}
