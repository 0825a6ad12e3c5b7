/**
 * Writes what is generated from the code: schema.json for editors, and the parts of two README.md between markers: the
 * config's keys and errors here, the tables in src/warehouse.
 * `node config/generate.ts` writes; with `--check` it writes nothing and exits 1 when a file is stale, naming it.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { jsonSchema } from '../src/config/json-schema.ts';
import { errorReference, exitReference, keyReference, requireDefault } from '../src/config/reference.ts';
import { decimalRule, tableReference, typeReference } from '../src/warehouse/reference.ts';

const SECTIONS = {
  keys: keyReference,
  require: requireDefault,
  errors: errorReference,
  exits: exitReference,
};

const WAREHOUSE_SECTIONS = { types: typeReference, decimals: decimalRule, tables: tableReference };

/** Path and text of every generated file, as the format gate wants them. */
async function generated(): Promise<{ path: string; text: string }[]> {
  const schema = join(import.meta.dirname, 'schema.json');
  const readme = join(import.meta.dirname, 'README.md');
  const tables = join(import.meta.dirname, '../src/warehouse/README.md');
  return [
    { path: schema, text: await pretty(JSON.stringify(jsonSchema()), schema) },
    { path: readme, text: await pretty(replaceSections(readme, SECTIONS), readme) },
    { path: tables, text: await pretty(replaceSections(tables, WAREHOUSE_SECTIONS), tables) },
  ];
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
  if (from === -1 || to < from) throw new Error(`A README.md has lost its markers ${start} and ${end}`);
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
