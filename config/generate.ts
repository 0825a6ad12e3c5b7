/**
 * Writes what is generated from the code: schema.json for editors, and docs/reference.
 * `node config/generate.ts` writes; with `--check` it writes nothing and exits 1 when a file is stale, naming it.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { PassThrough } from 'node:stream';
import { format, resolveConfig } from 'prettier';
import { createProgram } from '../src/cli/program.ts';
import { commandPage } from './reference/commands.ts';
import { jsonSchema } from './reference/json-schema.ts';
import { annotatedConfig, errorReference, exitReference, typePage } from './reference/keys.ts';
import { code, entry, GENERATED, page } from './reference/markdown.ts';
import { decimalRule, tablePage, typeReference } from './reference/tables.ts';
import { loadSinkModule, SINK_TYPES } from '../src/sinks/registry.ts';
import { loadSourceModule, SOURCE_TYPES } from '../src/sources/registry.ts';
import type { SinkModule } from '../src/core/sink.ts';
import type { Written } from '../src/lib/parse-options.ts';
import { METRICS } from '../src/observe/metrics/catalogue.ts';
import { TABLES } from '../src/tables/tables.ts';

const ROOT = join(import.meta.dirname, '..');
const REFERENCE = join(ROOT, 'docs/reference');
const SCHEMA = join(ROOT, 'config/schema.json');

/** Text of every generated file, by its path. */
async function generated(): Promise<ReadonlyMap<string, string>> {
  const sinks = await schemasOf(SINK_TYPES, (type) => loadSinkModule(type, '.'));
  const sources = await schemasOf(SOURCE_TYPES, loadSourceModule);
  const schema = JSON.stringify(jsonSchema({ sinks, sources }));
  const errors = join(REFERENCE, 'errors.md');
  const pages = {
    'config.yaml': annotatedConfig(),
    'commands.md': commandPage(await commandLine()),
    'metrics.md': metricPage(),
    'errors.md': replaceSections(errors, { errors: errorReference(), exits: exitReference() }),
    'tables/README.md': tableIndex(),
    ...pagesOf('sinks', Object.entries(sinks), ([type, one]) => [type, typePage('Sink', type, one)]),
    ...pagesOf('sources', Object.entries(sources), ([type, one]) => [type, typePage('Source', type, one)]),
    ...pagesOf('tables', [...TABLES.values()], (table) => [table.definition.name, tablePage(table)]),
  };
  return new Map([
    [SCHEMA, await format(schema, { ...(await resolveConfig(SCHEMA)), filepath: SCHEMA })],
    ...Object.entries(pages).map(([name, text]) => [join(REFERENCE, name), text] as const),
  ]);
}

function pagesOf<T>(
  folder: string,
  items: readonly T[],
  pageOf: (item: T) => readonly [name: string, text: string],
): Record<string, string> {
  return Object.fromEntries(items.map(pageOf).map(([name, text]) => [`${folder}/${name}.md`, text]));
}

/** What the modules of these types say of their options. */
async function schemasOf(
  types: readonly string[],
  load: (type: string) => Promise<Pick<SinkModule, 'optionsSchema'>>,
): Promise<Record<string, Written>> {
  const schemas = types.map(async (type) => [type, (await load(type)).optionsSchema?.() ?? {}] as const);
  return Object.fromEntries(await Promise.all(schemas));
}

function metricPage(): string {
  const entries = METRICS.map(({ name, type, labels, help }) =>
    entry(`${code(name)} (${[type, ...labels.map(code)].join(', ')})`, help),
  );
  return page('# Metrics', `${GENERATED} Name, type, labels, and what is counted.`, entries.join('\n'));
}

function tableIndex(): string {
  const entries = Array.from(TABLES.values(), ({ definition: { name, description } }) =>
    entry(`[${name}](${name}.md)`, description),
  );
  return page('# Tables', GENERATED, entries.join('\n'), '## Types', decimalRule(), typeReference());
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

function replaceSections(path: string, sections: Readonly<Record<string, string>>): string {
  let text = readFileSync(path, 'utf8');
  for (const [name, content] of Object.entries(sections)) {
    const [start, end] = [`<!-- ${name}: generated -->`, `<!-- /${name} -->`];
    const from = text.indexOf(start);
    const to = text.indexOf(end);
    if (from === -1 || to < from) throw new Error(`${path} has lost its markers ${start} and ${end}`);
    text = `${text.slice(0, from + start.length)}\n\n${content}\n\n${text.slice(to)}`;
  }
  return text;
}

const check = process.argv.includes('--check');
const files = await generated();
const there = readdirSync(REFERENCE, { recursive: true, encoding: 'utf8' }).map((name) =>
  join(REFERENCE, name),
);
const left = there.filter(
  (path) => /\.(?:md|yaml)$/.test(path) && !files.has(path) && dirname(path) !== REFERENCE,
);
for (const path of [...files.keys(), ...left]) {
  const text = files.get(path) ?? null;
  const before = existsSync(path) ? readFileSync(path, 'utf8') : null;
  if (before === text) continue;
  const name = relative(process.cwd(), path);
  process.stderr.write(
    check ? `${name} is stale: run npm run docs\n` : `${name} ${text === null ? 'removed' : 'written'}\n`,
  );
  if (check) process.exitCode = 1;
  else if (text === null) rmSync(path);
  else {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}
