import { cp, mkdir, readdir, symlink } from 'node:fs/promises';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { ROOT } from '../support/millrace.ts';
import { packProject } from '../support/packed.ts';
import { firstLack, lacksProgram, skipped } from '../support/requirements.ts';
import { shared } from '../support/server.ts';
import { quoted, shellPlace, writeShim, type ShellPlace } from '../support/shell.ts';
import { README, STOP, typed } from './readme.ts';

const commands = README.filter(({ info }) => info[0] === 'sh' && info[1] !== 'live').map(({ text }) => text);
const lack = firstLack(...['bash', 'curl', 'openssl', 'npm', 'tar'].map(lacksProgram));
/** A fresh clone: everything but what a clone does not have. */
async function clone(): Promise<ShellPlace> {
  const folder = join(await temporaryFolder(), 'millrace');
  await mkdir(folder);
  for (const name of await readdir(ROOT)) {
    if (['.git', 'node_modules', 'dist', 'data', 'coverage'].includes(name)) continue;
    await cp(join(ROOT, name), join(folder, name), { recursive: true });
  }
  const prefix = `${folder}-global`;
  await linkPackages(prefix);
  const place = await shellPlace(folder, join(prefix, 'node_modules/millrace/dist/main.js'));
  const tarball = await shared('package', packProject);
  onTestFinished(tarball.stop);
  writeShim(place.bin, 'npm', npm(prefix, tarball.url));
  return place;
}

/**
 * npm without its registry: `ci` takes this checkout's packages, and `install --global` lays the packed package out
 * beside them. Whether the tests pass is not asked again in here, nor is it packed again.
 */
function npm(prefix: string, tarball: string): string {
  const [from, to] = [quoted(join(ROOT, 'node_modules')), quoted(join(prefix, 'node_modules'))];
  const real = (process.env['PATH'] ?? '').split(':').find((folder) => existsSync(join(folder, 'npm')));
  return `
case "$1" in
  ci) ln -sfn ${from} node_modules ;;
  test) ;;
  pack) cp ${quoted(tarball)} . ;;
  install) tar -xzf "$3" -C ${to} && mv ${to}/package ${to}/millrace ;;
  *) npm_config_offline=true npm_config_update_notifier=false exec ${quoted(join(real ?? '', 'npm'))} "$@" ;;
esac`;
}

/** Links this checkout's packages below `prefix`, one by one, those for development left out. */
async function linkPackages(prefix: string): Promise<void> {
  const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    devDependencies: Record<string, string>;
  };
  const [from, to] = [join(ROOT, 'node_modules'), join(prefix, 'node_modules')];
  for (const entry of await readdir(from)) {
    if (entry.startsWith('.')) continue;
    const scoped = entry.startsWith('@') ? await readdir(join(from, entry)) : null;
    await mkdir(scoped === null ? to : join(to, entry), { recursive: true });
    for (const name of scoped?.map((child) => `${entry}/${child}`) ?? [entry]) {
      if (!(name in devDependencies)) await symlink(join(from, name), join(to, name));
    }
  }
}

async function duckdb(sql: string, folder: string): Promise<unknown[][]> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  onTestFinished(() => {
    connection.closeSync();
    instance.closeSync();
  });
  await connection.run(`SET file_search_path = '${folder}'`);
  return (await connection.runAndReadAll(sql)).getRowsJson();
}

test.skipIf(lack !== null)(
  `from a fresh clone to events in files and in DuckDB, by the README alone${skipped(lack)}`,
  async () => {
    expect(commands.length).toBeGreaterThanOrEqual(3);
    const { folder, run } = await clone();
    const output = await run([...commands.map(typed), STOP].join('\n'), { TMPDIR: join(folder, '..') });
    for (const said of ['accepted ', '"event":{']) expect(output).toContain(said);
    const shown =
      README.find(({ text }) => text.startsWith('sent '))?.text ?? 'no block with the counts of the demo';
    expect(output.replaceAll(/\S*(\/millrace-demo-)\w+/g, '/tmp$1…')).toContain(shown);
    const accepted = output.match(/"status":"accepted"/g)?.length ?? 0;
    expect(accepted).toBeGreaterThan(0);

    const query = README.find(({ info }) => info[0] === 'sql');
    const rows = await duckdb(query?.text ?? '', join(folder, '../hooks'));
    expect(rows).toEqual([['lab_report.parsing_job.created', String(accepted)]]);
  },
);

test.skipIf(lack !== null)(
  `from nothing to the first event in a file and in \`tail\`, by four commands of the README${skipped(lack)}`,
  async () => {
    const live = README.filter(({ info }) => info[1] === 'live').flatMap(({ text }) => text.split('\n'));
    expect(live.length).toBeLessThanOrEqual(4);
    expect(live.join()).not.toMatch(/;|&|\|/);
    const { run } = await clone();
    const script = live.map((line) => {
      if (line === 'npm start') return STARTED;
      return line.startsWith('gunzip') ? untilRead(line) : `${line} | tee --append shown.txt`;
    });
    const output = await run([...script, 'kill -- -$! || kill $!'].join('\n'));
    const id = /(?:accepted|delivered).*(msg_[\w-]+)/.exec(output)?.[1];
    const read = output.split('\n').filter((line) => line.startsWith('{"id":'));
    expect(read.map((line) => (JSON.parse(line) as { id: string }).id)).toContain(id);
  },
);

/** In its own shell, until it says where it listens; one that ends instead is shown. */
const STARTED =
  'npm start > dev.log 2>&1 &\n' +
  "until grep --quiet 'console  *http' dev.log; do kill -0 $! || { cat dev.log; exit 1; }; sleep 0.1; done";

/** `flush` waits 5 seconds for the sink at most, and says so; somebody at a machine that is this busy asks again. */
const untilRead = (line: string): string =>
  `until ${line} >> read.ndjson && grep --quiet --fixed-strings "$(grep -o 'msg_[[:alnum:]_-]*' shown.txt | head -n 1)" read.ndjson; do :; done\ncat read.ndjson`;
